package selfcheck

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

const (
	// lastEvent is the header that holds the cursor of an interrupted stream.
	lastEvent = "Last-Event-Id"
	// policyText is a policy for requests that need the text of one. It concerns no call.
	policyText = "kind: policy\nname: isolation\nrules: [{name: none, when: 'false', verdict: deny}]\n"
)

// cursors returns the checks of a list with the cursor of the owner's first page, by the other tenant, wherever a request may have one: the
// answer has nothing of the owner.
func (r *run) cursors(op *Operation) []func(ctx context.Context) error {
	if strings.Contains(op.Path, "{") {
		return nil
	}
	var list []func(ctx context.Context) error
	check := func(in, at string) {
		list = append(list, func(ctx context.Context) error { return r.cursor(ctx, op, in, at) })
	}
	for _, p := range op.Parameters {
		takes := p.In == "query" && (p.Name == "cursor" || p.Name == "after") || p.In == "header" && p.Name == lastEvent
		if takes && op.Method == http.MethodGet && r.document.TypeOf(p.Schema) == "string" && text(p.Schema["format"]) == "" {
			check(p.In, p.Name)
		}
	}
	if schema := r.document.BodySchema(op); schema != nil && r.document.Properties(schema)["cursor"] != nil {
		check("body", "cursor")
	}
	return list
}

// cursor asks for the owner's first page, and as the other tenant for what follows it.
func (r *run) cursor(ctx context.Context, op *Operation, in, at string) error {
	query, limited := url.Values{}, url.Values{}
	for _, p := range op.Parameters {
		switch {
		case p.In == "query" && p.Name == "limit":
			limited.Set(p.Name, "1")
		case p.In == "query" && p.Required && len(r.ids[text(p.Schema["x-names"])]) == 0:
			r.notTested(op.ID + ": the owner has no " + text(p.Schema["x-names"]))
			return nil
		case p.In == "query" && p.Required:
			query.Set(p.Name, r.first(r.ids, text(p.Schema["x-names"])))
			limited.Set(p.Name, query.Get(p.Name))
		}
	}
	request := r.document.request(op, place{}, r.own)
	body, _ := request.body.(map[string]any) //nolint:errcheck // without a body there are no members
	if body["document"] != nil {
		body["document"] = policyText
	}
	request.path = op.Path + "?" + limited.Encode()
	first, err := r.do(ctx, request, "Bearer "+r.Owner)
	if err != nil {
		return err
	}
	if first.status >= http.StatusBadRequest { // of a type that the owner may not read
		r.notTested(op.ID + ": the owner's credential may not list them")
		return nil
	}
	var own struct {
		Next string `json:"next_cursor"`
	}
	if err := decode(first.body, &own); err != nil {
		return err
	}
	if own.Next == "" {
		r.notTested(op.ID + ": the owner's list has only one page, so that there is no cursor of the owner")
		return nil
	}
	switch in {
	case "query":
		query.Set(at, own.Next)
	case "header":
		request.headers.Set(at, own.Next)
	default:
		body[at] = own.Next
	}
	request.path = op.Path + "?" + query.Encode()
	got, err := r.do(ctx, request, "Bearer "+r.Other)
	if err != nil {
		return err
	}
	if got.status >= http.StatusInternalServerError {
		r.found("%s: a cursor of another tenant is answered %d: %s", op.ID, got.status, got.said())
	}
	r.leaks(op, "cursor", got)
	return nil
}
