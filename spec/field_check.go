package spec

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/suggest"
)

// maxViolations limits how many places in a value are reported.
const maxViolations = 50

// CheckField checks a value against a field. The error is INVALID_INPUT. Its violations point to each wrong place with a JSON pointer that
// begins with the field's name (or is relative to the value, if the field has no name), and its Field is the first pointer. CheckField
// accepts the same values as the schema of [ContentSchema]. Null fits no field; leave the value out instead.
func CheckField(f entity.Field, value json.RawMessage) error {
	at := ""
	if f.Name != "" {
		at = "/" + pointerToken(f.Name)
	}
	v, err := readJSON(value)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the value cannot be read: %w", err).WithField(at)
	}
	var c fieldChecker
	c.value(&f, at, v)
	return c.err()
}

// CheckContent checks the content of an entity, a JSON object, against the fields of its type: it must have no other fields, and every
// value must fit its field. If partial is true, required fields may be missing, because a change sets only some fields and because tasks
// fill fields later. The error is like that of [CheckField], with pointers into the content.
func CheckContent(t entity.Type, content json.RawMessage, partial bool) error {
	v, err := readJSON(content)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the content cannot be read: %w", err)
	}
	var c fieldChecker
	c.object(t.Fields, "", v, partial)
	return c.err()
}

func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// fieldChecker collects the violations in a value.
type fieldChecker struct {
	violations []jig.Violation
	patterns   patternCache
}

// patternCache keeps the patterns of one check and limits the work of matching them.
type patternCache struct {
	bySource map[string]*pattern.Pattern
	set      pattern.Set
	steps    int64
}

// matches reports whether a text contains a match. The error says that the pattern does not compile, or that the check would take too many
// steps.
func (c *patternCache) matches(source, text string) (bool, error) {
	p, ok := c.bySource[source]
	if !ok {
		var err error
		if p, err = c.set.Compile(source); err != nil {
			return false, err
		}
		if c.bySource == nil {
			c.bySource = map[string]*pattern.Pattern{}
		}
		c.bySource[source] = p
	}
	if c.steps += p.Steps(len(text)); c.steps > pattern.MaxSteps {
		return false, fmt.Errorf("matching takes more than %d steps; shorten the texts or simplify the pattern", pattern.MaxSteps)
	}
	return p.MatchString(text), nil
}

// violation returns a violation with a message.
func violation(at, message string) jig.Violation {
	return jig.Violation{Pointer: at, Message: jig.Text(message), Template: message}
}

func (c *fieldChecker) add(at, format string, args ...any) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, violation(at, jig.Templatef(format, args...)))
	}
}

func (c *fieldChecker) err() error {
	if len(c.violations) == 0 {
		return nil
	}
	first := c.violations[0]
	e := jig.Errorf(jig.CodeInvalidInput, "%s", first.Words()).WithField(first.Pointer)
	if len(c.violations) > 1 {
		e = e.Reworded("%s, and %d more problems", first.Words(), len(c.violations)-1)
	}
	e.Violations = c.violations
	return e
}

// jsonKind describes the type of a value, for messages.
func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	}
	return "an object"
}

// wrong reports a value of the wrong type.
func (c *fieldChecker) wrong(at, want string, v any) {
	if v == nil {
		c.add(at, "this must be %s, not null; leave out the key if there is no value", jig.Known(want))
		return
	}
	c.add(at, "this must be %s, not %s", jig.Known(want), jig.Known(jsonKind(v)))
}

func (c *fieldChecker) value(f *entity.Field, at string, v any) {
	switch f.Type {
	case entity.FieldText:
		c.text(f, at, v)
	case entity.FieldNumber:
		c.number(f, at, v)
	case entity.FieldBoolean:
		if _, ok := v.(bool); !ok {
			c.wrong(at, "true or false", v)
		}
	case entity.FieldEnum:
		if s, ok := v.(string); !ok {
			c.wrong(at, "text", v)
		} else if !slices.Contains(f.Options, s) {
			c.add(at, "%s is not one of the options; %s", clipped(s), jig.Known(optionsHint(s, f.Options)))
		}
	case entity.FieldObject:
		c.object(f.Fields, at, v, false)
	case entity.FieldArray:
		c.list(f, at, v, func(at string, item any) { c.value(f.Items, at, item) })
	case entity.FieldRelation:
		if f.Many {
			c.relations(f, at, v)
			return
		}
		c.formed(f, at, v)
	case entity.FieldDate, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
		c.formed(f, at, v)
	default:
		c.add(at, "the field is of type %q, which does not exist", f.Type)
	}
}

// clipped quotes a text, shortened for messages.
func clipped(text string) string { return strconv.Quote(clip.Line(text, 80)) }

func optionsHint(s string, options []string) string {
	if hint := suggest.OrKnown(s, options); hint != "" {
		return hint
	}
	const shown = 10
	if len(options) > shown {
		return fmt.Sprintf("they are %s and %d more", strings.Join(options[:shown], ", "), len(options)-shown)
	}
	return "they are " + strings.Join(options, ", ")
}

