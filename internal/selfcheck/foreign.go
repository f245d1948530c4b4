package selfcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// foreign returns the checks in which the other tenant uses each id of the owner in each place of an operation. In some of them the rest of the
// request names things of the owner, in others things of the other tenant itself, so that the request is not refused for another reason.
func (r *run) foreign(op *Operation) []func(ctx context.Context) error {
	var list []func(ctx context.Context) error
	places := slices.DeleteFunc(r.document.places(op), func(p place) bool { return p.kind == "call" }) // it counts only with its session
	tried := map[string]bool{}
	for _, p := range places {
		for i, id := range r.ids[p.kind] {
			tried[p.in+p.at] = true
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
		if !tried[p.in+p.at] {
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

// leaks reports the texts of the owner that a response to the other tenant contains.
func (r *run) leaks(op *Operation, kind string, got answer) {
	for _, secret := range r.secrets {
		if len(secret) >= minSecret && bytes.Contains(got.body, []byte(secret)) {
			r.found("%s: the answer about a foreign %s has %s of the owner", op.ID, kind, secret)
		}
	}
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
