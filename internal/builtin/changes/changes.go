// Package changes describes to people what registering and removing documents changes, so that they can decide about it. It does no I/O of
// its own and changes nothing.
//
//   - A [Planned] is a change that package bundle has worked out. [Planned.Preview] is the entry: it reads the documents concerned and
//     returns the preview, with the state of the documents as its precondition.
//   - A [List] collects the changes: what is added, changed, removed or kept, each with a diff.
//   - A comparison (looser.go, settings.go) says what a new version guards less than the one before (LOOSER), and what a person has to judge
//     (CHECK). It compares documents of each kind by what they mean, not by their text.
//   - The users of documents that are removed are checked without these; the new problems are listed first (BREAKS).
package changes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/spec"
)

// The words before a change that guards less, and before one that can guard less or more, which a person has to judge.
const (
	looserWord = "LOOSER: "
	checkWord  = "CHECK: "
)

// List collects changes of documents.
type List struct {
	// Loaded reads documents; nil keeps none of them for the next time.
	Loaded *loaded.Documents

	added, changed, removed, kept, unchanged []string
	looser, check, breaks, diffs             []string
}

// Put adds a document that is registered. before is the body that is current now; nil if there is none.
func (l *List) Put(doc spec.Document, before []byte) {
	name := nameOf(doc)
	switch {
	case before == nil:
		l.added = append(l.added, name)
		l.diffs = append(l.diffs, preview.All("added: "+name, "+", text(doc)))
		l.compare(name, spec.Document{}, doc)
	case string(before) == string(doc.Body):
		l.unchanged = append(l.unchanged, name)
	default:
		old, readable := load(l.Loaded, string(doc.Kind), doc.Name, before)
		if !readable {
			l.check = append(l.check, name+": its current version cannot be read, so nobody can tell what it guards")
		}
		l.changed = append(l.changed, name)
		l.diffs = append(l.diffs, preview.Diff("changed: "+name, text(old), text(doc)))
		l.compare(name, old, doc)
	}
}

// Remove adds a document that is taken out of use. body is its current body.
func (l *List) Remove(kind, name string, body []byte) {
	doc, _ := load(l.Loaded, kind, name, body)
	shown := nameOf(doc)
	l.removed = append(l.removed, shown)
	l.diffs = append(l.diffs, preview.All("removed: "+shown, "-", text(doc)))
	l.compare(shown, doc, spec.Document{})
}

// Keep adds a document that stays in use as it is, although its bundle no longer brings it or brings another version. why says who needs it.
func (l *List) Keep(kind, name string, body []byte, why string) {
	doc, _ := load(l.Loaded, kind, name, body)
	l.kept = append(l.kept, nameOf(doc)+" ("+why+")")
}

// Give adds a document whose current version gives way to a version that is stored already, such as that of another bundle.
func (l *List) Give(kind, name string, before, after []byte) {
	doc, _ := load(l.Loaded, kind, name, after)
	doc.Body = after
	l.Put(doc, before)
}

// compare adds what guards less when a document replaces another. One of them is the zero Document if there is none.
func (l *List) compare(name string, before, after spec.Document) {
	c := comparison{}
	c.documents(before, after)
	for _, why := range c.looser {
		l.looser = append(l.looser, name+": "+why)
	}
	for _, why := range c.check {
		l.check = append(l.check, name+": "+why)
	}
}

// Preview returns the changes, beginning with those that guard less. what begins the title, such as "Registers documents".
func (l *List) Preview(what string) jig.Preview {
	p := jig.Preview{Title: what + ": " + l.count()}
	for _, why := range l.looser {
		p.Changes = append(p.Changes, looserWord+why)
	}
	for _, why := range l.check {
		p.Changes = append(p.Changes, checkWord+why)
	}
	for _, why := range l.breaks {
		p.Changes = append(p.Changes, breaksWord+why)
	}
	for _, part := range l.parts() {
		if len(part.names) > 0 && !l.only() {
			p.Changes = append(p.Changes, part.word+": "+strings.Join(part.names, ", "))
		}
	}
	p.Changes = append(p.Changes, l.diffs...)
	return p
}

// part lists the documents to which the same happens.
type part struct {
	word  string
	names []string
}

// only reports whether the list has a single document, and the diff of that document. The heading of the diff then says everything.
func (l *List) only() bool {
	return len(l.diffs) == 1 && len(l.added)+len(l.changed)+len(l.removed)+len(l.kept)+len(l.unchanged) == 1
}

func (l *List) parts() []part {
	return []part{{"added", l.added}, {"changed", l.changed}, {"removed", l.removed}, {"stays in use", l.kept}, {"unchanged", l.unchanged}}
}

// count returns how many documents change and how, and how many changes a person should look at.
func (l *List) count() string {
	var counted []string
	for _, part := range l.parts() {
		if len(part.names) > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", len(part.names), part.word))
		}
	}
	text := strings.Join(counted, ", ")
	if len(l.added)+len(l.changed)+len(l.removed) == 0 {
		text = "nothing changes"
	}
	if n := len(l.looser); n > 0 {
		text += "; LOOSER in " + plural(n, "way")
	}
	if n := len(l.check); n > 0 {
		text += "; " + plural(n, "change") + " to CHECK"
	}
	if n := len(l.breaks); n > 0 {
		text += "; BREAKS " + plural(n, "document")
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// load reads a document as it is stored. If it cannot be read, for example because it uses an older version of the language, the document has
// only its kind, name, version and text.
func load(from *loaded.Documents, kind, name string, body []byte) (doc spec.Document, readable bool) {
	doc, problems := from.Stored(kind, name, body)
	readable = len(problems.Errors()) == 0
	if !readable {
		doc = spec.Document{Kind: doc.Kind, Version: doc.Version, Body: body}
	}
	doc.Name = name
	if doc.Kind == "" {
		doc.Kind = spec.Kind(kind)
	}
	return doc, readable
}

func nameOf(doc spec.Document) string { return string(doc.Kind) + " " + doc.Name }

// text returns a document as people read it. A skill is stored as JSON, and shown as its instructions and files.
func text(doc spec.Document) string {
	if doc.Skill() == nil {
		return string(doc.Body)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "description: %s\n\n%s\n", doc.Skill().Description, doc.Skill().Instructions)
	for _, file := range slices.Sorted(maps.Keys(doc.Skill().Files)) {
		fmt.Fprintf(&b, "\nfile %s:\n%s\n", file, doc.Skill().Files[file])
	}
	return b.String()
}
