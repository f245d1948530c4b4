package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/suggest"
)

// Limits of one comparison. Values beyond these limits are assumed to fit.
const (
	maxFitDepth = 64
	maxFitSteps = 20_000
	// maxAllFitSteps limits all comparisons of one check together.
	maxAllFitSteps = 500_000
	// maxMisfits limits what one comparison reports.
	maxMisfits = 100
)

// misfit is a place where a value cannot fit.
type misfit struct {
	at            *place
	code          ProblemCode
	message, hint string
}

// fitter compares a literal that contains templates with a schema. It evaluates the JSON Schema keywords that do not depend on the values of
// the templates, and assumes that everything else fits. So everything that it reports is certain not to fit.
type fitter struct {
	root    any
	of      string
	misfits []misfit
	// steps counts the values and choices examined so far; most is the limit.
	steps, most int
	patterns    *patternCache
}

func (f *fitter) misfit(at *place, code ProblemCode, hint, format string, args ...any) {
	if len(f.misfits) >= maxMisfits {
		return
	}
	f.misfits = append(f.misfits, misfit{at: at, code: code, message: jig.Templatef("%s %s", jig.Known(f.of), jig.Words(jig.Templatef(format, args...))), hint: hint})
}

// value checks v and everything in it.
func (f *fitter) value(schema, v any, at *place, depth int) {
	f.steps++
	if depth > maxFitDepth || f.steps > f.most {
		return
	}
	if schema == false {
		f.misfit(at, ProblemBadValue, "take it out", "takes nothing here")
		return
	}
	s, ok := schema.(map[string]any)
	if !ok || s["$id"] != nil && depth > 0 { // true, or a schema whose references resolve in another document
		return
	}
	if ref, given := s["$ref"].(string); given {
		f.value(f.resolve(ref), v, at, depth+1)
	}
	for _, all := range list(s["allOf"]) {
		f.value(all, v, at, depth+1)
	}
	f.alternatives(s, v, at, depth)
	mixed := false
	if text, isText := v.(string); isText {
		literal, form := readTemplate(text)
		if form == wholeTemplate {
			return
		}
		mixed = form == mixedTemplate
		v = literal
	}
	if !f.typed(s, v, at) || !f.oneOfValues(s, v, mixed, at) {
		return
	}
	switch x := v.(type) {
	case map[string]any:
		f.object(s, x, at, depth)
	case []any:
		f.array(s, x, at, depth)
	case string:
		if !mixed {
			f.text(s, x, at)
		}
	case json.Number:
		f.number(s, x, at)
	}
}

// alternatives reports a value that does not fit any branch of anyOf or oneOf.
func (f *fitter) alternatives(s map[string]any, v any, at *place, depth int) {
	for _, word := range []string{"anyOf", "oneOf"} {
		branches := list(s[word])
		var closest []misfit
		for i, branch := range branches {
			inner := fitter{root: f.root, of: f.of, steps: f.steps, most: f.most, patterns: f.patterns}
			inner.value(branch, v, at, depth+1)
			f.steps = inner.steps
			if len(inner.misfits) == 0 {
				closest = nil
				break
			}
			// The branch whose first misfit is deepest is assumed to be the intended one.
			if i == 0 || inner.misfits[0].at.depth() > closest[0].at.depth() {
				closest = inner.misfits
			}
		}
		f.misfits = append(f.misfits, closest...)
	}
}

func (p *place) depth() int {
	n := 0
	for ; p != nil; p = p.up {
		n++
	}
	return n
}

// resolve returns what a reference within the schema refers to. For any other reference it returns true, which everything fits.
func (f *fitter) resolve(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return true
	}
	at := f.root
	for _, word := range strings.Split(pointer, "/")[1:] {
		word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		switch x := at.(type) {
		case map[string]any:
			if at, ok = x[word]; !ok {
				return true
			}
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(x) {
				return true
			}
			at = x[i]
		default:
			return true
		}
	}
	return at
}

// typed reports a value of a type that the schema does not accept.
func (f *fitter) typed(s map[string]any, v any, at *place) bool {
	types := list(s["type"])
	if one, ok := s["type"].(string); ok {
		types = []any{one}
	}
	if len(types) == 0 {
		return true
	}
	is, name := typeOf(v)
	var want []string
	for _, t := range types {
		word, ok := t.(string)
		if !ok || word == is || word == "number" && is == "integer" {
			return true
		}
		want = append(want, string(typeNames[word]))
	}
	hint := ""
	if text, ok := v.(string); ok && slices.Contains(types, any("array")) {
		hint = jig.Templatef("write [%s]", clip.Runes(text, maxShown))
	}
	f.misfit(at, ProblemWrongType, hint, "takes %s here, not %s", jig.Known(strings.Join(want, " or ")), jig.Known(name))
	return false
}

