package selfcheck

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Isolation checks that a server keeps tenants apart: another tenant's ids are answered exactly as ids that do not exist, and credentials that
// do not count get nowhere.
type Isolation struct {
	// URL is the address of the server, and Client makes the requests; default: a client of its own.
	URL    string
	Client *http.Client
	// Owner and Other are credentials of two tenants that may do everything. The suite makes embed tokens with them.
	Owner, Other string
	// Invalid holds further credentials that must be refused, by what is wrong with them, such as an expired one.
	Invalid map[string]string
	// Scoped holds credentials of the owner's tenant that have one scope, by scope.
	Scoped map[string]string
	// Tool and Input are the call that the owner makes, so that there is something to find.
	Tool  string
	Input json.RawMessage
	// IDs holds further ids of the owner by the kind of what they name, as the extension x-names of the document has it, e.g. session.
	IDs map[string][]string
	// Requests is the least number of requests; every case is tried once in any case.
	Requests int
	// Cost returns how much the server has worked so far, for servers in the same process; may be nil. The answers to a foreign id and an
	// unknown one must cost the same.
	Cost func() int64
}

// Report says what was tested and what was found.
type Report struct {
	Operations int `json:"operations"`
	Requests   int `json:"requests"`
	// Findings lists what is wrong, in words.
	Findings []string `json:"findings"`
	// NotTested lists what could not be tested, and why.
	NotTested []string `json:"not_tested"`
}

// Names of invalid credentials that the suite reports as not tested if they are missing.
const (
	Expired = "an expired key"
	Revoked = "a revoked key"
)

// maxFindings bounds the findings of a report.
const maxFindings = 100

// run is a run of the checks.
type run struct {
	Isolation

	document *Document
	report   Report
	// owner and other are the tenants.
	owner, other string
	// ids are the owner's ids, without those that the other tenant has, too. others are those of the other tenant.
	ids, others things
	// secrets are the texts of the owner that must not be in any answer to the other tenant.
	secrets []string
	// made are the owner's sessions that only the suite uses.
	made []string
	// revoked is an embed token of the owner that has ended.
	revoked string
	// invalid are the values of the Authorization header that must be refused.
	invalid map[string][]string
}

// Tenant returns the tenant of the owner.
func (i Isolation) Tenant(ctx context.Context) (string, error) {
	return i.start().tenantOf(ctx, i.Owner)
}

// Expire waits until a credential is refused.
func (i Isolation) Expire(ctx context.Context, credential string) error {
	r := i.start()
	for range expireAttempts {
		got, err := r.do(ctx, prepared{method: http.MethodGet, path: "/v1/me"}, "Bearer "+credential)
		if err != nil || got.status == http.StatusUnauthorized {
			return err
		}
		if err := pause(ctx, settlePause); err != nil {
			return err
		}
	}
	return jig.Errorf(jig.CodeTimeout, "a key that has expired is still accepted").WithHint("compare the clocks of this machine and of the database")
}

func (i Isolation) start() *run {
	if i.Client == nil {
		i.Client = &http.Client{Timeout: requestTimeout}
	}
	return &run{Isolation: i, ids: things{}, others: things{}, report: Report{Findings: []string{}, NotTested: []string{}}}
}

// Run makes the checks. An error means that they could not be made; what they found is in the report.
func (i Isolation) Run(ctx context.Context) (Report, error) {
	r := i.start()
	if err := r.prepare(ctx); err != nil {
		return r.report, err
	}
	before, err := r.state(ctx)
	if err != nil {
		return r.report, err
	}
	cases := r.cases()
	for first := true; first || r.report.Requests < i.Requests; first = false {
		began := r.report.Requests
		for _, check := range cases {
			if err := check(ctx); err != nil {
				return r.report, err
			}
			if !first && r.report.Requests >= i.Requests {
				break
			}
		}
		if r.report.Requests == began || len(r.report.Findings) >= maxFindings {
			break
		}
	}
	after, err := r.state(ctx)
	if err != nil {
		return r.report, err
	}
	if before != after {
		r.found("the refused requests have changed something of the owner: %s before, %s after", before, after)
	}
	return r.report, nil
}

