package selfcheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
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

// foreign returns the checks in which the other tenant uses each id of the owner in each place of an operation. In some of them the rest of the
// request names things of the owner, in others things of the other tenant itself, so that the request is not refused for another reason.
func (r *run) foreign(op *Operation) []func(ctx context.Context) error {
	var list []func(ctx context.Context) error
	places := slices.DeleteFunc(r.document.places(op), func(p place) bool { return p.kind == "call" }) // it counts only with its session
	tried := map[string]bool{}
	for _, p := range places {
		for i, id := range r.ids[p.kind] {
			tried[p.kind] = true
			whole, _ := r.foreignRequest(op, p, id, r.ids)
			mixed, sent := r.foreignRequest(op, p, id, r.others)
			alone := reflect.DeepEqual(whole, mixed) // it names nothing else
			wait := i == 0
			list = append(list, func(ctx context.Context) error { return r.compare(ctx, op, p, id, r.ids, wait && alone) })
			switch {
			case alone:
			case slices.Contains(sent, none):
				r.notTested(op.ID + ": the other tenant has nothing of its own to name beside one " + p.kind + " of the owner")
			default:
				list = append(list, func(ctx context.Context) error { return r.compare(ctx, op, p, id, r.others, wait) })
			}
		}
	}
	for _, p := range places {
		if !tried[p.kind] {
			r.notTested("the owner has no " + p.kind + " that the other tenant lacks")
		}
	}
	return list
}

// foreignRequest returns a request with an id in the target and with the first ones of the rest in other places, and the ids in it.
func (r *run) foreignRequest(op *Operation, target place, id string, rest things) (request prepared, sent []string) {
	request = r.document.request(op, target, func(p place) string {
		sent = append(sent, id)
		if p != target {
			sent[len(sent)-1] = r.first(rest, p.kind)
		}
		return sent[len(sent)-1]
	})
	return request, sent
}

// own returns the owner's first id for a place.
func (r *run) own(p place) string { return r.first(r.ids, p.kind) }

// none is used as the id if a tenant has nothing of a kind.
const none = "none"

// first returns the first id of a kind. Everybody may call the tool of the suite.
func (r *run) first(of things, kind string) string {
	switch {
	case len(of[kind]) > 0:
		return of[kind][0]
	case kind == "tool":
		return r.Tool
	default:
		return none
	}
}

// refreshes is how often two requests with different costs are repeated: once a second, the server rereads the settings of tenants, and one
// request has that cost.
const refreshes = 3

// compare requests an id of the owner and one that does not exist, as the other tenant. With wait, it also compares the results of calls.
func (r *run) compare(ctx context.Context, op *Operation, p place, id string, rest things, wait bool) error {
	ask := func(which string) (answer, int64, error) {
		request, sent := r.foreignRequest(op, p, which, rest)
		if wait && op.Record == "call" {
			request.headers.Set("Prefer", "wait=10")
		}
		before := r.cost()
		got, err := r.do(ctx, request, "Bearer "+r.Other)
		cost := r.cost() - before
		if err == nil {
			err = r.undo(ctx, op, request, got)
		}
		got = got.withoutSuggestions(r.others)
		if p.in != "path" || op.Record == "call" { // an operation that only reads something in its path has no reason to repeat it
			for _, id := range sent {
				got = got.without(id)
			}
		}
		return got, cost, err
	}
	unknown, expected, err := ask(changed(id))
	if err != nil {
		return err
	}
	foreign, cost, err := ask(id)
	if err != nil {
		return err
	}
	if unknown.suggested || foreign.suggested { // there is another hint, or none, where nothing is suggested
		unknown.body, foreign.body = anyHint.ReplaceAll(unknown.body, nil), anyHint.ReplaceAll(foreign.body, nil)
	}
	if difference := unknown.differs(foreign); difference != "" {
		r.found("%s: %s %s of another tenant is not answered like an unknown one: %s", op.ID, p.kind, id, difference)
	}
	later := op.Record == "call" && unknown.status < http.StatusMultipleChoices // the result of the call says that there is no such thing
	if p.in == "path" && !later && unknown.status < http.StatusBadRequest {
		r.found("%s: an unknown %s is answered %d: %s", op.ID, p.kind, unknown.status, unknown.said())
	}
	for range refreshes {
		if cost == expected {
			break
		}
		_, again, err := ask(changed(id))
		if err != nil {
			return err
		}
		_, repeated, err := ask(id)
		if err != nil {
			return err
		}
		expected, cost = min(expected, again), min(cost, repeated)
	}
	if cost != expected {
		r.found("%s: %s of another tenant costs %d queries, and an unknown one %d", op.ID, p.kind, cost, expected)
	}
	r.leaks(op, p.kind, foreign)
	return nil
}

// undo deletes what a request has created under a name, such as a schedule, and resumes what it has paused, so that the next request finds the same
// state.
func (r *run) undo(ctx context.Context, op *Operation, request prepared, got answer) error {
	if op.Method != http.MethodPost || got.status >= http.StatusMultipleChoices {
		return nil
	}
	if r.document.Paths[op.Path+":resume"]["post"] != nil {
		_, err := r.ask(ctx, http.MethodPost, op.Path+":resume", request.body, r.Other)
		return err
	}
	body, _ := request.body.(map[string]any) //nolint:errcheck // another body has no name
	for path, methods := range r.document.Paths {
		rest, below := strings.CutPrefix(path, op.Path+"/{")
		if below && strings.Count(rest, "/") == 0 && methods["delete"] != nil && text(body["name"]) != "" {
			_, err := r.ask(ctx, http.MethodDelete, op.Path+"/"+url.PathEscape(text(body["name"])), nil, r.Other)
			return err
		}
	}
	return nil
}

// leaks reports a text of the owner that a response to the other tenant contains.
func (r *run) leaks(op *Operation, kind string, got answer) {
	if secret := r.secretIn(got); secret != "" {
		r.found("%s: the answer about a foreign %s has %s of the owner", op.ID, kind, secret)
	}
}

// secretIn returns a text of the owner that an answer contains; empty if there is none.
func (r *run) secretIn(got answer) string {
	for _, secret := range r.secrets {
		if len(secret) >= minSecret && bytes.Contains(got.body, []byte(secret)) {
			return secret
		}
	}
	return ""
}

// suggestion matches a hint that suggests names.
var suggestion = regexp.MustCompile(`,"hint":"did you mean ((?:[^"\\]|\\.)*)\?"`)

// anyHint matches a hint.
var anyHint = regexp.MustCompile(`,"hint":"(?:[^"\\]|\\.)*"`)

// withoutSuggestions returns a response without a hint that suggests only names that the other tenant has itself: which of them are near depends on
// the name that was asked for.
func (a answer) withoutSuggestions(own things) answer {
	a.body = suggestion.ReplaceAllFunc(a.body, func(hint []byte) []byte {
		names := string(suggestion.FindSubmatch(hint)[1])
		for name := range strings.SplitSeq(strings.ReplaceAll(names, " or ", ", "), ", ") {
			name = strings.Trim(name, `\"`)
			if !slices.ContainsFunc(slices.Collect(maps.Values(own)), func(list []string) bool { return slices.Contains(list, name) }) {
				return hint
			}
		}
		a.suggested = true
		return nil
	})
	return a
}

// without returns a response with the id of the request replaced, because a response may repeat it, also with JSON escapes.
func (a answer) without(id string) answer {
	encoded, err := json.Marshal(id)
	if err != nil { // cannot happen: it is a text
		return a
	}
	a.body = bytes.ReplaceAll(a.body, bytes.Trim(encoded, `"`), []byte("ID"))
	return a
}
