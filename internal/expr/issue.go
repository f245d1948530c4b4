package expr

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/jig-run/jig"
)

// IssueError says where in a source something is wrong. It is the cause of this package's errors (use [errors.As]), so that callers that
// know the document can add the line and the path.
type IssueError struct {
	// Source is the expression, or the whole text of the template that contains it.
	Source string
	// Offset is the position, in characters from the beginning of Source.
	Offset int
	// Message is one sentence, without the position.
	Message string
	// Cause is the underlying error, if there is one.
	Cause error
}

// Position returns the line and the column of the issue in its source. Both count from 1; columns are in characters.
func (i *IssueError) Position() (line, column int) {
	line, column = 1, 1
	for n, r := range []rune(i.Source) {
		if n >= i.Offset {
			break
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

func (i *IssueError) Error() string { return i.Message }

// Template returns the message with its values set apart.
func (i *IssueError) Template() string { return Quoted(i.Message) }

// suggestion finds what a message suggests, which is not a value.
var suggestion = regexp.MustCompile(`[;,] did you mean '[^']*'\?$`)

// Quoted returns a text of ours or of a library with what it quotes set apart. What it suggests at its end is not set apart. A quoted text may hold
// quotes itself, so everything from the first quote to the last one is one value.
func Quoted(text string) string {
	rest := suggestion.FindString(text)
	text = strings.TrimSuffix(text, rest)
	first, last := strings.IndexAny(text, `'"`), strings.LastIndexAny(text, `'"`)
	if first < 0 {
		return jig.Templatef("%s%s", jig.Known(text), jig.Known(rest))
	}
	last = max(last, first+1)
	if first+1 == len(text) {
		last = len(text)
	}
	return jig.Templatef("%s%s%s%s", jig.Known(text[:first+1]), text[first+1:last], jig.Known(text[last:]), jig.Known(rest))
}

func (i *IssueError) Unwrap() error { return i.Cause }

// widest is the maximum number of characters of a source line shown with the caret.
const widest = 100

// Caret returns the source line of the issue with a caret below its column.
func (i *IssueError) Caret() string {
	line, column := i.Position()
	text := []rune(strings.ReplaceAll(strings.Split(i.Source, "\n")[line-1], "\t", " "))
	from := 0
	if len(text) > widest && column > widest/2 {
		from = min(column-widest/2, len(text)-widest/2)
	}
	shown := text[from:min(len(text), from+widest)]
	return "  " + string(shown) + "\n  " + strings.Repeat(" ", max(0, column-1-from)) + "^"
}

func (i *IssueError) jig() *jig.Error {
	line, column := i.Position()
	where := fmt.Sprintf("column %d", column)
	if strings.Contains(i.Source, "\n") {
		where = fmt.Sprintf("line %d, column %d", line, column)
	}
	caret := i.Caret()
	source, mark, _ := strings.Cut(caret, "\n")
	return jig.Errorf(jig.CodeInvalidInput, "%s (%s)\n  %s\n%s", jig.Words(Quoted(jig.Cut(i.Message, longestMessage))), jig.Known(where), source[2:], jig.Known(mark)).CausedBy(i)
}

// longestMessage is the maximum length of a message that is shown. A message may quote the source, such as a word of 4,000 letters.
const longestMessage = 400

// within moves an issue of an expression to the template that contains the expression at an offset.
func within(err error, text string, offset int) error {
	var issue *IssueError
	if !errors.As(err, &issue) {
		return err
	}
	moved := *issue
	moved.Source, moved.Offset = text, offset+issue.Offset
	return moved.jig()
}

func (e *Env) compileIssue(source string, found []*common.Error) *IssueError {
	first := found[0]
	return &IssueError{Source: source, Offset: offsetAt(source, first.Location), Message: e.plain(first.Message), Cause: errors.New(first.Message)}
}

func offsetAt(source string, at common.Location) int {
	line, offset := 1, 0
	for _, text := range strings.SplitAfter(source, "\n") {
		if line == at.Line() {
			return offset + at.Column()
		}
		offset += utf8.RuneCountInString(text)
		line++
	}
	return offset
}

func offsetOf(info *ast.SourceInfo, id int64) int {
	position, ok := info.GetOffsetRange(id)
	if !ok {
		return 0
	}
	return int(position.Start)
}

// plain rewords an error message of cel-go for people who do not know its terms.
func (e *Env) plain(message string) string {
	if m := regexp.MustCompile(`^undeclared reference to '([^']*)'`).FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("undeclared reference to '%s'%s", m[1], didYouMean(m[1], e.names()))
	}
	if m := regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '([^']*)'`).FindStringSubmatch(message); m != nil {
		receiver, args, member := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(m[2], "("), ")"), ".(")
		if member && args != "" {
			args = ", " + args
		}
		return cannotApply(m[1], receiver+args)
	}
	if rest, ok := strings.CutPrefix(message, "Syntax error: "); ok {
		rest, _, _ = strings.Cut(rest, " expecting ")
		rest = strings.NewReplacer("mismatched input", "unexpected", "extraneous input", "unexpected", "no viable alternative at input",
			"unexpected", "'<EOF>'", "end").Replace(rest)
		return "syntax error: " + rest
	}
	return message
}