// prepare reads the document, finds out who the credentials belong to, and makes the owner's sessions.
func (r *run) prepare(ctx context.Context) error {
	page, err := r.ask(ctx, http.MethodGet, "/openapi.json", nil, "")
	if err != nil {
		return err
	}
	if r.document, err = Parse(page.body); err != nil {
		return err
	}
	r.report.Operations = len(r.document.Operations())
	if r.owner, err = r.tenantOf(ctx, r.Owner); err != nil {
		return err
	}
	if r.other, err = r.tenantOf(ctx, r.Other); err != nil {
		return err
	}
	if r.owner == r.other {
		return jig.Errorf(jig.CodeInvalidInput, "both credentials belong to tenant %s", r.owner).WithHint("use credentials of two tenants")
	}
	r.ids.addAll(r.IDs)
	r.made = slices.Clone(r.IDs["session"])
	if err := r.calls(ctx); err != nil {
		return err
	}
	if err := r.endedPage(ctx); err != nil {
		return err
	}
	own, err := r.gather(ctx, r.Owner)
	if err != nil {
		return err
	}
	others, err := r.gather(ctx, r.Other)
	if err != nil {
		return err
	}
	r.ids.addForeign(own, others)
	r.others.addAll(others)
	for _, kind := range []string{"session", "grant", "artifact", "entity", "text", "schedule", "key", "embed_token"} { // other names may be in any request
		r.secrets = append(r.secrets, r.ids[kind]...)
	}
	r.credentials()
	return nil
}

func (r *run) tenantOf(ctx context.Context, credential string) (string, error) {
	me, err := r.me(ctx, credential)
	return me.Tenant, err
}

// me is who a credential belongs to.
type me struct{ Tenant, Principal string }

func (r *run) me(ctx context.Context, credential string) (me, error) {
	var me me
	return me, r.read(ctx, "/v1/me", credential, &me)
}

// credentials lists the credentials that must be refused.
func (r *run) credentials() {
	owner := "Bearer " + r.Owner
	r.invalid = map[string][]string{
		"no credential": nil, "an empty credential": {""}, "no key": {"Bearer secret"}, "an unknown key": {"Bearer " + changed(r.Owner)},
		"another scheme": {"Basic " + r.Owner}, "no scheme": {r.Owner}, "two credentials": {owner, "Bearer " + r.Other},
		"a longer key": {owner + "a"}, "half of a key": {owner[:len(owner)-8]},
	}
	if r.revoked != "" {
		r.invalid[revokedPage] = []string{"Bearer " + r.revoked}
	}
	for name, credential := range r.Invalid {
		r.invalid[name] = []string{"Bearer " + credential}
	}
	for _, name := range []string{Expired, Revoked} {
		if r.Invalid[name] == "" {
			r.notTested(name + ": none is given")
		}
	}
}

// calls makes calls of the owner with an id and an idempotency key, and checks that both are the owner's alone.
func (r *run) calls(ctx context.Context) error {
	name := "isolation-" + strings.ToLower(rand.Text())[:10]
	path := "/v1/tools/" + url.PathEscape(r.Tool) + "/calls"
	for _, start := range []struct {
		body    map[string]any
		headers http.Header
	}{
		{map[string]any{"id": name, "input": r.Input}, http.Header{"Prefer": {"wait=5"}}},
		{map[string]any{"input": r.Input}, http.Header{"Idempotency-Key": {name}}},
	} {
		own, err := r.call(ctx, path, start.body, start.headers, r.Owner)
		if err != nil {
			return err
		}
		again, err := r.call(ctx, path, start.body, start.headers, r.Other)
		if err != nil {
			return err
		}
		if again.SessionID == own.SessionID || again.replayed {
			r.found("the other tenant gets session %s of the owner by its id or idempotency key", own.SessionID)
		}
		r.ids.add("session", own.SessionID)
		r.made = append(r.made, own.SessionID)
		r.ids.add("call", own.Call)
		r.others.add("session", again.SessionID)
		r.others.add("call", again.Call)
	}
	return nil
}

// called is the answer to a call of a tool.
type called struct {
	SessionID string `json:"session_id"`
	Call      string
	replayed  bool
}

func (r *run) call(ctx context.Context, path string, body any, headers http.Header, credential string) (called, error) {
	answer, err := r.send(ctx, http.MethodPost, path, body, headers, "Bearer "+credential)
	if err != nil {
		return called{}, err
	}
	if answer.status >= http.StatusBadRequest {
		return called{}, jig.Errorf(jig.CodeInvalidInput, "the call of %s was refused: %s", r.Tool, answer.body).WithField("tool").
			WithHint("name a tool with --tool and its --input that both tenants may call")
	}
	got := called{replayed: answer.headers.Get("Idempotent-Replayed") != ""}
	return got, decode(answer.body, &got)
}