var typeNames = map[string]kind{
	"null": kindNull, "boolean": kindBool, "integer": kindInt, "number": kindFloat, "string": kindString, "array": kindList, "object": kindMap,
}

// typeOf returns the JSON Schema type of a value (integer for whole numbers) and the name of the type for messages.
func typeOf(v any) (string, kind) {
	word := "null"
	switch x := v.(type) {
	case bool:
		word = "boolean"
	case string:
		word = "string"
	case []any:
		word = "array"
	case map[string]any:
		word = "object"
	case json.Number:
		word = "number"
		if n, err := x.Float64(); err != nil || n == math.Trunc(n) {
			word = "integer" // also if a float64 cannot hold the number
		}
	}
	return word, typeNames[word]
}

// oneOfValues reports a value that enum or const excludes. For a text with templates only the type is known.
func (f *fitter) oneOfValues(s map[string]any, v any, mixed bool, at *place) bool {
	allowed := list(s["enum"])
	if only, given := s["const"]; given {
		allowed = []any{only}
	} else if allowed == nil {
		return true
	}
	f.steps += len(allowed)
	for _, a := range allowed {
		if _, text := a.(string); text && mixed || !mixed && same(a, v) {
			return true
		}
	}
	if len(f.misfits) >= maxMisfits {
		return false
	}
	const few = 8
	shown := make([]string, 0, few+1)
	names := make([]string, 0, len(allowed))
	for i, a := range allowed {
		if i < few {
			shown = append(shown, show(a))
		}
		if text, ok := a.(string); ok {
			names = append(names, text)
		}
	}
	hint := ""
	if text, ok := v.(string); ok && !mixed {
		hint = suggest.Quoted(text, names)
	}
	if len(allowed) > few {
		shown = append(shown[:few], fmt.Sprintf("%d others", len(allowed)-few))
	}
	f.misfit(at, ProblemBadValue, hint, "takes %s here, not %s", jig.Known(strings.Join(shown, " or ")), show(v))
	return false
}

func (f *fitter) object(s, v map[string]any, at *place, depth int) {
	properties, _ := s["properties"].(map[string]any)      //nolint:errcheck // nil when there are none
	patterns, _ := s["patternProperties"].(map[string]any) //nolint:errcheck // as above
	for _, word := range list(s["required"]) {
		name, ok := word.(string)
		if _, given := v[name]; !ok || given || hasDefault(properties[name]) {
			continue
		}
		f.misfit(at.key(name), ProblemMissingKey, missingHint(name, properties[name]), "wants %q", jig.Known(name))
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if len(f.misfits) >= maxMisfits {
			break
		}
		if property, known := properties[name]; known {
			f.value(property, v[name], at.key(name), depth+1)
			continue
		}
		rest, given := s["additionalProperties"]
		if !given || len(patterns) > 0 {
			continue
		}
		if rest == false {
			f.misfit(at.key(name), ProblemUnknownKey, suggest.OrKnown(name, slices.Collect(maps.Keys(properties))), "takes no %q here", jig.Known(name))
			continue
		}
		f.value(rest, v[name], at.key(name), depth+1)
	}
	f.count(s, "Properties", len(v), "keys", at)
}

// hasDefault reports whether a member gets a value if it is left out.
func hasDefault(property any) bool {
	p, ok := property.(map[string]any)
	return ok && p["default"] != nil
}

// missingHint says what to add.
func missingHint(name string, property any) string {
	p, _ := property.(map[string]any) //nolint:errcheck // nil has no keywords
	word, ok := p["type"].(string)
	if !ok || typeNames[word] == "" {
		return "add " + name
	}
	return fmt.Sprintf("add %s: %s", name, typeNames[word])
}

func (f *fitter) array(s map[string]any, v []any, at *place, depth int) {
	prefix := list(s["prefixItems"])
	for i, item := range v {
		if i < len(prefix) {
			f.value(prefix[i], item, at.item(i), depth+1)
		} else if items, given := s["items"]; given {
			f.value(items, item, at.item(i), depth+1)
		}
	}
	f.count(s, "Items", len(v), "entries", at)
}

