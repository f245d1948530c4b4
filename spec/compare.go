package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/entity"
)

// FieldChange is a difference between two versions of an entity type.
type FieldChange struct {
	// Field is the field's name or, for nested fields, the names from the outermost to the innermost, separated by dots. "[]" means the
	// items of an array, e.g. parts[].weight.
	Field string `json:"field"`
	// Change says what is different, e.g. "its max_length is 40; it was 80".
	Change string `json:"change"`
	// Breaks says that content that fits the old version may not fit the new one.
	Breaks bool `json:"breaks"`
}

// CompareTypes returns the differences between the fields of two versions of an entity type. They are in the order of the new version's
// fields, followed by the removed fields. If no change is breaking, content that [CheckContent] accepts under the old version, partial or
// not, is also accepted under the new one, provided that new required fields are set to their defaults. CompareTypes ignores tasks, and the
// settings that say how fields are shown (label, display, description) or filled.
func CompareTypes(old, latest entity.Type) []FieldChange {
	var c comparison
	c.members("", old.Fields, latest.Fields, true)
	return c.changes
}

// comparison collects changes.
type comparison struct{ changes []FieldChange }

func (c *comparison) breaks(field, format string, args ...any) {
	c.changes = append(c.changes, FieldChange{Field: field, Change: fmt.Sprintf(format, args...), Breaks: true})
}

func (c *comparison) harmless(field, format string, args ...any) {
	c.changes = append(c.changes, FieldChange{Field: field, Change: fmt.Sprintf(format, args...)})
}

// members compares the fields of an entity (top) or of an object.
func (c *comparison) members(within string, before, after []entity.Field, top bool) {
	find := func(fields []entity.Field, name string) *entity.Field {
		if i := slices.IndexFunc(fields, func(f entity.Field) bool { return f.Name == name }); i >= 0 {
			return &fields[i]
		}
		return nil
	}
	for i := range after {
		f, at := &after[i], dotted(within, after[i].Name)
		was := find(before, f.Name)
		// Content that lacks an entity's own field gets its default. Fields of an object have no defaults.
		filled := top && len(f.Default) > 0
		switch {
		case was == nil && f.Required && !filled:
			c.breaks(at, "it is new and required, without a default")
		case was == nil && f.Required:
			c.harmless(at, "it is new and required; existing content gets the default %s", f.Default)
		case was == nil:
			c.harmless(at, "it is new")
		default:
			c.required(at, was, f)
			c.field(at, was, f)
		}
	}
	for i := range before {
		if find(after, before[i].Name) == nil {
			c.breaks(dotted(within, before[i].Name), "it is removed")
		}
	}
}

func dotted(within, name string) string {
	if within == "" {
		return name
	}
	return within + "." + name
}

func (c *comparison) required(at string, was, f *entity.Field) {
	switch {
	case f.Required && !was.Required:
		c.breaks(at, "it is now required")
	case was.Required && !f.Required:
		c.harmless(at, "it is no longer required")
	}
}

// field compares what two fields accept.
func (c *comparison) field(at string, was, f *entity.Field) {
	if was.Type != f.Type {
		c.breaks(at, "its type is %s; it was %s", f.Type, was.Type)
		return
	}
	switch f.Type {
	case entity.FieldText:
		c.lengths(at, was, f)
		c.pattern(at, was.Pattern, f.Pattern)
	case entity.FieldNumber:
		lowest(c, at, "minimum", was.Minimum, f.Minimum, shortNumber)
		highest(c, at, "maximum", was.Maximum, f.Maximum, shortNumber)
		c.flag(at, f.Integer, was.Integer, "it must now be a whole number", "it need no longer be a whole number")
	case entity.FieldEnum:
		c.options(at, was.Options, f.Options)
	case entity.FieldDate:
		if f.Time != was.Time {
			c.breaks(at, "%s", map[bool]string{true: "it now has a time of day", false: "it no longer has a time of day"}[f.Time])
		}
	case entity.FieldRelation:
		c.relation(at, was, f)
	case entity.FieldObject:
		c.members(at, was.Fields, f.Fields, false)
	case entity.FieldArray:
		c.lengths(at, was, f)
		if was.Items != nil && f.Items != nil {
			c.field(at+"[]", was.Items, f.Items)
		}
	case entity.FieldBoolean, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
	}
}

func (c *comparison) flag(at string, now, before bool, set, dropped string) {
	switch {
	case now && !before:
		c.breaks(at, "%s", set)
	case before && !now:
		c.harmless(at, "%s", dropped)
	}
}

// pattern compares patterns as texts. It does not work out whether one accepts everything that the other does.
func (c *comparison) pattern(at, was, is string) {
	switch {
	case was == is:
	case is == "":
		c.harmless(at, "it no longer has a pattern")
	default:
		c.breaks(at, "its pattern is %s; %s", clipped(is), map[bool]string{true: "it had none", false: "it was " + clipped(was)}[was == ""])
	}
}

func (c *comparison) lengths(at string, was, f *entity.Field) {
	show := func(n int) string { return fmt.Sprint(n) }
	lowest(c, at, "min_length", positive(was.MinLength), positive(f.MinLength), show)
	highest(c, at, "max_length", was.MaxLength, f.MaxLength, show)
}

// positive returns a minimum length, or nil if there is none or it is zero, which has no effect.
func positive(n *int) *int {
	if n == nil || *n == 0 {
		return nil
	}
	return n
}

// lowest compares lower bounds, and highest compares upper bounds. A bound that is nil does not exist.
func lowest[N cmp.Ordered](c *comparison, at, key string, was, is *N, show func(N) string) {
	limit(c, at, key, was, is, show, func(was, is N) bool { return is > was })
}

func highest[N cmp.Ordered](c *comparison, at, key string, was, is *N, show func(N) string) {
	limit(c, at, key, was, is, show, func(was, is N) bool { return is < was })
}

// limit compares a bound. tighter reports whether a bound accepts less than it did before.
func limit[N cmp.Ordered](c *comparison, at, key string, was, is *N, show func(N) string, tighter func(was, is N) bool) {
	switch {
	case was == nil && is == nil, was != nil && is != nil && *was == *is:
	case is == nil:
		c.harmless(at, "it no longer has a %s", key)
	case was == nil:
		c.breaks(at, "its %s is now %s; it had none", key, show(*is))
	case tighter(*was, *is):
		c.breaks(at, "its %s is %s; it was %s", key, show(*is), show(*was))
	default:
		c.harmless(at, "its %s is %s; it was %s", key, show(*is), show(*was))
	}
}

func (c *comparison) options(at string, was, is []string) {
	gone := slices.DeleteFunc(slices.Clone(was), func(option string) bool { return slices.Contains(is, option) })
	more := slices.DeleteFunc(slices.Clone(is), func(option string) bool { return slices.Contains(was, option) })
	if len(gone) > 0 {
		c.breaks(at, "the options %s were removed", clip.Line(strings.Join(gone, ", "), 200))
	}
	if len(more) > 0 {
		c.harmless(at, "the options %s were added", clip.Line(strings.Join(more, ", "), 200))
	}
}

func (c *comparison) relation(at string, was, f *entity.Field) {
	if f.Target != was.Target {
		c.breaks(at, "it now leads to %s; it led to %s", f.Target, was.Target)
	}
	switch {
	case was.Many && !f.Many:
		c.breaks(at, "it now holds one value instead of many")
	case f.Many && !was.Many:
		c.breaks(at, "it now holds many values instead of one: existing content is not a list")
	case f.Many:
		c.lengths(at, was, f)
	}
}