func (c *fieldChecker) text(f *entity.Field, at string, v any) {
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "text", v)
		return
	}
	c.length(f, at, utf8.RuneCountInString(s), "characters")
	if f.Pattern == "" {
		return
	}
	found, err := c.patterns.matches(f.Pattern, s)
	switch {
	case err != nil:
		c.add(at, "the field's pattern %s cannot be used: %v", clipped(f.Pattern), err)
	case !found:
		c.add(at, "%s does not match the pattern %s", clipped(s), jig.Known(f.Pattern))
	}
}

func (c *fieldChecker) length(f *entity.Field, at string, n int, unit string) {
	if f.MinLength != nil && n < *f.MinLength {
		c.add(at, "this has %d %s; at least %d are needed", n, jig.Known(unit), jig.Known(*f.MinLength))
	}
	if f.MaxLength != nil && n > *f.MaxLength {
		c.add(at, "this has %d %s; at most %d are allowed", n, jig.Known(unit), jig.Known(*f.MaxLength))
	}
}

func (c *fieldChecker) number(f *entity.Field, at string, v any) {
	literal, ok := v.(json.Number)
	if !ok {
		c.wrong(at, "a number", v)
		return
	}
	n, ok := new(big.Rat).SetString(literal.String())
	if !ok {
		c.add(at, "%s is not a number", clipped(literal.String()))
		return
	}
	if f.Integer && !n.IsInt() {
		c.add(at, "%s is not a whole number", literal)
	}
	if low := decimal(f.Minimum); low != nil && n.Cmp(low) < 0 {
		c.add(at, "%s is less than %s", literal, jig.Known(shortNumber(*f.Minimum)))
	}
	if high := decimal(f.Maximum); high != nil && n.Cmp(high) > 0 {
		c.add(at, "%s is more than %s", literal, jig.Known(shortNumber(*f.Maximum)))
	}
}

// decimal returns a bound as it is written, not the nearest binary fraction, or nil if there is none.
func decimal(f *float64) *big.Rat {
	if f == nil {
		return nil
	}
	r, ok := new(big.Rat).SetString(shortNumber(*f))
	if !ok {
		return nil // not a number, which no document can contain
	}
	return r
}

// shortNumber writes a number with the fewest digits that identify it.
func shortNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// formed checks a text against the form that the field's type requires.
func (c *fieldChecker) formed(f *entity.Field, at string, v any) {
	form := textFormOf(f)
	s, ok := v.(string)
	switch {
	case !ok:
		c.wrong(at, form.what, v)
	case form.limit > 0 && utf8.RuneCountInString(s) > form.limit:
		c.add(at, "this has more than %d characters", jig.Known(form.limit))
	case !form.pattern.MatchString(s), f.Type == entity.FieldEmail && !localPattern.MatchString(s):
		c.add(at, "%s is not %s", clipped(s), jig.Known(form.what))
	}
}

func (c *fieldChecker) list(f *entity.Field, at string, v any, each func(at string, item any)) {
	items, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list", v)
		return
	}
	c.length(f, at, len(items), "items")
	for i, item := range items {
		if len(c.violations) >= maxViolations {
			return
		}
		each(at+"/"+strconv.Itoa(i), item)
	}
}

// relations checks a list of entity ids, which must be distinct.
func (c *fieldChecker) relations(f *entity.Field, at string, v any) {
	seen := map[string]bool{}
	c.list(f, at, v, func(at string, item any) {
		c.formed(f, at, item)
		if id, ok := item.(string); ok {
			if seen[id] {
				c.add(at, "%s is listed twice", clipped(id))
			}
			seen[id] = true
		}
	})
}

// object checks the members of an entity's content, or of an object in it.
func (c *fieldChecker) object(fields []entity.Field, at string, v any, partial bool) {
	members, ok := v.(jsonObject)
	if !ok {
		c.wrong(at, "an object", v)
		return
	}
	byName := make(map[string]*entity.Field, len(fields))
	names := make([]string, 0, len(fields))
	for i := range fields {
		byName[fields[i].Name] = &fields[i]
		names = append(names, fields[i].Name)
	}
	given := make(map[string]bool, len(members))
	for _, m := range members {
		inner := at + "/" + pointerToken(m.key)
		given[m.key] = true
		f, known := byName[m.key]
		if !known {
			if len(c.violations) < maxViolations {
				c.add(inner, "there is no field %s%s", jig.Known(clipped(m.key)), jig.Known(parenthesised(suggest.OrKnown(m.key, names))))
			}
			continue
		}
		c.value(f, inner, m.value)
	}
	for i := range fields {
		if fields[i].Required && !given[fields[i].Name] && !partial {
			c.add(at+"/"+pointerToken(fields[i].Name), "the field %s is required", jig.Known(fields[i].Name))
		}
	}
}

func parenthesised(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}
