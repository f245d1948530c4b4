package schema

import (
	"encoding/json"
	"math"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/pattern"
)

// Limits on one validation.
const (
	// MaxSteps bounds the number of times a subschema is applied to a value; expensive keywords count more. It corresponds to about two
	// seconds.
	MaxSteps = 5_000_000
	// maxInPlace bounds a chain of subschemas that are applied to the same value.
	maxInPlace = 500
	// maxReported bounds the memory, in bytes, that the errors of a validation could take if every subschema failed. If a value could exceed
	// it, the positions of its errors are not reported.
	maxReported = 64 << 20
	errorSize   = 250
	tokenSize   = 16
	// Costs of single keywords, in steps.
	regexpSteps   = 64 // steps of a regular expression that count as one step here
	numberSteps   = 8
	regexFormSize = 20_000
)

// meter computes the cost of a validation before it is done. The library has no limit of its own, and schemas whose parts refer to each
// other take time that doubles with each reference: {"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}.
type meter struct {
	left    int
	dynamic []*jsonschema.Schema
	// depth is the depth of the current value. reported is the size that the errors would have if every subschema failed.
	depth, reported int
}

// errTooMuch is returned when a validation would exceed MaxSteps.
var errTooMuch = jig.Errorf(jig.CodeInvalidInput, "checking the value against its schema takes more than %d steps", MaxSteps).
	WithReason("limit_exceeded").WithHint("make the value smaller, or the schema simpler: fewer $ref, anyOf and allOf within each other")

func (m *meter) spend(n int) error {
	if n < 0 || n > m.left {
		return errTooMuch
	}
	m.left -= n
	return nil
}

// visit counts the application of a schema to a value, with everything that follows from it. inPlace is the number of schemas already
// applied to the same value in this chain.
func (m *meter) visit(s *jsonschema.Schema, v any, inPlace int) error {
	if s == nil || s.Bool != nil {
		return m.spend(1)
	}
	if inPlace > maxInPlace {
		return errTooMuch
	}
	if err := m.spend(1 + inPlace/16 + own(s, v)); err != nil {
		return err
	}
	m.reported += errorSize + tokenSize*m.depth
	if err := m.inPlace(s, v, inPlace+1); err != nil {
		return err
	}
	m.depth++
	defer func() { m.depth-- }()
	switch x := v.(type) {
	case map[string]any:
		return m.members(s, x)
	case []any:
		return m.items(s, x)
	}
	return nil
}

