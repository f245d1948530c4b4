package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// whoami is the part of GET /v1/me that the tests look at.
type whoami struct {
	Tenant, Principal, Name string
	Groups, Roles           []string
	Credential              struct {
		Kind      string
		Scopes    []string
		ExpiresAt time.Time `json:"expires_at"`
	}
}

// people returns a tenant's document that gives a role to a group of the provider, and knows ana by her login.
func (p *identityProvider) people(tenant, role, more string) string {
	return fmt.Sprintf(`kind: tenant
name: %s
people:
  - id: ana
    logins: [{issuer: %q, subject: ana}]
%s  - {id: robot}
roles:
  - {name: %s, groups: [finance]}
login_groups:
  - {issuer: %q, value: finance-team, group: finance}
`, tenant, p.url, more, role, p.url)
}

// is waits until a caller has exactly these scopes.
func (c apiClient) is(scopes ...string) whoami {
	c.t.Helper()
	var me whoami
	require.True(c.t, eventually(c.t.Context(), patience, func() bool {
		me = get[whoami](c, "/v1/me")
		return fmt.Sprint(me.Credential.Scopes) == fmt.Sprint(scopes)
	}), "%+v", me)
	return me
}

// refuses makes sure that a credential does not count.
func (c apiClient) refuses(why string) {
	c.t.Helper()
	answer, body := c.send(http.MethodGet, "/v1/me", nil)
	require.Equal(c.t, http.StatusUnauthorized, answer.StatusCode, "%s: %s", why, body)
	require.Contains(c.t, string(body), `"reason":"unauthenticated"`)
}

// Access tokens of a real identity provider count in the tenant that the settings bind them to, with the roles that the tenant's document gives;
// all others are refused.
func TestIdentity_AccessTokens(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	p, stranger := newIdentityProvider(t, "http://127.0.0.1:1"), newIdentityProvider(t, "http://127.0.0.1:1")
	server := o.serve(p.bound(o.tenant, nil), clientSecret)
	ana := apiClient{server, p.token("ana", "")}
	me := ana.is() // without a document, nobody has a role
	require.Equal(t, []string{o.tenant, p.url + "#ana", "Ana Ferreira", "access_token"}, []string{me.Tenant, me.Principal, me.Name, me.Credential.Kind})
	require.NotZero(t, me.Credential.ExpiresAt)
	answer, body := ana.send(http.MethodGet, "/v1/sessions", nil)
	require.Equal(t, http.StatusForbidden, answer.StatusCode, string(body))

	o.install("tenant.yaml", p.people(o.tenant, "author", ""), o.trusting)
	me = ana.is("author", "read", "run")
	require.Equal(t, "ana", me.Principal, "the document names the person")
	require.Equal(t, []string{"author"}, me.Roles)
	apiClient{server, p.token("ben", "")}.is()

	for kind, why := range map[string]string{
		"/other": "wrong audience", "/hmac": "wrong algorithm", "/later": "not yet valid", "/plain": "not an access token by its type",
	} {
		apiClient{server, p.token("ana", kind)}.refuses(why)
	}
	apiClient{server, stranger.token("ana", "")}.refuses("wrong issuer")
	byClaim := o.serve(p.bound(o.tenant, map[string]any{"tenant": nil, "tenant_claim": "org", "tenants": []string{"acme"}}), clientSecret)
	require.Equal(t, "acme", get[whoami](apiClient{byClaim, p.token("ana", "")}, "/v1/me").Tenant)
	apiClient{byClaim, p.token("ben", "")}.refuses("wrong tenant")

	// What a person starts acts for them, with the groups of the token.
	started, body := ana.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s1", "document": writer()})
	require.Equal(t, http.StatusCreated, started.StatusCode, string(body))
	asked := ana.waits("s1")
	require.Equal(t, "ana", asked.RequestedBy)
	// A reviewer who is the requester does not decide; another person does.
	o.install("tenant.yaml", p.people(o.tenant, "owner", "  - {id: ben, logins: [{issuer: \""+p.url+"\", subject: ben}], permissions: [api.read, api.decide]}\n"), func(id string) {
		o.signal(id, "approve", map[string]string{"call": "1.1", "by": "robot"})
	})
	ana.is("author", "decide", "manage", "operate", "read", "run")
	ben := apiClient{server, p.token("ben", "")}
	ben.is("decide", "read")
	decision := map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest}
	own, body := ana.send(http.MethodPost, "/v1/approvals/s1/decision", decision)
	require.Equal(t, http.StatusForbidden, own.StatusCode, string(body))
	require.Contains(t, string(body), `"reason":"ana asked for this call and may not decide it"`)
	require.Contains(t, string(body), `"outcome":"refused"`)
	other, body := ben.send(http.MethodPost, "/v1/approvals/s1/decision", decision)
	require.Equal(t, http.StatusOK, other.StatusCode, string(body))
	var ruled jig.Ruled
	require.NoError(t, json.Unmarshal(body, &ruled))
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome)

	// A token that ends is refused from then on.
	short := apiClient{server, p.token("ana", "/short")}
	require.Equal(t, "ana", get[whoami](short, "/v1/me").Principal)
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := short.send(http.MethodGet, "/v1/me", nil)
		return answer.StatusCode == http.StatusUnauthorized
	}))
}