// state describes the sessions that the suite has made for the owner, to find out whether something changed. The owner's other sessions may change
// by themselves.
func (r *run) state(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, id := range r.made {
		for range settleAttempts {
			var view struct {
				Status  string
				Pass    int
				Pending []struct{ Call, Digest string }
				Calls   []struct{ Call, Status string }
			}
			if err := r.read(ctx, "/v1/sessions/"+url.PathEscape(id), r.Owner, &view); err != nil {
				return "", err
			}
			if view.Status == string(jig.StatusWorking) && !r.settled(ctx) {
				continue
			}
			_, _ = fmt.Fprintf(&b, "%s %+v; ", id, view)
			break
		}
	}
	return b.String(), nil
}

// cases lists the checks.
func (r *run) cases() []func(ctx context.Context) error {
	var list []func(ctx context.Context) error
	for _, op := range r.document.Operations() {
		if !op.Open() {
			list = append(list, r.refusals(op)...)
			list = append(list, r.pages(op)...)
		}
		list = append(list, r.foreign(op)...)
		list = append(list, r.cursors(op)...)
	}
	return list
}

// refusals returns the checks of an operation with credentials that do not count, about an existing id of their own tenant.
func (r *run) refusals(op *Operation) []func(ctx context.Context) error {
	own := r.document.request(op, place{}, r.own)
	list := []func(ctx context.Context) error{}
	for _, name := range slices.Sorted(maps.Keys(r.invalid)) {
		list = append(list, func(ctx context.Context) error {
			plain, err := r.do(ctx, own, r.invalid["no credential"]...)
			if err != nil {
				return err
			}
			got, err := r.do(ctx, own, r.invalid[name]...)
			if err != nil {
				return err
			}
			if got.status != http.StatusUnauthorized {
				r.found("%s: %s is answered %d: %s", op.ID, name, got.status, got.said())
			}
			if difference := plain.differs(got); difference != "" {
				r.found("%s: the refusal of %s tells what is wrong with it: %s", op.ID, name, difference)
			}
			return nil
		})
	}
	for _, scope := range slices.Sorted(maps.Keys(r.Scoped)) {
		if scope == op.Scope || scope == op.Or || op.Scope == "" {
			continue
		}
		list = append(list, func(ctx context.Context) error {
			got, err := r.do(ctx, own, "Bearer "+r.Scoped[scope])
			if err == nil && got.status != http.StatusForbidden {
				r.found("%s: a key with the scope %s is answered %d: %s", op.ID, scope, got.status, got.said())
			}
			return err
		})
	}
	return list
}

// minSecret is the length from which an id identifies its owner; shorter ones, such as ids of calls, occur everywhere.
const minSecret = 12

func (r *run) cost() int64 {
	if r.Cost == nil {
		return 0
	}
	return r.Cost()
}

// notTested notes something that could not be tested, and why.
func (r *run) notTested(what string) {
	if at, known := slices.BinarySearch(r.report.NotTested, what); !known {
		r.report.NotTested = slices.Insert(r.report.NotTested, at, what)
	}
}

func (r *run) found(format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	if len(r.report.Findings) < maxFindings && !slices.Contains(r.report.Findings, finding) {
		r.report.Findings = append(r.report.Findings, finding)
	}
}

// changed returns a text of the same form in which the last letters and digits are others.
func changed(id string) string {
	b := []byte(id)
	for i, n := len(b)-1, 0; i >= 0 && n < 8; i-- {
		switch c := b[i]; {
		case c >= '2' && c <= '7':
			b[i] = '2' + (c-'2'+3)%6
		case c >= '0' && c <= '9':
			b[i] = '9' - (c - '0')
		case c >= 'a' && c <= 'f':
			b[i] = 'a' + (c-'a'+3)%6
		case c >= 'g' && c <= 'z':
			b[i] = 'g' + (c-'g'+10)%20
		case c >= 'A' && c <= 'F':
			b[i] = 'A' + (c-'A'+3)%6
		case c >= 'G' && c <= 'Z':
			b[i] = 'G' + (c-'G'+10)%20
		default:
			continue
		}
		n++
	}
	return string(b)
}
