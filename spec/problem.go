package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Severity says whether a problem prevents a document from being used.
type Severity string

// The severities. A document that has only warnings is usable.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// ProblemCode names a class of problems. It stays the same when the wording of messages changes.
type ProblemCode string

// The classes of problems.
const (
	ProblemTooLarge     ProblemCode = "TOO_LARGE"
	ProblemTooDeep      ProblemCode = "TOO_DEEP"
	ProblemTooMany      ProblemCode = "TOO_MANY_VALUES"
	ProblemSyntax       ProblemCode = "SYNTAX"
	ProblemUnknownKey   ProblemCode = "UNKNOWN_KEY"
	ProblemDuplicateKey ProblemCode = "DUPLICATE_KEY"
	ProblemMissingKey   ProblemCode = "MISSING_KEY"
	ProblemWrongType    ProblemCode = "WRONG_TYPE"
	ProblemOutOfRange   ProblemCode = "OUT_OF_RANGE"
	ProblemBadValue     ProblemCode = "BAD_VALUE"
	ProblemBadName      ProblemCode = "BAD_NAME"
	ProblemBadSchema    ProblemCode = "BAD_SCHEMA"
	ProblemBadShape     ProblemCode = "BAD_SHAPE"
	ProblemBadCEL       ProblemCode = "BAD_EXPRESSION"
	ProblemUnknownKind  ProblemCode = "UNKNOWN_KIND"
	ProblemUnreadable   ProblemCode = "UNREADABLE"
	// ProblemAmbiguousValue is a value that other readers of YAML take for something else.
	ProblemAmbiguousValue ProblemCode = "AMBIGUOUS_VALUE"
	// For compositions: an id that two steps share; a read of a step that does not exist or has no result yet; a read of a name that is not
	// defined at that point; a variable that no step has set; a step or case that can never run.
	ProblemDuplicateID ProblemCode = "DUPLICATE_ID"
	ProblemUnknownStep ProblemCode = "UNKNOWN_STEP"
	ProblemStepOrder   ProblemCode = "STEP_ORDER"
	ProblemOutOfScope  ProblemCode = "OUT_OF_SCOPE"
	ProblemUnknownVar  ProblemCode = "UNKNOWN_VARIABLE"
	ProblemUnreachable ProblemCode = "UNREACHABLE"
)

// Problem is one mistake in a document. `jig validate` prints it.
type Problem struct {
	// Document is the name of the file, as it was given.
	Document string `json:"document"`
	// Path leads to the offending value, e.g. script.rules[0].when. It is empty for the whole document.
	Path string `json:"path"`
	// Line and Column count from 1. They are 0 if there is no place to point to.
	Line     int         `json:"line"`
	Column   int         `json:"column"`
	Code     ProblemCode `json:"code"`
	Severity Severity    `json:"severity"`
	// Message says what is wrong, in one sentence.
	Message string `json:"message"`
	// Words is the message with its values set apart. Default: all of it is a value.
	Words string `json:"-"`
	// Hint says how to fix it.
	Hint string `json:"hint,omitempty"`
	// HintWords is the hint with its values set apart, if it has any.
	HintWords string `json:"-"`
}

// Unnamed is the name of documents that have none.
const Unnamed = "the document"

// saying returns a copy of the problem with a message.
func (p Problem) saying(format string, args ...any) Problem {
	p.Words = jig.Templatef(format, args...)
	p.Message = jig.Text(p.Words)
	return p
}

// hinting returns a copy of the problem with a hint, which may be a template.
func (p Problem) hinting(hint string) Problem {
	p.HintWords = hint
	p.Hint = jig.Text(hint)
	return p
}

func (p Problem) String() string { return p.text(p.Document, p.Message, p.Hint) }

// Template returns the text of the problem with its values set apart.
func (p Problem) Template() string {
	words := p.Words
	if words == "" {
		words = jig.Templatef("%s", p.Message)
	}
	document := jig.Templatef("%s", p.Document)
	if p.Document == Unnamed {
		document = Unnamed
	}
	return p.text(document, words, cmp.Or(p.HintWords, p.Hint))
}

func (p Problem) text(document, message, hint string) string {
	var b strings.Builder
	b.WriteString(document)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Severity == SeverityWarning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(message)
	if hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}

// Problems lists all mistakes in one or more documents, in the order of lines. As an error, it has the code INVALID_INPUT, with the problems
// as violations.
type Problems []Problem //nolint:errname // the documentation and the command line use this name

// shownProblems is how many problems the text of the error lists.
const shownProblems = 5

func (p Problems) Error() string { return jig.Text(p.Template()) }

// Template returns the text of the error with its values set apart.
func (p Problems) Template() string {
	lines := make([]string, 0, shownProblems+1)
	for i, one := range p {
		if i == shownProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(p)-i))
			break
		}
		lines = append(lines, one.Template())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems as a [jig.Error], so that [jig.CodeOf] returns INVALID_INPUT.
func (p Problems) Unwrap() error {
	e := jig.Errorf(jig.CodeInvalidInput, "%s", jig.Words(p.Template()))
	for _, one := range p {
		e.Violations = append(e.Violations, violation(one.Path, one.Template()))
	}
	return e
}

// Errors returns the problems that prevent the document from being used.
func (p Problems) Errors() Problems {
	return slices.DeleteFunc(slices.Clone(p), func(one Problem) bool { return one.Severity != SeverityError })
}

// OrNil returns the errors among the problems as an error, or nil if there are none.
func (p Problems) OrNil() error {
	if errs := p.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Sort sorts the problems by document, line and column.
func (p Problems) Sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Duration is a length of time as documents write it: Go's format with optional leading days, e.g. "90s", "48h", "1d12h" or "1.5d".
type Duration time.Duration

// MarshalJSON writes the duration in the format of documents.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String()) //nolint:wrapcheck // a string always marshals
}

func (d Duration) String() string {
	const day = 24 * time.Hour
	if whole := time.Duration(d); whole >= day && whole%day == 0 {
		return strconv.Itoa(int(whole/day)) + "d"
	}
	return time.Duration(d).String()
}