func noOverload(function string, args []ref.Val) ref.Val {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i] = arg.Type().TypeName()
	}
	return types.NewErr("%s", cannotApply(function, strings.Join(names, ", ")))
}

// named adds the types of the arguments to the error of a function that does not accept them; cel-go leaves them out.
func named(function string, result ref.Val, args ...ref.Val) ref.Val {
	if failed, ok := result.(*types.Err); ok && strings.HasPrefix(failed.Error(), "no such overload") {
		return noOverload(function, args)
	}
	return result
}

func cannotApply(function, args string) string {
	hint := ""
	if function == operators.Conditional {
		return fmt.Sprintf("'? :' cannot be applied to (%s); give it a condition and two values of one type, or put dyn(…) around one of them", args)
	}
	if shown, ok := operators.FindReverse(function); ok && shown != "" {
		function = shown
		switch {
		case strings.Contains(args, "list") || strings.Contains(args, "map"):
		case shown == "+" && strings.Contains(args, "string"):
			hint = "; make a text with string(…)"
		case shown == "%" && strings.Contains(args, "double"):
			hint = "; it needs whole numbers: int(…)"
		case strings.Contains(args, "uint"):
			hint = "; make both the same with int(…), uint(…) or double(…)"
		}
	}
	return fmt.Sprintf("'%s' cannot be applied to (%s)%s", function, args, hint)
}

// evalError converts an error that ended an evaluation.
func (p *Program) evalError(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return ended(cause)
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return (&IssueError{Source: p.source, Message: cancelled.Message, Cause: err}).jig()
	}
	issue := &IssueError{Source: p.source, Message: p.env.plainEval(err.Error()), Cause: err}
	var failed *types.Err
	if errors.As(err, &failed) {
		issue.Offset = offsetOf(p.checked.SourceInfo(), failed.NodeID())
	}
	if key, ok := strings.CutPrefix(err.Error(), "no such key: "); ok {
		issue.Offset = atKey(p.source, key, issue.Offset)
	}
	return issue.jig()
}

// atKey returns the position of the key in a chain such as a.key.b. cel-go gives the position of the chain's last part.
func atKey(source, key string, offset int) int {
	before := string([]rune(source)[:offset])
	if i := strings.LastIndex(before, "."+key); i >= 0 {
		return utf8.RuneCountInString(before[:i])
	}
	return offset
}

func (e *Env) plainEval(message string) string {
	if name, ok := strings.CutPrefix(message, "no such overload: "); ok {
		if shown, found := operators.FindReverse(name); found && shown != "" {
			return fmt.Sprintf("'%s' cannot be applied to these values", shown)
		}
	}
	if name, ok := strings.CutPrefix(message, "no such attribute(s): "); ok {
		return fmt.Sprintf("'%s' has no value here", name)
	}
	if name, ok := strings.CutPrefix(message, "no such key: "); ok {
		return fmt.Sprintf("no such key: '%s'; has(…) or .?%s tests whether it is present", name, name)
	}
	return message
}

func ended(cause error) *jig.Error {
	code, word := jig.CodeCanceled, "was canceled"
	if errors.Is(cause, context.DeadlineExceeded) {
		code, word = jig.CodeTimeout, "took too long"
	}
	return jig.Errorf(code, "the evaluation %s", jig.Known(word)).CausedBy(cause)
}
