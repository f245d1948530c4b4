package changes

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

// breaksWord begins the line of a document that stays and uses something that is removed.
const breaksWord = "BREAKS: "

// Documents reads the documents that a tenant sees.
type Documents interface {
	// CurrentDocuments returns the current versions of a kind, sorted by name.
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error)
	// DocumentAt returns the body of a version.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// Users describes what uses the documents that a change removes.
type Users struct {
	known     spec.Catalog
	documents []spec.Document
}

// ReadUsers reads a tenant's documents that can name others: agents, execution specs and entity types. known is the tenant's catalog before
// the change.
func ReadUsers(ctx context.Context, from Documents, tenant string, known spec.Catalog) (*Users, error) {
	u := &Users{known: known}
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
			if doc, readable := load(string(kind), d.Name, body); readable {
				doc.Path = nameOf(doc) // names the document in problems
				u.documents = append(u.documents, doc)
			}
		}
	}
	return u, nil
}

// broken returns, for each document that stays, the new problems that it has without some documents and without the Go tools of a bundle; "" is
// no bundle.
func (u *Users) broken(gone map[bundle.Key]bool, without string) []string {
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
func (u *Users) lacking(gone map[bundle.Key]bool, without string) spec.Catalog {
	c := u.known.Without(func(kind, name string) bool { return gone[bundle.Key{Kind: kind, Name: name}] })
	c.Tools = slices.DeleteFunc(c.Tools, func(t jig.Tool) bool { return without != "" && t.Bundle == without })
	return c
}