// inPlace counts the subschemas that apply to the same value.
func (m *meter) inPlace(s *jsonschema.Schema, v any, inPlace int) error {
	visit := func(list ...*jsonschema.Schema) error {
		for _, sub := range list {
			if sub == nil {
				continue
			}
			if err := m.visit(sub, v, inPlace); err != nil {
				return err
			}
		}
		return nil
	}
	for _, list := range [][]*jsonschema.Schema{{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf} {
		if err := visit(list...); err != nil {
			return err
		}
	}
	if s.RecursiveRef != nil || s.DynamicRef != nil { // the reference may resolve to any schema with such an anchor
		for _, sub := range m.dynamic {
			if s.RecursiveRef != nil && sub != s.RecursiveRef || s.DynamicRef != nil && sub != s.DynamicRef.Ref && sub.DynamicAnchor == s.DynamicRef.Anchor {
				if err := visit(sub); err != nil {
					return err
				}
			}
		}
		if s.DynamicRef != nil {
			if err := visit(s.DynamicRef.Ref); err != nil {
				return err
			}
		}
		if err := visit(s.RecursiveRef); err != nil {
			return err
		}
	}
	if _, isObject := v.(map[string]any); !isObject {
		return nil
	}
	for _, sub := range s.DependentSchemas {
		if err := visit(sub); err != nil {
			return err
		}
	}
	for _, dependency := range s.Dependencies {
		if sub, ok := dependency.(*jsonschema.Schema); ok {
			if err := visit(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// members counts the schemas that apply to the members of an object.
func (m *meter) members(s *jsonschema.Schema, object map[string]any) error {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema) //nolint:errcheck // nil if it is true or false, or missing
	for key, v := range object {
		known := false
		for re, sub := range s.PatternProperties {
			if err := m.spend(matching(re, key)); err != nil {
				return err
			}
			if re.MatchString(key) {
				known = true
				if err := m.visit(sub, v, 0); err != nil {
					return err
				}
			}
		}
		if sub, ok := s.Properties[key]; ok {
			known = true
			if err := m.visit(sub, v, 0); err != nil {
				return err
			}
		}
		if !known && additional != nil {
			if err := m.visit(additional, v, 0); err != nil {
				return err
			}
		}
		if s.PropertyNames != nil {
			if err := m.visit(s.PropertyNames, key, 0); err != nil {
				return err
			}
		}
		if s.UnevaluatedProperties != nil {
			if err := m.visit(s.UnevaluatedProperties, v, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// items counts the schemas that apply to the items of an array.
func (m *meter) items(s *jsonschema.Schema, list []any) error {
	earlier, _ := s.Items.([]*jsonschema.Schema)                            //nolint:errcheck // a list only in drafts before 2020-12, else nil
	prefix := append(earlier[:len(earlier):len(earlier)], s.PrefixItems...) //nolint:gocritic // the clipped capacity forces a copy
	every := []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems}
	for _, sub := range []any{s.Items, s.AdditionalItems} {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			every = append(every, sub)
		}
	}
	for i, v := range list {
		if i < len(prefix) {
			if err := m.visit(prefix[i], v, 0); err != nil {
				return err
			}
		}
		for _, sub := range every {
			if sub == nil {
				continue
			}
			if err := m.visit(sub, v, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// own returns the cost of the keywords of a schema that have no subschemas.
func own(s *jsonschema.Schema, v any) int {
	n := len(s.Required)
	switch x := v.(type) {
	case map[string]any:
		n += len(x) + len(s.PatternProperties) + len(s.DependentRequired)
	case []any:
		n += len(x)
		if s.UniqueItems {
			n += 10 * weigh(x)
		}
	case string:
		n += len(x) / 64
		if s.Pattern != nil {
			n += matching(s.Pattern, x)
		}
		if s.Format != nil && s.Format.Name == "regex" {
			n += regexFormSize
		}
	case json.Number, float64, int64:
		n++
		if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil {
			n += numberSteps
		}
	}
	if s.Enum != nil {
		n += len(s.Enum.Values) * comparing(v)
	}
	if s.Const != nil {
		n += comparing(v)
	}
	return min(n, MaxSteps+1)
}

// comparing returns the maximum cost of comparing a value with another.
func comparing(v any) int {
	switch v.(type) {
	case json.Number, float64, int64:
		return numberSteps
	}
	return weigh(v)
}

// weigh counts a value and all values in it; long texts count more.
func weigh(v any) int {
	n := 1
	switch x := v.(type) {
	case map[string]any:
		for _, member := range x {
			n += 2 + weigh(member)
		}
	case []any:
		for _, item := range x {
			n += weigh(item)
		}
	case string:
		n += len(x) / 64
	case json.Number:
		n = numberSteps
	}
	return n
}

// matching returns the cost of matching a text.
func matching(re jsonschema.Regexp, text string) int {
	p, ok := re.(*pattern.Pattern)
	if !ok {
		return MaxSteps + 1
	}
	return int(min(1+p.Steps(len(text))/regexpSteps, math.MaxInt32))
}

// engine compiles the regular expressions of one schema as a set, and after compiled is called, those in values whose format is regex.
func engine() (compile jsonschema.RegexpEngine, compiled func()) {
	set := &pattern.Set{}
	return func(source string) (jsonschema.Regexp, error) {
			if set == nil {
				return pattern.Compile(source)
			}
			return set.Compile(source)
		}, func() {
			set = nil
		}
}

// dynamic lists the schemas that a dynamic reference may resolve to.
func dynamic(root *jsonschema.Schema) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	seen := map[*jsonschema.Schema]bool{}
	var walk func(s *jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		if s.DynamicAnchor != "" || s.RecursiveAnchor {
			found = append(found, s)
		}
		for _, sub := range parts(s) {
			walk(sub)
		}
	}
	walk(root)
	return found
}

// parts lists the subschemas of a schema, including those that it refers to.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema,
	}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, more := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		list = append(list, more...)
	}
	for _, more := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, sub := range more {
			list = append(list, sub)
		}
	}
	for _, sub := range s.PatternProperties {
		list = append(list, sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			list = append(list, sub)
		}
	}
	for _, sub := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch sub := sub.(type) {
		case *jsonschema.Schema:
			list = append(list, sub)
		case []*jsonschema.Schema:
			list = append(list, sub...)
		}
	}
	return list
}

// simple returns an upper bound on the steps per byte of a value, or 0 if there is none, e.g. because the schema has references.
func simple(root *jsonschema.Schema) int {
	sum, plain := 0, true
	seen := map[*jsonschema.Schema]bool{}
	var walk func(s *jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil || !plain {
			return
		}
		if seen[s] || s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil || s.UniqueItems ||
			s.Format != nil && s.Format.Name == "regex" {
			plain = false
			return
		}
		seen[s] = true
		sum += 1 + numberSteps + len(s.Required) + len(s.PatternProperties) + len(s.DependentRequired)
		if s.Enum != nil {
			sum += len(s.Enum.Values) * numberSteps
		}
		for _, re := range regexps(s) {
			sum += matching(re, "")
		}
		for _, sub := range parts(s) {
			walk(sub)
		}
	}
	walk(root)
	if !plain {
		return 0
	}
	return sum
}

func regexps(s *jsonschema.Schema) []jsonschema.Regexp {
	var list []jsonschema.Regexp
	if s.Pattern != nil {
		list = append(list, s.Pattern)
	}
	for re := range s.PatternProperties {
		list = append(list, re)
	}
	return list
}
