package changes

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/spec"
)

// Stored returns documents as the store keeps them.
func Stored(docs []spec.Document) []bundle.StoredDocument {
	list := make([]bundle.StoredDocument, len(docs))
	for i, doc := range docs {
		list[i] = bundle.StoredDocument{
			DocumentVersion: bundle.DocumentVersion{Kind: doc.Kind.Stored(), Name: doc.Name, Version: doc.Version}, Body: doc.Body,
		}
	}
	return list
}

// Keys returns the documents regardless of their versions.
func Keys(docs []bundle.StoredDocument) []bundle.Key {
	list := make([]bundle.Key, len(docs))
	for i, d := range docs {
		list[i] = d.Key()
	}
	return list
}

// Planned is a change of a tenant's documents that has been planned.
type Planned struct {
	Snapshot *bundle.Snapshot
	Plan     bundle.Plan
	// Documents are the documents of the call, if it has any.
	Documents []spec.Document
	// Loaded reads the documents; nil keeps none of them for the next time.
	Loaded *loaded.Documents
	// Known is the tenant's catalog before the change, in which uses of removed documents are looked for; nil if the change removes none.
	Known *spec.Catalog

	// users are the documents that may use those removed. body returns the body of a version that the tenant sees.
	users *users
	body  func(d bundle.DocumentVersion) ([]byte, error)
}

// Preview describes the change to a tenant whose documents are read from stored. Its precondition is the state of the documents, which the
// store checks in the transaction that changes them. what begins the title.
func (p Planned) Preview(ctx context.Context, stored Documents, tenant, what string) (shown jig.Preview, err error) {
	p.body = func(d bundle.DocumentVersion) ([]byte, error) {
		return stored.DocumentAt(ctx, tenant, d.Kind, d.Name, d.Version)
	}
	if p.Known != nil {
		if p.users, err = p.readUsers(ctx, stored, tenant); err != nil {
			return jig.Preview{}, err
		}
	}
	list := List{Loaded: p.Loaded}
	if err := list.planned(p); err != nil {
		return jig.Preview{}, err
	}
	shown = list.Preview(what)
	shown.Precondition, err = p.Snapshot.State()
	return shown, err
}

// Entities returns the number of entities of the types among some documents. counts has the numbers of all types.
func Entities(documents []bundle.DocumentVersion, counts []entity.Count) (n int64) {
	types := bundle.NamesOf(documents, spec.KindEntityType.Stored())
	for _, count := range counts {
		if slices.Contains(types, count.Type) {
			n += count.Count
		}
	}
	return n
}

// planned adds what a planned change does to each document.
func (l *List) planned(p Planned) error {
	for _, doc := range p.Documents {
		if err := l.put(p, doc); err != nil {
			return err
		}
	}
	for _, h := range p.Plan.Inherited {
		if err := l.give(p, h.DocumentVersion, "the bundle "+h.Bundle+" has it, too"); err != nil {
			return err
		}
	}
	gone := map[bundle.Key]bool{}
	for _, d := range p.Plan.Removed {
		if shared, there := p.Snapshot.Shared[d.Key()]; there {
			if err := l.give(p, shared, "all tenants have it"); err != nil {
				return err
			}
			continue
		}
		body, err := p.body(d)
		if err != nil {
			return err
		}
		l.Remove(d.Kind, d.Name, body)
		gone[d.Key()] = true
	}
	if p.users != nil {
		l.breaks = p.users.broken(gone, p.Snapshot.Name)
	}
	for _, h := range p.Plan.Kept {
		why := "the tenant has registered it, too"
		switch {
		case h.Bundle != "":
			why = "the bundle " + h.Bundle + " has it, too"
		case p.Snapshot.Before != nil && !slices.Contains(p.Snapshot.Before.Documents, h.DocumentVersion):
			why = "the tenant has a version of its own"
		}
		body, err := p.body(h.DocumentVersion)
		if err != nil {
			return err
		}
		l.Keep(h.Kind, h.Name, body, why)
	}
	return nil
}

