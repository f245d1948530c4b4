package dataflow

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig/internal/clip"
)

const (
	// maxValueShown is the number of characters of a value that a finding shows.
	maxValueShown = 120
	// maxDepth is how deep an input and its schema may be nested. Deeper values are untrusted as a whole.
	maxDepth = 64
	// maxFindings is the number of arguments that each list of findings holds. Further ones are dropped, which changes no decision.
	maxFindings = 100
	// maxCalls is the number of calls that a finding names.
	maxCalls = 10
)

// walk goes through the values of one input.
type walk struct {
	judge    *judge
	root     object
	schema   string
	findings Findings
}

// input judges every value of a JSON document.
func (w *walk) input(input json.RawMessage) {
	if len(bytes.TrimSpace(input)) == 0 {
		return
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		w.add(&w.findings.Untrusted, "", string(input), nil)
		return
	}
	if _, err := d.Token(); err != io.EOF {
		w.add(&w.findings.Untrusted, "", string(input), nil)
		return
	}
	w.value("", v, w.root.places(), 0)
}

// value judges the value v at path. schema describes its places.
func (w *walk) value(path string, v any, schema places, depth int) {
	if depth > maxDepth {
		w.add(&w.findings.Untrusted, path, "(nested too deeply)", nil)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "/" + escape.Replace(name)
			inner, known := schema.property(w.root, name)
			if !known && !strings.Contains(w.schema, name) {
				w.name(at, name)
			}
			w.value(at, v[name], inner, depth+1)
		}
	case []any:
		for i, item := range v {
			w.value(path+"/"+strconv.Itoa(i), item, schema.item(w.root, i), depth+1)
		}
	case string, json.Number:
		w.leaf(path, v, schema)
	}
}

// name judges the name of a property that the schema does not know. Such a name may be a value, as in a list of recipients. One that stands in
// no text is the model's.
func (w *walk) name(path, name string) {
	if j := w.judge.text(name, false); j.destination || len(j.calls) > 0 {
		w.report(path, name, j)
	}
}

// escape writes a name as a part of a JSON Pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1") // immutable

// leaf judges a string or a number.
func (w *walk) leaf(path string, v any, schema places) {
	if schema.constant(v) {
		return
	}
	var j judgement
	var text string
	switch v := v.(type) {
	case string:
		text, j = v, w.judge.text(v, schema.destination())
	case json.Number:
		text, j = string(v), w.judge.number(v, schema.destination(), schema.magnitude())
	}
	w.report(path, text, j)
}

// report adds what is known about a value to the findings.
func (w *walk) report(path, text string, j judgement) {
	switch {
	case j.computed:
		w.add(&w.findings.Computed, path, text, nil)
	case j.untrusted:
		w.add(&w.findings.Untrusted, path, text, j.calls)
		if j.destination {
			w.add(&w.findings.UnknownDestinations, path, text, j.calls)
		}
	}
}

// add appends an argument to a list of findings.
func (w *walk) add(list *[]Argument, path, value string, calls []string) {
	if len(*list) < maxFindings {
		*list = append(*list, Argument{
			Path: clip.Runes(path, maxValueShown), Value: clip.Runes(clip.Bytes(value, 8*maxValueShown), maxValueShown), Calls: calls,
		})
	}
}
