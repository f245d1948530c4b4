package selfcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
			if most := number(p.Schema["maximum"]); most > 0 {
				query.Set(p.Name, strconv.Itoa(most))
			}
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
	list := func(cursor string) (answer, error) {
		query.Del(at)
		request.headers.Del(at)
		delete(body, at)
		switch {
		case cursor == "": // the first page
		case in == "query":
			query.Set(at, cursor)
		case in == "header":
			request.headers.Set(at, cursor)
		default:
			body[at] = cursor
		}
		request.path = op.Path + "?" + query.Encode()
		return r.do(ctx, request, "Bearer "+r.Other)
	}
	got, err := list(own.Next)
	if err != nil {
		return err
	}
	if got.status >= http.StatusInternalServerError {
		r.found("%s: a cursor of another tenant is answered %d: %s", op.ID, got.status, got.said())
	}
	if r.secretIn(got) != "" {
		if got, err = besides(got, list); err != nil {
			return err
		}
	}
	r.leaks(op, "cursor", got)
	return nil
}

// maxOwnPages bounds how much of its own list the other tenant reads.
const maxOwnPages = 200

// besides returns a page without the entries that the other tenant also finds in its own list: they may quote ids that the suite has sent.
func besides(got answer, list func(cursor string) (answer, error)) (answer, error) {
	own := map[string]bool{}
	for cursor, n := "", 0; n < maxOwnPages; n++ {
		page, err := list(cursor)
		if err != nil {
			return got, err
		}
		before := len(own)
		page.each(func(entry json.RawMessage) bool { own[nameOf(entry)] = true; return true })
		var next struct {
			Cursor string `json:"next_cursor"`
		}
		if err := decode(page.body, &next); err != nil {
			return got, err
		}
		if next.Cursor == "" || len(own) == before {
			break
		}
		cursor = next.Cursor
	}
	got.body = got.each(func(entry json.RawMessage) bool { return !own[nameOf(entry)] })
	return got, nil
}

// each calls keep with the entries of the lists of an answer, and returns the body with those that it keeps.
func (a answer) each(keep func(entry json.RawMessage) bool) []byte {
	var page map[string]json.RawMessage
	if json.Unmarshal(a.body, &page) != nil {
		return a.body
	}
	for name, raw := range page {
		var entries []json.RawMessage
		if json.Unmarshal(raw, &entries) != nil {
			continue
		}
		entries = slices.DeleteFunc(entries, func(entry json.RawMessage) bool { return !keep(entry) })
		if kept, err := json.Marshal(entries); err == nil {
			page[name] = kept
		}
	}
	body, err := json.Marshal(page)
	if err != nil { // cannot happen: it was read from JSON
		return a.body
	}
	return body
}

// nameOf returns the members of an entry that name it; the whole entry if there are none.
func nameOf(entry json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(entry, &members) != nil {
		return string(entry)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if strings.HasSuffix(key, "_id") || slices.Contains([]string{"id", "name", "kind", "version", "call", "seq", "n"}, key) {
			b.WriteString(key + string(members[key]) + " ")
		}
	}
	return cmp.Or(b.String(), string(entry))
}
