package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/dataflow"
	"github.com/jig-run/jig/internal/toolname"
)

const (
	// maxNotes is how many untrusted arguments are described to people.
	maxNotes = 10
	// maxMarks is how many untrusted parts of documents are shown to people. The text of documents with more of them cannot become trusted.
	maxMarks = 40
)

// notes describes the untrusted arguments of a call to people. In the documents that a call registers, it marks the parts that cannot be traced. marked
// reports that nothing is missing, so that the text of the documents is trusted once somebody has approved the call.
func (o *origins) notes(tracer *sessionTracer, call *jig.Call, found dataflow.Findings) (notes []string, marked bool) {
	documents := registered(*call)
	marked = len(documents) > 0 && len(found.Computed) == 0 && !found.Cut
	var others, marks int
	for _, argument := range found.Untrusted {
		body, ok := documents[argument.Path]
		switch {
		case ok:
			more, whole := o.marks(tracer, argument.Path, body, maxMarks-marks)
			notes, marks, marked = append(notes, more...), marks+len(more), marked && whole
		case others < maxNotes:
			notes, others = append(notes, o.note(argument)), others+1
		default:
			marked = false
		}
	}
	if marked && marks > 0 {
		notes = append(notes, "the text of these documents is trusted once somebody has approved the call")
	}
	return notes, marked
}

// registered returns the documents that a call registers, by their place in its input.
func registered(call jig.Call) map[string]string {
	type file struct{ Body string }
	var in struct{ Documents, Files []file }
	if call.Tool != toolname.CatalogPut && call.Tool != toolname.BundleInstall || json.Unmarshal(call.Input, &in) != nil {
		return nil
	}
	documents := map[string]string{}
	for name, files := range map[string][]file{"documents": in.Documents, "files": in.Files} {
		for i, f := range files {
			documents["/"+name+"/"+strconv.Itoa(i)+"/body"] = f.Body
		}
	}
	return documents
}

// marks describes the parts of a document that cannot be traced: one by one if they contain something of an untrusted result, and the others by their
// lines. whole is false if there are more than limit.
func (o *origins) marks(tracer *sessionTracer, path, body string, limit int) (marks []string, whole bool) {
	parts, whole := tracer.Parts(body)
	var unknown []int
	for _, part := range parts {
		if len(part.Calls) == 0 {
			unknown = append(unknown, part.Line)
			continue
		}
		place := fmt.Sprintf("%s line %d", path, part.Line)
		if part.Column > 1 {
			place += fmt.Sprintf(", column %d", part.Column)
		}
		marks = append(marks, o.note(dataflow.Argument{Path: place, Value: part.Text, Calls: part.Calls}))
	}
	if lines := ranges(unknown); len(lines) > 0 {
		marks = append(marks, fmt.Sprintf("%s, in no text that the session has seen: lines %s", path, strings.Join(lines, ", ")))
		limit -= len(lines) - 1
	}
	if !whole || len(marks) > limit {
		return []string{path + " has too many parts that cannot be traced to show them, so its text stays untrusted"}, false
	}
	return marks, true
}

// ranges writes ascending numbers with dashes for those in a row, e.g. 1-3, 7.
func ranges(numbers []int) []string {
	numbers = slices.Compact(numbers)
	var list []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		text := strconv.Itoa(numbers[i])
		if end > i {
			text += "-" + strconv.Itoa(numbers[end])
		}
		list, i = append(list, text), end+1
	}
	return list
}
