package schema

import (
	"encoding/json"
	"math"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/pattern"
)

// The bounds on one validation.
const (
	// MaxSteps is how many times a subschema may be held against a value, counting more for what takes longer. It is about two seconds.
	MaxSteps = 5_000_000
	// maxInPlace is how many subschemas may lead to one another without going deeper into the value.
	maxInPlace = 500
	// maxReported is what the errors of a validation may take at most, in bytes, if each subschema fails. The places of a value
	// for which it is more are not named.
	maxReported = 64 << 20
	errorSize   = 250
	tokenSize   = 16
	// What single keywords take, in steps.
	regexpSteps   = 64 // of a regular expression's, for one of ours
	numberSteps   = 8
	regexFormSize = 20_000
)

// meter counts what validating a value takes before it is done. The library has no limit of its own, and schemas whose parts
// refer to each other take time that doubles with every one of them: {"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}.
type meter struct {
	left    int
	dynamic []*jsonschema.Schema
	// depth is how deep the value lies, reported what its errors take when it fails everywhere.
	depth, reported int
}

// errTooMuch ends a count.
var errTooMuch = jig.Errorf(jig.CodeInvalidInput, "checking the value against its schema takes more than %d steps", MaxSteps).
	WithReason("limit_exceeded").WithHint("make the value smaller, or the schema simpler: fewer $ref, anyOf and allOf within each other")

func (m *meter) spend(n int) error {
	if n < 0 || n > m.left {
		return errTooMuch
	}
	m.left -= n
	return nil
}

// visit counts a schema that is held against a value, and all that this leads to. inPlace is how many schemas were before it
// at the same place of the value.
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

// inPlace counts the subschemas for the same value.
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
	if s.RecursiveRef != nil || s.DynamicRef != nil { // whichever schema of such an anchor it leads to
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

// members counts the schemas for what an object holds.
func (m *meter) members(s *jsonschema.Schema, object map[string]any) error {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema) //nolint:errcheck // nil for true and false
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

// items counts the schemas for what a list holds.
func (m *meter) items(s *jsonschema.Schema, list []any) error {
	earlier, _ := s.Items.([]*jsonschema.Schema)                            //nolint:errcheck // of drafts before 2020-12
	prefix := append(earlier[:len(earlier):len(earlier)], s.PrefixItems...) //nolint:gocritic // the capacity is clipped
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

// own counts the keywords of a schema that have no subschemas.
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

// comparing is what comparing a value with another one takes at most.
func comparing(v any) int {
	switch v.(type) {
	case json.Number, float64, int64:
		return numberSteps
	}
	return weigh(v)
}

// weigh counts a value and what is in it, long texts more.
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

// matching is what matching a text takes.
func matching(re jsonschema.Regexp, text string) int {
	p, ok := re.(*pattern.Pattern)
	if !ok {
		return MaxSteps + 1
	}
	return int(min(1+p.Steps(len(text))/regexpSteps, math.MaxInt32))
}

// engine compiles the regular expressions of one schema, and later those that a value holds where format is regex.
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

// dynamic lists the schemas that a dynamic reference may lead to.
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

// parts lists the subschemas of a schema, those that it refers to included.
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

// simple bounds the steps that a byte of a value takes, 0 when that cannot be said: of schemas that refer to others.
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
