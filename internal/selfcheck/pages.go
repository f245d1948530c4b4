package selfcheck

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origins of pages: the one that the suite makes embed tokens for, and another one.
const (
	pageOrigin  = "https://page.example.com"
	otherOrigin = "https://other.example.com"
)

// revokedPage is the name of a further invalid credential.
const revokedPage = "a revoked embed token"

// pageToken is an embed token.
type pageToken struct {
	ID   string
	Text string `json:"embed_token"`
}

// makeToken makes an embed token of the owner: for its first session, or for the tool.
func (r *run) makeToken(ctx context.Context, kind string) (pageToken, error) {
	body := map[string]string{"origin": pageOrigin, "session": r.first(r.ids, "session")}
	if kind == "tool" {
		body = map[string]string{"origin": pageOrigin, "tool": r.Tool}
	}
	var made pageToken
	got, err := r.ask(ctx, http.MethodPost, "/v1/embed-tokens", body, r.Owner)
	if err != nil {
		return made, err
	}
	return made, decode(got.body, &made)
}

// endedPage makes an embed token and revokes it. Without the operations for that, nothing is tested with embed tokens.
func (r *run) endedPage(ctx context.Context) error {
	if !slices.ContainsFunc(r.document.Operations(), func(op *Operation) bool { return op.Path == "/v1/embed-tokens" }) {
		r.notTested("embed tokens: the server's document has no operation that makes them")
		return nil
	}
	made, err := r.makeToken(ctx, "session")
	if err != nil {
		return err
	}
	r.revoked = made.Text
	_, err = r.ask(ctx, http.MethodPost, "/v1/embed-tokens/"+url.PathEscape(made.ID)+"/revoke", nil, r.Owner)
	return err
}

// pages returns the checks of an operation with embed tokens of the owner.
func (r *run) pages(op *Operation) []func(ctx context.Context) error {
	if r.revoked == "" {
		return nil
	}
	var list []func(ctx context.Context) error
	for _, kind := range []string{"session", "tool"} {
		list = append(list, func(ctx context.Context) error {
			made, err := r.makeToken(ctx, kind)
			if err != nil {
				return err
			}
			if err := r.stolen(ctx, op, made); err != nil {
				return err
			}
			if op.Embed != kind {
				return r.beyond(ctx, op, kind, made)
			}
			return r.strange(ctx, op, kind, made)
		})
	}
	return list
}

// fromPage makes a request with an embed token from a page of an origin.
func (r *run) fromPage(ctx context.Context, p prepared, made pageToken, origin ...string) (answer, error) {
	return r.send(ctx, p.method, p.path, p.body, http.Header{"Origin": origin}, "Bearer "+made.Text)
}

// stolen checks that an embed token does not count without its origin.
func (r *run) stolen(ctx context.Context, op *Operation, made pageToken) error {
	own := r.document.request(op, place{}, r.own)
	for _, origin := range [][]string{{otherOrigin}, nil, {pageOrigin, otherOrigin}} {
		got, err := r.fromPage(ctx, own, made, origin...)
		if err != nil {
			return err
		}
		if got.status != http.StatusForbidden || got.headers.Get("Access-Control-Allow-Origin") != "" {
			r.found("%s: an embed token from pages of the origins %q is answered %d: %s", op.ID, origin, got.status, got.said())
		}
	}
	return nil
}

// beyond checks that an operation does not take an embed token that is not meant for it.
func (r *run) beyond(ctx context.Context, op *Operation, kind string, made pageToken) error {
	got, err := r.fromPage(ctx, r.document.request(op, place{}, r.own), made, pageOrigin)
	if err == nil && got.status != http.StatusForbidden {
		r.found("%s: an embed token for a %s is answered %d: %s", op.ID, kind, got.status, got.said())
	}
	return err
}

// strange checks that an embed token gets at no other session of its own tenant.
func (r *run) strange(ctx context.Context, op *Operation, kind string, made pageToken) error {
	if !strings.Contains(op.Path, "{session}") {
		return nil
	}
	others := r.ids["session"]
	if kind == "session" {
		others = others[1:]
	}
	ask := func(session string) (answer, error) {
		return r.fromPage(ctx, r.document.request(op, place{}, func(p place) string {
			if p.kind == "session" {
				return session
			}
			return r.own(p)
		}), made, pageOrigin)
	}
	for _, id := range others {
		unknown, err := ask(changed(id))
		if err != nil {
			return err
		}
		got, err := ask(id)
		if err != nil {
			return err
		}
		if difference := unknown.differs(got); difference != "" || got.status != http.StatusNotFound {
			r.found("%s: an embed token for a %s is answered %d about session %s: %s", op.ID, kind, got.status, id, got.said())
		}
	}
	return nil
}
