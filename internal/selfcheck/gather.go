package selfcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// things holds ids of a tenant by the kind of the named thing.
type things map[string][]string

func (t things) add(kind, id string) {
	if id != "" && !slices.Contains(t[kind], id) {
		t[kind] = append(t[kind], id)
	}
}

func (t things) addAll(more things) {
	for kind, list := range more {
		for _, id := range list {
			t.add(kind, id)
		}
	}
}

// maxIDs bounds how many ids of one kind are tried.
const maxIDs = 5

// minName is the minimum length of a name that is tried. Shorter names may be parts of other words in responses.
const minName = 4

// addForeign adds at most maxIDs ids of each kind that the tenant has and the other tenant does not have, without very short ones. Both may have a
// tool of the same name, for example.
func (t things) addForeign(own, others things) {
	for kind, list := range own {
		for _, id := range list {
			if len(id) >= minName && len(t[kind]) < maxIDs && !slices.Contains(others[kind], id) {
				t.add(kind, id)
			}
		}
	}
}

// gather finds the ids of a credential's tenant in the lists of the document.
func (r *run) gather(ctx context.Context, credential string) (things, error) {
	found := things{}
	var later []func() error
	for _, op := range r.document.Operations() {
		for _, p := range op.Parameters {
			kind := text(p.Schema["x-names"])
			collection, _, in := strings.Cut(op.Path, "/{"+p.Name+"}")
			list := r.document.Paths[collection]["get"]
			if p.In != "path" || !in || list == nil || kind == "" || strings.Contains(collection, "{") {
				continue
			}
			read := func(path string) error {
				entries, err := r.entries(ctx, path, credential)
				for _, entry := range entries {
					found.add(kind, cmp.Or(text(entry[p.Name]), text(entry[p.Name+"_id"]), text(entry["id"]), text(entry["name"])))
				}
				return err
			}
			if needs := slices.IndexFunc(list.Parameters, func(p Parameter) bool { return p.In == "query" && p.Required }); needs >= 0 {
				needed := list.Parameters[needs]
				later = append(later, func() error { // such as the list of the entities of a type
					for _, id := range found[text(needed.Schema["x-names"])] {
						if err := read(collection + "?" + url.Values{needed.Name: {id}}.Encode()); err != nil {
							return err
						}
					}
					return nil
				})
				continue
			}
			if err := read(collection); err != nil {
				return nil, err
			}
		}
	}
	for _, read := range later {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return found, r.named(ctx, credential, found)
}

// named adds what documents, people, the credential and the audit name, which is in no list that a path with an id belongs to.
func (r *run) named(ctx context.Context, credential string, found things) error {
	for path, add := range map[string]func(entry map[string]any){
		"/v1/documents": func(d map[string]any) {
			found.add(text(d["kind"]), text(d["name"]))
			found.add("version", text(d["version"]))
		},
		"/v1/people": func(entry map[string]any) {
			found.add("person", text(entry["principal"]))
			if entry["algorithm"] != nil {
				found.add("signing_key", text(entry["id"]))
			}
		},
	} {
		if r.document.Paths[path]["get"] == nil {
			continue
		}
		entries, err := r.entries(ctx, path, credential)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			add(entry)
		}
	}
	me, err := r.me(ctx, credential)
	if err != nil {
		return err
	}
	found.add("person", me.Principal)
	if r.document.Paths["/v1/audit/head"]["get"] == nil {
		return nil
	}
	var head struct{ Hash string }
	err = r.read(ctx, "/v1/audit/head", credential, &head)
	found.add("audit_head", head.Hash)
	return err
}

// entries returns the entries of the lists of an answer.
func (r *run) entries(ctx context.Context, path, credential string) ([]map[string]any, error) {
	var page map[string]json.RawMessage
	if err := r.read(ctx, path, credential, &page); err != nil {
		return nil, err
	}
	var all []map[string]any
	for _, raw := range page {
		var list []map[string]any
		if json.Unmarshal(raw, &list) == nil {
			all = append(all, list...)
		}
	}
	return all, nil
}
