package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// `jig selftest isolation` finds nothing, with real workers, and what it did to another tenant's session changed nothing.
func TestAPI_TenantsAreSeparated(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	server := d.serve()
	victim, robber := "victim-"+d.name[:8], "thief-"+d.name[:8]
	documents := func(tenant, name, free string) map[string]string {
		all := map[string]string{
			"agent.md":    "---\nname: " + name + "\ndescription: Does nothing.\nmodel: script/own\nscript: {rules: [{answer: done}]}\n---\nDo nothing.\n",
			"composition": "name: " + name + ".act\nsteps: [{id: a, tool: todo.write, input: {items: []}}]\n",
			"prompt":      "name: " + name + ".ask\nmodel: openai/x\nprompt: How?\n",
			"task":        "name: " + name + ".count\ntask: count\nentity: ${input.id}\n",
			"skill.json":  `{"kind": "skill", "name": "` + name + `", "description": "Does nothing.", "instructions": "Do nothing."}`,
			"policy":      "name: " + name + "-free\nrules: [{name: all, when: \"" + free + "\", verdict: run}]\n",
			"tenant":      "name: " + tenant + "\npeople: [{id: ana, permissions: ['*']}]\n",
			"budget":      "name: " + name + "\ncurrency: EUR\nlimits: [{name: all, level: tenant, tokens: 1000000}]\n",
			"rate_limit":  "name: " + name + "\nlimits: [{name: all, tools: [todo.write], concurrency: 100}]\n",
			"entity_type": "name: " + name + "_note\nfields: [{name: n, type: number}]\ntasks: [{id: count, compute: '1'}]\n",
			"thin_tool":   "name: " + name + ".note\ncreates: {type: " + name + "_note}\n",
		}
		files := map[string]string{}
		for _, kind := range spec.Kinds() {
			file := string(kind)
			for _, ending := range []string{".md", ".json", ".yaml"} {
				if body, own := all[file+ending]; own {
					files[file+ending] = body
				}
			}
			if body, own := all[file]; own {
				files[file+".yaml"] = "kind: " + file + "\n" + body
			}
			require.True(t, kind.IsManifest() || len(files) > 0 && (files[file+".md"]+files[file+".json"]+files[file+".yaml"]) != "", "the tenants have no %s", kind)
		}
		return files
	}
	d.registerIn(victim, documents(victim, "victims", "tool.name.startsWith('entities.')"))
	d.registerIn(robber, documents(robber, "robbers", "true"))
	owner, thief := apiClient{server, d.apiKey(victim, everything()...)}, apiClient{server, d.apiKey(robber, everything()...)}
	answer, body := owner.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "one", "document": writer()})
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	own := victim + ".one"
	asked := owner.waits(own)

	for name, c := range map[string]apiClient{"victims_note": owner, "robbers_note": thief} {
		require.True(t, eventually(t.Context(), patience, func() bool { // the policy is read within a second
			_, body := c.send(http.MethodPost, "/v1/entities", map[string]any{"type": name, "content": map[string]any{"n": 1}}, "Prefer", "wait=20")
			return strings.Contains(string(body), `"status":"succeeded"`)
		}), name)
	}

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
	kinds := []string{"session", "tool", "entity", "version"}
	for _, kind := range spec.Kinds() {
		if !kind.IsManifest() {
			kinds = append(kinds, kind.Stored())
		}
	}
	for _, kind := range slices.Compact(kinds) {
		require.NotContains(t, report.NotTested, "the owner has no "+kind+" that the other tenant lacks")
	}
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
func TestAPIPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: jig.DefaultTenant, testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1")}}
	server := m.serve()
	c := apiClient{server, m.apiKey(m.tenant, everything()...)}
	m.env = append(m.env, "JIG_URL="+server.url, "JIG_API_KEY="+c.key)
	m.put("go.mod", "module example.com/m\n\ngo 1.26\n\nrequire github.com/stretchr/testify v1.12.1\n")
	decided := false
	for _, f := range codeBlocks(t, apiPage) {
		switch f.language {
		case "text":
			m.shows(f)
		case "sh":
			if f.section == "Decide" && !decided {
				c.waits("review-1")
			}
			decided = decided || strings.Contains(f.body, "/decision")
			m.run(f.body, "", 0)
			require.NotContains(t, m.last.out, "null", "every member that the page reads is there:\n%s", f.body)
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	review := get[jig.SessionView](c, "/v1/sessions/review-1")
	require.Equal(t, jig.StatusCompleted, review.Status)
}
