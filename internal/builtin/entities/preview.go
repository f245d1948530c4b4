package entities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/preview"
)

// atRevision names the state of an entity. It is the precondition of previews that change an entity.
func atRevision(n int64) string { return "revision " + strconv.FormatInt(n, 10) }

// ofType names the version of a type. It is the precondition of previews that create an entity.
func ofType(t entity.Type) string { return "type " + t.Name + " at version " + t.Version }

// unmet returns the error of a call whose precondition does not hold.
func unmet(precondition, now string) *jig.Error {
	e := jig.Errorf(jig.CodeConflict, "people approved a change of %s, and this is %s", precondition, now).
		WithReason("precondition").WithHint("read it again and repeat the call")
	e.NotExecuted = true
	return e
}

func (o Options) previewCreate(ctx context.Context, inv jig.Invocation, in createIn) (jig.Preview, error) {
	t, err := o.Type(ctx, inv, "/type", in.Type, entity.ActionWrite)
	if err != nil {
		return jig.Preview{}, err
	}
	body, content, err := o.Complete(t, in.Content, "/content")
	if err != nil {
		return jig.Preview{}, err
	}
	if _, err := o.Relations(ctx, inv, t, content, "/content"); err != nil {
		return jig.Preview{}, err
	}
	p := jig.Preview{Title: fmt.Sprintf("Creates %s %s", t.Name, called(in.Title)), Precondition: ofType(t)}
	if in.Workspace != "" {
		p.Title += " in workspace " + in.Workspace
	}
	fields := fieldsOf(body)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		p.Changes = append(p.Changes, change(name, nil, fields[name]))
	}
	return p, nil
}

func (o Options) previewUpdate(ctx context.Context, inv jig.Invocation, in updateIn) (jig.Preview, error) {
	e, t, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return jig.Preview{}, err
	}
	if e.Revision != in.Revision {
		return jig.Preview{
			Title: fmt.Sprintf("Fails with CONFLICT: %s is at revision %d, and the call is for revision %d", of(e), e.Revision, in.Revision),
			// The handler checks the revision of the input in any case.
			Precondition: atRevision(in.Revision),
		}, nil
	}
	if _, err := o.patch(ctx, inv, t, in); err != nil {
		return jig.Preview{}, err
	}
	p := jig.Preview{Precondition: atRevision(in.Revision)}
	if in.Title != nil && *in.Title != e.Title {
		p.Changes = append(p.Changes, change("title", quoted(e.Title), quoted(*in.Title)))
	}
	before := fieldsOf(e.Content)
	for _, name := range slices.Sorted(maps.Keys(in.Set)) {
		after := in.Set[name]
		if string(after) == "null" {
			after = nil
		}
		if !same(before[name], after) {
			p.Changes = append(p.Changes, change(name, before[name], after))
		}
	}
	p.Title = fmt.Sprintf("Changes %s: %s", of(e), counted(len(p.Changes), "value"))
	if len(p.Changes) == 0 {
		p.Title = "Changes nothing: " + of(e) + " has these values already"
	}
	return p, nil
}

func (o Options) previewDelete(ctx context.Context, inv jig.Invocation, in deleteIn) (jig.Preview, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionDelete)
	if err != nil {
		return jig.Preview{}, err
	}
	if in.Revision != 0 && in.Revision != e.Revision {
		return jig.Preview{
			Title:        fmt.Sprintf("Fails with CONFLICT: %s is at revision %d, and the call is for revision %d", of(e), e.Revision, in.Revision),
			Precondition: atRevision(in.Revision),
		}, nil
	}
	p := jig.Preview{Title: "Deletes " + of(e) + " with its texts and relations", Precondition: atRevision(e.Revision)}
	fields := fieldsOf(e.Content)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		p.Changes = append(p.Changes, change(name, fields[name], nil))
	}
	return p, nil
}

func (o Options) previewRelation(ctx context.Context, inv jig.Invocation, in Related) (jig.Preview, error) {
	to, _, err := o.Entity(ctx, inv, "/to", in.To, entity.ActionRead)
	if err != nil {
		return jig.Preview{}, err
	}
	from, _, err := o.Entity(ctx, inv, "/from", in.From, entity.ActionWrite)
	if err != nil {
		return jig.Preview{}, err
	}
	return jig.Preview{Title: "Adds a relation " + in.Name, Changes: []string{"+ " + of(from) + " " + in.Name + " " + of(to)}}, nil
}

func (o Options) previewText(ctx context.Context, inv jig.Invocation, in putTextIn) (jig.Preview, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return jig.Preview{}, err
	}
	if in.Document == "" {
		return jig.Preview{
			Title: "Adds a text " + called(in.Title) + " to " + of(e), Changes: []string{preview.All("text", "+", in.Body)},
		}, nil
	}
	old, err := o.Store.Text(ctx, inv.Tenant, in.Document)
	if err != nil || old.EntityID != e.ID {
		return jig.Preview{}, noText(err, in.Document)
	}
	p := jig.Preview{Title: "Replaces the text " + in.Document + " of " + of(e)}
	if old.Title != in.Title {
		p.Changes = append(p.Changes, change("title", quoted(old.Title), quoted(in.Title)))
	}
	if diff := preview.Diff("text", old.Body, in.Body); diff != "" {
		p.Changes = append(p.Changes, diff)
	}
	return p, nil
}

// of names an entity for people.
func of(e entity.Entity) string { return e.Type + " " + called(e.Title) + " (" + e.ID + ")" }

func called(title string) string {
	if title == "" {
		return "without a title"
	}
	return string(quoted(title))
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // texts can always be encoded
		return nil
	}
	return b
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func fieldsOf(content json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(content, &fields) != nil {
		return nil
	}
	return fields
}

// maxShort is the length of the longest values that share a line.
const maxShort = 120

// change describes the change of a value; nil means that there is no value. Two short values are shown on one line, long ones as a diff.
func change(name string, before, after json.RawMessage) string {
	was, is := compact(before), compact(after)
	if len(was)+len(is) <= maxShort && !strings.Contains(was+is, `\n`) {
		switch {
		case before == nil:
			return "+ " + name + ": " + is
		case after == nil:
			return "- " + name + ": " + was
		}
		return name + ": " + was + " → " + is
	}
	old, now := shown(before), shown(after)
	switch {
	case before == nil:
		return preview.All(name, "+", now)
	case after == nil:
		return preview.All(name, "-", old)
	}
	return preview.Diff(name, old, now)
}

// shown returns a string unchanged, and any other value as indented JSON.
func shown(v json.RawMessage) string {
	var s string
	if v == nil || json.Unmarshal(v, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return string(v)
	}
	return b.String()
}

func compact(v json.RawMessage) string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// same reports whether two values are equal as JSON.
func same(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return compact(a) == compact(b)
}
