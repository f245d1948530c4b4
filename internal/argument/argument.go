// Package argument writes the marked arguments of tool calls in canonical form, so that policy, grants, approvers and tools see the same bytes
// however a path or a URL was spelled. It must not know what tools do with their arguments.
package argument

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/strictjson"
)

// maxSteps bounds the parts of the schema that are visited for one input.
const maxSteps = 1_000_000

// Canonical returns an input with each string that its schema marks with x-path or x-url in canonical form; see [Path] and [URL]. It follows
// references within the schema and every branch of its combinations. All else stays as it is written; so does an input that is not acceptable
// JSON, which validation refuses. The error is INVALID_INPUT; its field is a JSON pointer.
func Canonical(schema, input json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(schema, []byte(jig.PathKey)) && !bytes.Contains(schema, []byte(jig.URLKey)) {
		return input, nil
	}
	limits := strictjson.Limits{Depth: 500, Values: strictjson.MaxValues}
	document, err := strictjson.Decode(schema, limits)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "reading an input schema: %w", err)
	}
	value, err := strictjson.Decode(input, limits)
	if err != nil {
		return input, nil //nolint:nilerr // validation says what is wrong
	}
	w := walker{document: document, patterns: map[string]*pattern.Pattern{}}
	done, err := w.value([]any{document}, value, nil)
	if err != nil || !w.changed {
		return input, err
	}
	return jsontext.Encode(done)
}

// walker walks through an input and its schema side by side.
type walker struct {
	document any
	patterns map[string]*pattern.Pattern
	steps    int
	changed  bool
}

// value returns a value in canonical form. nodes are the schemas that apply to it.
func (w *walker) value(nodes []any, value any, path []string) (any, error) {
	objects := w.expand(nodes)
	if w.steps > maxSteps {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input is too large for its schema").WithReason("limit_exceeded")
	}
	var err error
	switch v := value.(type) {
	case string:
		return w.text(objects, v, path)
	case []any:
		for i := range v {
			if below := itemsOf(objects, i); len(below) > 0 {
				if v[i], err = w.value(below, v[i], append(path, strconv.Itoa(i))); err != nil {
					return nil, err
				}
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if below := w.members(objects, name); len(below) > 0 {
				if v[name], err = w.value(below, v[name], append(path, name)); err != nil {
					return nil, err
				}
			}
		}
	}
	return value, nil
}

// text applies the marks of a string. If both are there, in different branches, the text decides which one is meant.
func (w *walker) text(objects []map[string]any, text string, path []string) (any, error) {
	marked := func(key string) bool {
		return slices.ContainsFunc(objects, func(o map[string]any) bool { return o[key] == true })
	}
	isURL, isPath := marked(jig.URLKey), marked(jig.PathKey)
	if isURL && isPath {
		isURL = strings.Contains(text, "://")
	}
	canonical, err := text, error(nil)
	switch {
	case isURL:
		canonical, err = URL(text)
	case isPath:
		canonical, err = Path(text)
	}
	if err != nil {
		e, at := jig.AsError(err), strictjson.Pointer(path...)
		return nil, e.Reworded("%s %s", jig.Known(at), e.Words()).WithField(at)
	}
	w.changed = w.changed || canonical != text
	return canonical, nil
}

// expand returns the schemas that apply to the same value as the given ones: these, what they refer to, and the branches of their combinations.
func (w *walker) expand(nodes []any) []map[string]any {
	var all []map[string]any
	seen := map[string]bool{}
	for queue := slices.Clone(nodes); len(queue) > 0 && w.steps <= maxSteps; queue = queue[1:] {
		w.steps++
		node, ok := queue[0].(map[string]any)
		if !ok {
			continue
		}
		all = append(all, node)
		for _, key := range []string{"$ref", "$dynamicRef"} {
			if ref, ok := node[key].(string); ok && !seen[ref] {
				seen[ref] = true
				queue = append(queue, w.lookUp(ref))
			}
		}
		for _, key := range []string{"allOf", "anyOf", "oneOf"} {
			if branches, ok := node[key].([]any); ok {
				queue = append(queue, branches...)
			}
		}
		queue = append(queue, node["if"], node["then"], node["else"])
		if dependent, ok := node["dependentSchemas"].(map[string]any); ok {
			queue = slices.AppendSeq(queue, maps.Values(dependent))
		}
	}
	return all
}

// lookUp returns what a reference within the document leads to: a JSON pointer or an anchor. It returns nil if there is nothing.
func (w *walker) lookUp(ref string) any {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if fragment != "" && fragment[0] != '/' {
		return w.anchored(w.document, fragment)
	}
	node, found := strictjson.LookUp(w.document, unescaped(fragment))
	if !found {
		return nil
	}
	return node
}

func unescaped(fragment string) string {
	if text, err := url.PathUnescape(fragment); err == nil {
		return text
	}
	return fragment
}

// anchored returns the schema that has an anchor.
func (w *walker) anchored(node any, anchor string) any {
	w.steps++
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			if found := w.anchored(item, anchor); found != nil {
				return found
			}
		}
	case map[string]any:
		if n["$anchor"] == anchor || n["$dynamicAnchor"] == anchor {
			return n
		}
		for _, member := range n {
			if found := w.anchored(member, anchor); found != nil {
				return found
			}
		}
	}
	return nil
}

// itemsOf returns the schemas of an item of a list.
func itemsOf(objects []map[string]any, at int) []any {
	var below []any
	for _, o := range objects {
		prefix, _ := o["prefixItems"].([]any) //nolint:errcheck // another type has no items
		if at < len(prefix) {
			below = append(below, prefix[at])
		} else {
			below = append(below, o["items"], o["unevaluatedItems"])
		}
		below = append(below, o["contains"])
	}
	return schemas(below)
}

// members returns the schemas of a member of an object.
func (w *walker) members(objects []map[string]any, name string) []any {
	var below []any
	for _, o := range objects {
		named, _ := o["properties"].(map[string]any) //nolint:errcheck // another type has no members
		property, known := named[name]
		below = append(below, property)
		if patterns, ok := o["patternProperties"].(map[string]any); ok {
			for source, node := range patterns {
				if w.matches(source, name) {
					below, known = append(below, node), true
				}
			}
		}
		if !known {
			below = append(below, o["additionalProperties"], o["unevaluatedProperties"])
		}
	}
	return schemas(below)
}

// matches reports whether a name matches the regular expression of patternProperties, or whether that is not known.
func (w *walker) matches(source, name string) bool {
	p, ok := w.patterns[source]
	if !ok {
		p, _ = pattern.Compile(source) //nolint:errcheck // without a pattern, every name matches
		w.patterns[source] = p
	}
	return p == nil || p.MatchString(name)
}

func schemas(list []any) []any {
	return slices.DeleteFunc(list, func(node any) bool { _, ok := node.(map[string]any); return !ok })
}