// A person whom the tenant's document disables is refused by servers and workers within a second, also in an open stream.
func TestIdentity_DisabledPerson(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	p := newIdentityProvider(t, "http://127.0.0.1:1")
	server := o.serve(p.bound(o.tenant, nil), clientSecret)
	o.install("tenant.yaml", p.people(o.tenant, "author", ""), o.trusting)
	ana := apiClient{server, p.token("ana", "")}
	ana.is("author", "read", "run")
	started, body := ana.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s1", "document": writer()})
	require.Equal(t, http.StatusCreated, started.StatusCode, string(body))
	ana.waits("s1")
	stream := ana.follow("s1", 0)
	_, more := stream.next()
	require.True(t, more)
	o.install("tenant.yaml", p.people(o.tenant, "author", "    disabled: true\n"), func(id string) {
		o.signal(id, "approve", map[string]string{"call": "1.1", "by": "robot"})
	})
	for more {
		_, more = stream.next()
	}
	answer, body := ana.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusForbidden, answer.StatusCode, string(body))
	require.Contains(t, string(body), `"reason":"disabled"`)
	in := callInput("file.list", map[string]any{"path": "."})
	in.Tenant, in.Principal = o.tenant, jig.Principal{ID: "ana"}
	require.True(t, eventually(t.Context(), patience, func() bool { // each process reads the document within a second
		_, err := o.Trigger(t.Context(), in, "")
		return jig.CodeOf(err) == jig.CodeNotPermitted
	}))
	ruled := o.decided(o.tenant+".s1", jig.Decision{Call: "1.1", By: "ana", Answer: jig.AnswerApprove})
	require.Equal(t, jig.DecisionRefused, ruled.Outcome)
	require.Contains(t, ruled.Reason, "disabled")
}

// Owners disable and enable a person with a call. All servers heed it within a second, and list who is disabled.
func TestIdentity_OwnersDisablePeople(t *testing.T) {
	t.Parallel()
	o, p, one, two := loginTenant(t)
	o.install("tenant.yaml", p.people(o.tenant, "owner", "  - {id: ben, logins: [{issuer: \""+p.url+"\", subject: ben}], permissions: [api.read]}\n"), o.trusting)
	ana := apiClient{one, p.token("ana", "")}
	ana.is("author", "decide", "manage", "operate", "read", "run")
	ben := p.token("ben", "")
	apiClient{two, ben}.is("read")
	o.listsPeople()
	for _, disabled := range []bool{true, false} {
		path, status := "/v1/people:disable", http.StatusForbidden
		if !disabled {
			path, status = "/v1/people:enable", http.StatusOK
		}
		answer, body := ana.send(http.MethodPost, path, map[string]any{"person": "ben"})
		require.Equal(t, http.StatusAccepted, answer.StatusCode, string(body))
		var call protocol.CallResult
		require.NoError(t, json.Unmarshal(body, &call))
		ana.waits(call.SessionID)
		o.signal(call.SessionID, "approve", map[string]string{"call": "1.1", "by": "robot"})
		for _, server := range []*serverProcess{one, two} {
			require.True(t, eventually(t.Context(), patience, func() bool {
				answer, _ := apiClient{server, ben}.send(http.MethodGet, "/v1/me", nil)
				return answer.StatusCode == status
			}))
		}
		_, body = apiClient{two, ana.key}.send(http.MethodGet, "/v1/people", nil)
		require.Contains(t, string(body), fmt.Sprintf(`"principal":"ben","disabled":%t`, disabled))
	}
	answer, body := apiClient{two, ben}.send(http.MethodPost, "/v1/people:disable", map[string]any{"person": "ana"})
	require.Equal(t, http.StatusForbidden, answer.StatusCode, string(body))
}

const identityPage = "docs/identity.md"

// Every command on the page does what the page says and prints what the page shows. The page's provider and tenant stand for those of the test.
func TestIdentityPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	d := startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1")
	m := &pageRunner{tenantEnv: tenantEnv{tenant: d.name + "-page", testEnv: d}}
	address, err := port.Claim(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	p := newIdentityProviderFor(t, "http://127.0.0.1:1", "http://"+address)
	server := m.serveAt(address, p.bound(m.tenant, nil), clientSecret)
	ana := apiClient{server, p.token("ana", "")}
	person := m.openBrowser(p, "ana")
	m.env = append(m.env, "JIG_KEYRING=off", "XDG_CONFIG_HOME="+t.TempDir(), "JIG_URL="+server.url, "TOKEN="+ana.key, "OWNER="+p.token("ben", ""))
	for _, f := range codeBlocks(t, identityPage) {
		body := strings.NewReplacer("https://login.example.com", p.url, "https://jig.example.com", server.url, "acme", m.tenant).Replace(f.body)
		switch f.language {
		case "json":
			_, err := openid.ReadBindings([]byte(f.body), nil)
			require.NoError(t, err)
		case "yaml":
			_, problems := spec.Load("page.yaml", []byte(body))
			require.Empty(t, problems)
			require.Contains(t, f.before, "`acme.yaml`")
			m.put(m.tenant+".yaml", body)
		case "text":
			m.shows(f)
		case "sh":
			person.expects(strings.Count(f.body, "jig login\n"))
			m.run(body, "", 0)
			if strings.Contains(f.body, "jig catalog add") {
				ana.is("decide", "read", "run")
			}
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
}