func (f *fitter) text(s map[string]any, v string, at *place) {
	f.count(s, "Length", utf8.RuneCountInString(v), "characters", at)
	source, given := s["pattern"].(string)
	if !given {
		return
	}
	// Inputs are also checked with RE2 at run time. A pattern that RE2 does not support was refused with the tool.
	if found, err := f.patterns.matches(source, v); err == nil && !found {
		f.misfit(at, ProblemBadValue, "", "takes text that matches %s here, not %s", jig.Known(clip.Runes(source, maxShown)), show(v))
	}
}

// count checks a number against the two bounds whose keywords end in word, such as minItems and maxItems.
func (f *fitter) count(s map[string]any, word string, n int, things string, at *place) {
	if bound, ok := numberOf(s["min"+word]); ok && float64(n) < bound {
		f.misfit(at, ProblemOutOfRange, "", "takes at least %s %s here, not %d", jig.Known(s["min"+word]), jig.Known(things), n)
	}
	if bound, ok := numberOf(s["max"+word]); ok && float64(n) > bound {
		f.misfit(at, ProblemOutOfRange, "", "takes at most %s %s here, not %d", jig.Known(s["max"+word]), jig.Known(things), n)
	}
}

// number checks a number against its bounds. Rounding to float64 keeps the order of numbers, so if one float is less than another, so is
// the exact number.
func (f *fitter) number(s map[string]any, v json.Number, at *place) {
	n, err := v.Float64()
	if err != nil {
		return
	}
	exact := math.Abs(n) <= 1<<53
	if bound, ok := numberOf(s["minimum"]); ok && n < bound {
		f.misfit(at, ProblemOutOfRange, "", "takes at least %s here, not %s", jig.Known(s["minimum"]), v)
	}
	if bound, ok := numberOf(s["maximum"]); ok && n > bound {
		f.misfit(at, ProblemOutOfRange, "", "takes at most %s here, not %s", jig.Known(s["maximum"]), v)
	}
	if bound, ok := numberOf(s["exclusiveMinimum"]); ok && (n < bound || exact && n == bound && v.String() == show(s["exclusiveMinimum"])) {
		f.misfit(at, ProblemOutOfRange, "", "takes more than %s here, not %s", jig.Known(s["exclusiveMinimum"]), v)
	}
	if bound, ok := numberOf(s["exclusiveMaximum"]); ok && (n > bound || exact && n == bound && v.String() == show(s["exclusiveMaximum"])) {
		f.misfit(at, ProblemOutOfRange, "", "takes less than %s here, not %s", jig.Known(s["exclusiveMaximum"]), v)
	}
}

func numberOf(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func list(v any) []any {
	l, _ := v.([]any) //nolint:errcheck // nil if it is not a list
	return l
}

// same reports whether two values may be equal. It compares numbers as floats. A text in v that contains templates may equal anything.
func same(a, v any) bool {
	switch x := v.(type) {
	case string:
		literal, form := readTemplate(x)
		return form != noTemplate || a == any(literal)
	case json.Number:
		n, isNumber := numberOf(x)
		m, ok := numberOf(a)
		return ok == isNumber && n == m
	case []any:
		b, ok := a.([]any)
		return ok && slices.EqualFunc(b, x, same)
	case map[string]any:
		b, ok := a.(map[string]any)
		return ok && maps.EqualFunc(b, x, same)
	}
	return a == v
}

// show returns a value as JSON, shortened. It encodes no more of a large value than it returns.
func show(v any) string {
	var b bytes.Buffer
	showPart(&b, v)
	return clip.Runes(b.String(), maxShown)
}

// maxShown is how many characters of a value messages show.
const maxShown = 60

func showPart(b *bytes.Buffer, v any) {
	if b.Len() > utf8.UTFMax*maxShown {
		return
	}
	switch x := v.(type) {
	case string:
		if len(x) > utf8.UTFMax*maxShown {
			x = x[:utf8.UTFMax*maxShown]
		}
		appendJSONString(b, x)
	case []any:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			if i > maxShown {
				break
			}
			showPart(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(x)) {
			if i > 0 {
				b.WriteByte(',')
			}
			if i > maxShown {
				break
			}
			showPart(b, key)
			b.WriteByte(':')
			showPart(b, x[key])
		}
		b.WriteByte('}')
	case json.Number:
		b.WriteString(clip.Runes(x.String(), maxShown))
	default:
		b.WriteString(jsonWord(v))
	}
}

// jsonWord returns null, true or false.
func jsonWord(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}
