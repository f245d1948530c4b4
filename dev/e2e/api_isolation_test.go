package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// `jig selftest isolation` finds nothing, with real workers, and what it did to another tenant's session changed nothing.
func TestAPI_TenantsAreSeparated(t *testing.T) {
	t.Parallel()
	d := join(t)
	server := d.serve()
	victim := "victim-" + d.name[:8]
	owner, thief := caller{server, d.apiKey(victim, everything()...)}, caller{server, d.apiKey("thief-"+d.name[:8], everything()...)}
	answer, body := owner.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "one", "document": writer()})
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	own := victim + ".one"
	asked := owner.waits(own)

	d.env = append(d.env, "JIG_URL="+server.url, "JIG_API_KEY="+owner.key, "JIG_OTHER_API_KEY="+thief.key)
	got := d.jig("selftest", "isolation", "--output", "json")
	require.Zero(t, got.code, got.out+got.err)
	var report struct {
		Operations, Requests int
		NotTested            []string `json:"not_tested"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &report), got.out)
	require.GreaterOrEqual(t, report.Operations, 16)
	require.Greater(t, report.Requests, 20*report.Operations)
	require.NotContains(t, strings.Join(report.NotTested, "; "), "session")
	require.NotContains(t, strings.Join(report.NotTested, "; "), "key:", "it makes the keys that it needs")

	for _, path := range []string{"/v1/sessions", "/v1/sessions?children=true", "/v1/approvals", "/v1/approvals?session=" + own} {
		_, body := thief.send(http.MethodGet, path, nil)
		require.NotContains(t, string(body), own)
	}
	require.Equal(t, asked, owner.waits(own), "nothing was changed")

	d.env = append(d.env, "JIG_OTHER_API_KEY="+owner.key)
	got = d.jig("selftest", "isolation")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "both credentials belong to tenant "+victim)
}

const apiPage = "docs/api.md"

// Every command on the page does what the page says and prints what the page shows.
func TestAPIPage(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &manual{office: office{tenant: jig.DefaultTenant, desk: open(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1")}}
	server := m.serve()
	c := caller{server, m.apiKey(m.tenant, everything()...)}
	m.env = append(m.env, "JIG_URL="+server.url, "JIG_API_KEY="+c.key)
	m.put("go.mod", "module example.com/m\n\ngo 1.26\n\nrequire github.com/stretchr/testify v1.12.1\n")
	decided := false
	for _, f := range fences(t, apiPage) {
		switch f.language {
		case "text":
			m.shows(f)
		case "sh":
			if f.section == "Decide" && !decided {
				c.waits("review-1")
			}
			decided = decided || strings.Contains(f.body, "/decision")
			m.run(f.body, "", 0)
			require.NotContains(t, m.said.out, "null", "every member that the page reads is there:\n%s", f.body)
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	review := get[jig.SessionView](c, "/v1/sessions/review-1")
	require.Equal(t, jig.StatusCompleted, review.Status)
}
