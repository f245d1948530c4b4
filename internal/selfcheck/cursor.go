package selfcheck

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cursors returns the check of a list with the cursor of the owner's first page, by the other tenant: the answer has nothing of the owner.
func (r *run) cursors(op *Operation) []func(ctx context.Context) error {
	at := slices.IndexFunc(op.Parameters, func(p Parameter) bool {
		return p.In == "query" && (p.Name == "cursor" || p.Name == "after") && r.document.TypeOf(p.Schema) == "string" && text(p.Schema["format"]) == ""
	})
	if op.Method != http.MethodGet || at < 0 || strings.Contains(op.Path, "{") {
		return nil
	}
	return []func(ctx context.Context) error{func(ctx context.Context) error {
		query := url.Values{}
		for _, p := range op.Parameters {
			switch {
			case p.In == "query" && p.Name == "limit":
				query.Set(p.Name, "1")
			case p.In == "query" && p.Required && len(r.ids[text(p.Schema["x-names"])]) == 0:
				r.notTested(op.ID + ": the owner has no " + text(p.Schema["x-names"]))
				return nil
			case p.In == "query" && p.Required:
				query.Set(p.Name, r.first(r.ids, text(p.Schema["x-names"])))
			}
		}
		var own struct {
			Next string `json:"next_cursor"`
		}
		list, err := r.ask(ctx, op.Method, op.Path+"?"+query.Encode(), nil, r.Owner)
		switch {
		case list.status == http.StatusForbidden || list.status == http.StatusNotFound: // of a type that the owner may not read
			r.notTested(op.ID + ": the owner's credential may not list them")
			return nil
		case err != nil:
			return err
		}
		if err := decode(list.body, &own); err != nil {
			return err
		}
		if own.Next == "" {
			r.notTested(op.ID + ": the owner's list has only one page, so that there is no cursor of the owner")
			return nil
		}
		query.Del("limit")
		query.Set(op.Parameters[at].Name, own.Next)
		got, err := r.do(ctx, prepared{method: op.Method, path: op.Path + "?" + query.Encode()}, "Bearer "+r.Other)
		if err != nil {
			return err
		}
		if got.status >= http.StatusInternalServerError {
			r.found("%s: a cursor of another tenant is answered %d: %s", op.ID, got.status, got.said())
		}
		r.leaks(op, "cursor", got)
		return nil
	}}
}
