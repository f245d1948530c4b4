package dataflow

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/clip"
)

const (
	// maxValueShown is the number of characters of a value that a finding shows.
	maxValueShown = 120
	// maxDepth is how deep an input and its schema may be nested. Deeper values are untrusted as a whole.
	maxDepth = 64
	// maxFindings limits how many arguments each list of findings holds. Further ones are dropped, except arguments that the schema names,
	// because rules look for those.
	maxFindings = 100
	// maxNamed limits how many arguments a list holds together with these.
	maxNamed = 1000
	// maxCalls limits how many calls a finding names.
	maxCalls = 10
	// maxComputed limits how many values of one input may be computed. More of them could carry a text.
	maxComputed = 10
)

// walk goes through the values of one input.
type walk struct {
	checker  *checker
	root     object
	rendered map[string][]string
	findings Findings
}

// input checks every value of a JSON document.
func (w *walk) input(input json.RawMessage) {
	w.document(input)
	if f := &w.findings; len(f.Computed) > maxComputed {
		f.Untrusted, f.Computed = append(f.Untrusted, f.Computed...), nil
	}
}

// document checks every value of a JSON document.
func (w *walk) document(input json.RawMessage) {
	if len(bytes.TrimSpace(input)) == 0 {
		return
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		w.add(&w.findings.Untrusted, location{}, string(input), nil)
		return
	}
	if _, err := d.Token(); err != io.EOF {
		w.add(&w.findings.Untrusted, location{}, string(input), nil)
		return
	}
	w.value(location{schema: w.root.subschemas(), named: true}, v)
}

// location is the location of a value in an input.
type location struct {
	path   string
	schema subschemas
	// named reports that the schema names the location: the value is in no list, and the schema has every name on the way to it.
	named bool
	depth int
}

// value checks the value v and everything in it.
func (w *walk) value(at location, v any) {
	if at.depth > maxDepth {
		w.add(&w.findings.Untrusted, at, "(nested too deeply)", nil)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			schema, known := at.schema.property(w.root, name)
			inner := location{path: at.path + "/" + escape.Replace(name), schema: schema, named: at.named && known, depth: at.depth + 1}
			if !known { // such a name may be a value, as in a map of amounts by recipient
				w.report(inner, name, w.checker.text(name, schema.destination()))
			}
			w.value(inner, v[name])
		}
	case []any:
		for i, item := range v {
			w.value(location{path: at.path + "/" + strconv.Itoa(i), schema: at.schema.item(w.root, i), depth: at.depth + 1}, item)
		}
	case string, json.Number:
		w.leaf(at, v)
	}
}

// escape writes a name as a part of a JSON Pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1") // immutable

// leaf checks a string or a number.
func (w *walk) leaf(at location, v any) {
	if at.schema.constant(v) {
		return
	}
	var found outcome
	var text string
	switch v := v.(type) {
	case string:
		text, found = v, w.checker.text(v, at.schema.destination())
		if parts, ok := w.rendered[v]; ok && found.untrusted {
			found = w.checker.parts(v, found, parts, at.schema.destination())
		}
	case json.Number:
		text, found = string(v), w.checker.number(v, at.schema.destination(), at.schema.quantity())
	}
	w.report(at, text, found)
}

// report adds a value that cannot be traced to the findings.
func (w *walk) report(at location, text string, found outcome) {
	switch {
	case found.computed:
		w.add(&w.findings.Computed, at, text, nil)
	case found.untrusted:
		w.add(&w.findings.Untrusted, at, text, found.calls)
		if found.destination {
			w.add(&w.findings.UnknownDestinations, at, text, found.calls)
		}
	}
}

// add appends an argument to a list of findings, unless the list is full.
func (w *walk) add(list *[]Argument, at location, value string, calls []string) {
	if len(*list) >= maxFindings && (!at.named || len(*list) >= maxNamed) {
		w.findings.Cut = true
		return
	}
	*list = append(*list, Argument{
		Path: clip.Runes(at.path, maxValueShown), Value: clip.Runes(clip.Bytes(value, 8*maxValueShown), maxValueShown), Calls: calls,
	})
}

// Part is a part of a document that cannot be traced.
type Part struct {
	// Line and Column say where the part begins, from 1. Columns count characters.
	Line, Column int
	// Text is the part without blanks around it, at most 120 characters.
	Text string
	// Calls lists the untrusted results that contain something of the part; see [Argument].
	Calls []string
}

// Parts returns the parts of a document that cannot be traced: its lines, or pieces of 120 characters of longer lines. ok is false if comparing them
// takes too much work, so that some are missing.
func (t *Tracer) Parts(document string) (parts []Part, ok bool) {
	c := &checker{Tracer: t, work: maxWork}
	line := 0
	for text := range strings.Lines(document) {
		line++
		for column := 1; text != ""; {
			piece, rest := split(text)
			if value := strings.TrimSpace(piece); value != "" {
				if found := c.text(value, false); found.untrusted || found.computed {
					parts = append(parts, Part{Line: line, Column: column, Text: value, Calls: found.calls})
				}
			}
			text, column = rest, column+utf8.RuneCountInString(piece)
		}
		if c.work <= 0 {
			return parts, false
		}
	}
	return parts, true
}

// split cuts off the first piece of a line, at the last blank if there is one.
func split(line string) (piece, rest string) {
	end, blank, n := len(line), 0, 0
	for i, r := range line {
		if n == maxValueShown {
			end = i
			break
		}
		if n++; r == ' ' || r == '\t' {
			blank = i + 1
		}
	}
	if end < len(line) && blank > 0 {
		end = blank
	}
	return line[:end], line[end:]
}
