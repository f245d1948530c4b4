package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

// Named identifies a registered document.
type Named struct {
	Kind string `json:"kind" jsonschema:"the kind that the document declares, e.g. agent, composition, policy or tenant" minLength:"1" maxLength:"32"`
	Name string `json:"name" jsonschema:"the document's name"                                                        minLength:"1" maxLength:"512"`
	// Version makes sure that the document has not changed since somebody looked at it.
	Version string `json:"version,omitempty" jsonschema:"the version that must be current; the call fails if another one is" maxLength:"128"`
}

// Names are documents to remove together.
type Names struct {
	Documents []Named `json:"documents" minItems:"1" maxItems:"100"`
}

// Removed is the output of catalog.remove.
type Removed struct {
	// Documents are the versions that went out of use.
	Documents []bundle.DocumentVersion `json:"documents"`
	// Entities is the number of entities of removed types, which are kept but out of use.
	Entities int64 `json:"entities,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Removed) Summary() string {
	names := make([]string, len(r.Documents))
	for i, d := range r.Documents {
		names[i] = d.Name
	}
	text := "removed " + strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		text = "the documents were removed before"
	case r.Entities == 1:
		text += "; 1 entity is kept for when its type is registered again"
	case r.Entities > 1:
		text += fmt.Sprintf("; %d entities are kept for when their types are registered again", r.Entities)
	}
	return text
}

// keys returns the documents of a call by the kinds under which they are stored.
func (o Options) keys(in Names) ([]bundle.Key, error) {
	keys, seen := make([]bundle.Key, len(in.Documents)), map[bundle.Key]bool{}
	for i, d := range in.Documents {
		at := fmt.Sprintf("/documents/%d", i)
		keys[i] = bundle.Key{Kind: spec.Kind(d.Kind).Stored(), Name: d.Name}
		switch {
		case spec.Kind(d.Kind).IsManifest():
			return nil, jig.Errorf(jig.CodeInvalidInput, "a bundle is removed as a whole").WithField(at + "/kind").WithHint("call bundle.remove")
		case seen[keys[i]]:
			return nil, jig.Errorf(jig.CodeInvalidInput, "%s %s is given twice", d.Kind, d.Name).WithField(at)
		}
		seen[keys[i]] = true
	}
	return keys, nil
}

// previewRemove shows which documents go out of use, what takes their place, what guards less afterwards, and which other documents use them.
func (o Options) previewRemove(ctx context.Context, inv jig.Invocation, in Names) (jig.Preview, error) {
	keys, err := o.keys(in)
	if err != nil {
		return jig.Preview{}, err
	}
	snapshot, err := o.Store.DocumentSnapshot(ctx, inv.Tenant, "", keys)
	if err != nil {
		return jig.Preview{}, err
	}
	if err := o.unchanged(snapshot, removed(in)); err != nil {
		return jig.Preview{}, err
	}
	plan, err := snapshot.Withdraw(keys, "", false)
	if err != nil {
		return jig.Preview{}, err
	}
	known, err := o.Known(ctx, inv.Tenant)
	if err != nil {
		return jig.Preview{}, err
	}
	p, err := changes.Planned{Loaded: o.Loaded, Snapshot: snapshot, Plan: plan, Known: &known}.Preview(ctx, o.Store, inv.Tenant, "Removes documents")
	if err != nil {
		return p, err
	}
	counts, err := o.Store.EntityCounts(ctx, inv.Tenant)
	if n := changes.Entities(plan.Removed, counts); n > 0 {
		p.Title += fmt.Sprintf("; entities that stay, but are out of use: %d", n)
	}
	return p, err
}

func (o Options) remove(ctx context.Context, inv jig.Invocation, in Names) (Removed, error) {
	keys, err := o.keys(in)
	if err != nil {
		return Removed{}, err
	}
	shown, err := o.shown(ctx, inv, keys, removed(in))
	if err != nil {
		return Removed{}, err
	}
	plan, err := o.Store.WithdrawDocuments(ctx, inv, keys, shown)
	if err != nil {
		return Removed{}, err
	}
	out := Removed{Documents: append([]bundle.DocumentVersion{}, plan.Retired...)}
	// The documents are removed. A failure to count must not say otherwise.
	if counts, err := o.Store.EntityCounts(ctx, inv.Tenant); err == nil {
		out.Entities = changes.Entities(plan.Removed, counts)
	}
	return out, nil
}

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
func (o Options) unchanged(snapshot *bundle.Snapshot, list []expected) error {
	for _, e := range list {
		seen, _ := snapshot.Seen(bundle.Key{Kind: spec.Kind(e.Kind).Stored(), Name: e.Name})
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
	snapshot, err := o.Store.DocumentSnapshot(ctx, inv.Tenant, "", keys)
	if err != nil {
		return "", err
	}
	if err := o.unchanged(snapshot, list); err != nil {
		return "", err
	}
	return snapshot.State()
}