// put adds a document of the call. If the plan leaves the tenant's version in place, the document changes nothing.
func (l *List) put(p Planned, doc spec.Document) error {
	key := bundle.Key{Kind: doc.Kind.Stored(), Name: doc.Name}
	seen, there := p.Snapshot.Seen(key)
	if !there {
		l.Put(doc, nil)
		return nil
	}
	before, err := p.body(seen)
	if err != nil {
		return err
	}
	for _, d := range p.Plan.Put {
		if d.Key() == key {
			l.Put(doc, before)
			return nil
		}
	}
	if seen.Version == doc.Version {
		l.Put(doc, before)
	} else {
		l.Keep(key.Kind, key.Name, before, "the tenant has a version of its own")
	}
	return nil
}

// give adds a document whose version from now on is that of somebody else.
func (l *List) give(p Planned, after bundle.DocumentVersion, same string) error {
	body, err := p.body(after)
	if err != nil {
		return err
	}
	if before := p.Snapshot.Current[after.Key()].DocumentVersion; before != after {
		old, err := p.body(before)
		if err != nil {
			return err
		}
		l.Give(after.Kind, after.Name, old, body)
		return nil
	}
	l.Keep(after.Kind, after.Name, body, same)
	return nil
}

// breaksWord begins the line of a document that stays and uses something that is removed.
const breaksWord = "BREAKS: "

// Documents reads the documents that a tenant sees.
type Documents interface {
	// CurrentDocuments returns the current versions of a kind, sorted by name.
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error)
	// DocumentAt returns the body of a version.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// users describes what uses the documents that a change removes.
type users struct {
	known     spec.Catalog
	documents []spec.Document
}

// readUsers reads a tenant's documents that can name others: agents, execution specs and entity types. known is the tenant's catalog before
// the change.
func (p Planned) readUsers(ctx context.Context, from Documents, tenant string) (*users, error) {
	u := &users{known: *p.Known}
	for _, kind := range []spec.Kind{spec.KindAgent, spec.KindComposition, spec.KindEntityType} {
		versions, err := from.CurrentDocuments(ctx, tenant, kind.Stored())
		if err != nil {
			return nil, err
		}
		for _, d := range versions {
			body, err := from.DocumentAt(ctx, tenant, d.Kind, d.Name, d.Version)
			if err != nil {
				return nil, err
			}
			if doc, readable := load(p.Loaded, string(kind), d.Name, body); readable {
				doc.Path = nameOf(doc) // names the document in problems
				u.documents = append(u.documents, doc)
			}
		}
	}
	return u, nil
}

// broken returns, for each document that stays, the new problems that it has without some documents and without the Go tools of a bundle; "" is
// no bundle.
func (u *users) broken(gone map[bundle.Key]bool, without string) []string {
	stays := slices.DeleteFunc(slices.Clone(u.documents), func(d spec.Document) bool { return gone[bundle.Key{Kind: d.Kind.Stored(), Name: d.Name}] })
	known := map[string]bool{}
	for _, p := range spec.Check(u.documents, u.known) {
		known[p.Document+"\x00"+p.Path+"\x00"+p.Message] = true
	}
	problems := map[string][]string{}
	for _, p := range spec.Check(stays, u.lacking(gone, without)) {
		if !known[p.Document+"\x00"+p.Path+"\x00"+p.Message] && !slices.Contains(problems[p.Document], p.Message) {
			problems[p.Document] = append(problems[p.Document], p.Message)
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		list = append(list, name+": "+strings.Join(problems[name], "; "))
	}
	return list
}

// lacking returns the catalog without some documents and without the Go tools of a bundle.
func (u *users) lacking(gone map[bundle.Key]bool, without string) spec.Catalog {
	c := u.known.Without(func(kind, name string) bool { return gone[bundle.Key{Kind: kind, Name: name}] })
	c.Tools = slices.DeleteFunc(c.Tools, func(t jig.Tool) bool { return without != "" && t.Bundle == without })
	return c
}
