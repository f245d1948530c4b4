package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/jig-run/jig"
)

const rateLimitsPage = "docs/rate-limits.md"

// Every document on the page is valid, and every command on it does what the page says and prints what the page shows.
func TestRateLimitsPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "paced", testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=paced", "NO_COLOR=1")}}
	p := rateLimitEnv{m.testEnv, m.tenant}
	second := jig.SessionID(m.tenant, "second")
	then := []func(){
		func() { p.knows() },
		func() { p.reaches(second, func(v jig.SessionView) bool { return limited(v, "notes") == 1 }) },
		func() { m.says("waits · limit notes of rate limit apis allows 2 calls per 1h")("") },
		func() { p.reaches(second, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted }) },
	}
	m.follows(rateLimitsPage, map[string]string{"apis": "apis.yaml", "scribe": "scribe.md"}, then)
}
