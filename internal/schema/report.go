package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/suggest"
)

// maxViolations bounds the violations in a report; the last entry counts the rest. maxHints bounds how many unknown names of one object are
// compared with the known ones.
const (
	maxViolations = 100
	maxHints      = 10
)

// finding is a violation with the data that determines its code and its hint.
type finding struct {
	jig.Violation
	missing bool
	hint    string
}

// report turns the library's tree of errors into one error. document is the schema, which provides the names of known properties.
func report(what string, root *jsonschema.ValidationError, document any) *jig.Error {
	findings := flatten(root, document)
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	findings = slices.CompactFunc(findings, func(a, b finding) bool { return a.Violation == b.Violation })

	e := &jig.Error{Code: jig.CodeMissingParam, Field: findings[0].Pointer}
	for _, f := range findings {
		if !f.missing {
			e.Code = jig.CodeInvalidInput
		}
		e.Hint = cmp.Or(e.Hint, f.hint)
		e.Violations = append(e.Violations, f.Violation)
	}
	e = e.Reworded("%s", jig.Known(sentence(what, findings)))
	if rest := len(e.Violations) - maxViolations; rest > 0 {
		e.Violations = append(e.Violations[:maxViolations:maxViolations], violation("", fmt.Sprintf("and %d more", rest)))
	}
	return e
}

// sentence describes the first three findings.
func sentence(what string, findings []finding) string {
	var parts []string
	for _, f := range findings[:min(3, len(findings))] {
		parts = append(parts, strings.TrimSpace(cmp.Or(clip(f.Pointer), what)+" "+f.Message))
	}
	s := strings.Join(parts, "; ")
	if rest := len(findings) - len(parts); rest > 0 {
		s += fmt.Sprintf("; and %d more", rest)
	}
	return s
}

// violation returns a violation whose message has no value of the instance.
func violation(at, message string) jig.Violation {
	return jig.Violation{Pointer: at, Message: message, Template: jig.Templatef("%s", jig.Known(message))}
}

// flatten lists the leaves of the error tree. A failed choice (anyOf, oneOf) is a single finding, because none of its branches is wrong by
// itself.
func flatten(e *jsonschema.ValidationError, document any) []finding {
	at := strictjson.Pointer(e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		var list []finding
		for _, name := range k.Missing {
			list = append(list, finding{
				Violation: violation(at+strictjson.Pointer(name), "is required and missing"), missing: true,
			})
		}
		return list
	case *kind.AdditionalProperties:
		return unknown(e, k.Properties, document)
	case *kind.AnyOf:
		return []finding{choice(e, at, document)}
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return []finding{{Violation: violation(at, "fits more than one of the allowed forms, want exactly one")}}
		}
		return []finding{choice(e, at, document)}
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.PropertyNames, *kind.Not:
		return []finding{{Violation: violation(at, phrase(e.ErrorKind))}}
	}
	if len(e.Causes) == 0 {
		return []finding{{Violation: violation(at, phrase(e.ErrorKind))}}
	}
	var list []finding
	for _, cause := range e.Causes {
		list = append(list, flatten(cause, document)...)
	}
	return list
}

func unknown(e *jsonschema.ValidationError, names []string, document any) []finding {
	at := strictjson.Pointer(e.InstanceLocation...)
	known := properties(document, e.SchemaURL)
	var list []finding
	for i, name := range slices.Sorted(slices.Values(names)) {
		hint := ""
		if len(known) > 0 && i < maxHints {
			hint = suggest.Hint(name, known, "known properties: "+clipList(known))
		}
		message := "is not a known property"
		if strings.HasPrefix(hint, "did you mean") {
			message += ", " + hint
		}
		list = append(list, finding{Violation: violation(at+strictjson.Pointer(clip(name)), message), hint: hint})
	}
	return list
}

// properties lists the property names of the subschema at url if it is within document.
func properties(document any, url string) []string {
	pointer, ok := strings.CutPrefix(url, base+"#")
	if !ok {
		return nil
	}
	node, ok := strictjson.LookUp(document, unescapeFragment(pointer))
	if !ok {
		return nil
	}
	object, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	known, ok := object["properties"].(map[string]any)
	if !ok {
		return nil
	}
	return slices.Sorted(maps.Keys(known))
}

// choice describes a failed anyOf or oneOf.
func choice(e *jsonschema.ValidationError, at string, document any) finding {
	var types, others []string
	for _, cause := range e.Causes {
		for _, f := range flatten(cause, document) {
			if t, ok := strings.CutPrefix(f.Message, "must be of type "); ok && f.Pointer == at {
				t, _, _ = strings.Cut(t, ", not ")
				types = append(types, t)
			} else {
				others = append(others, strings.TrimSpace(strings.TrimPrefix(f.Pointer, at)+" "+f.Message))
			}
		}
	}
	message := "fits none of the allowed forms"
	switch {
	case len(others) == 0 && len(types) > 0:
		message = "must be of type " + strings.Join(types, " or ")
	case len(others) > 0:
		message += ": " + strings.Join(others[:min(3, len(others))], "; or ")
	}
	return finding{Violation: violation(at, message)}
}

// clip shortens a text of the schema or value for a message.
func clip(s string) string { return jig.Cut(s, 64) }

// phrase says what an instance must be. It never repeats the instance, which may be secret or very long.
func phrase(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ") + ", not " + k.Got
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Pattern:
		return "must match " + clip(k.Want)
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s, not %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, not %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, not %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, not %d", count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, not %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, not %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat items: %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.DependentRequired:
		return "needs " + clipList(k.Missing) + " beside " + clip(k.Prop)
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.PropertyNames:
		return "has a property whose name is not allowed: " + clip(k.Property)
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	b, err := json.Marshal(f)
	if err != nil {
		return r.RatString()
	}
	return string(b)
}

// values lists the values that a schema allows, at most a dozen.
func values(list []any) string {
	var words []string
	for _, v := range list[:min(12, len(list))] {
		b, err := json.Marshal(v)
		if err != nil {
			continue
		}
		words = append(words, clip(string(b)))
	}
	if len(list) > len(words) {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

func clipList(names []string) string {
	var words []string
	for _, name := range names[:min(12, len(names))] {
		words = append(words, clip(name))
	}
	if len(names) > len(words) {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

func unescapeFragment(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
