package catalog

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

// expected says which version of a document must be current.
type expected struct {
	Named
	// becomes is the version that the call makes current: a later attempt of the call may find it there already.
	becomes string
}

// replaced lists what calls of catalog.put expect. docs are the parsed documents of the input.
func replaced(docs []spec.Document, in Files) (list []expected) {
	for i, doc := range docs {
		if r := in.Documents[i].Replaces; r != nil {
			list = append(list, expected{*r, doc.Version})
		}
	}
	return list
}

// removed lists what calls of catalog.remove expect.
func removed(in Names) (list []expected) {
	for _, d := range in.Documents {
		if d.Version != "" {
			list = append(list, expected{d, ""})
		}
	}
	return list
}

// unchanged returns CONFLICT if the tenant sees another version of a document than the call expects.
func (o Options) unchanged(shelf *bundle.Shelf, list []expected) error {
	for _, e := range list {
		seen, _ := shelf.Seen(bundle.Key{Kind: spec.Kind(e.Kind).Stored(), Name: e.Name})
		if seen.Version != e.Version && seen.Version != e.becomes {
			return jig.Errorf(jig.CodeConflict, "%s %s has changed: another version is current than the one that was looked at", e.Kind, e.Name).
				WithField("version").WithReason(bundle.ReasonPrecondition).WithHint("read the document again, and repeat the change")
		}
	}
	return nil
}

// shown returns the state of the documents on which a call may act. A call that people approved may act only on the state that they saw. A call that
// expects a state may act on that one, and it must be the present one. Any other call may act on every state: "".
func (o Options) shown(ctx context.Context, inv jig.Invocation, keys []bundle.Key, list []expected) (string, error) {
	if inv.Precondition != "" || len(list) == 0 {
		return inv.Precondition, nil
	}
	shelf, err := o.Store.Shelf(ctx, inv.Tenant, "", keys)
	if err != nil {
		return "", err
	}
	if err := o.unchanged(shelf, list); err != nil {
		return "", err
	}
	return shelf.State()
}
