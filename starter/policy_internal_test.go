package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

const shopPolicy = `kind: policy
name: shop
rules:
  - {name: docs, when: "tool.name == 'file.write' && call.input.path.startsWith('docs/')", verdict: run, reason: pages are reviewed}
  - {name: many, when: "tool.name == 'file.write' && call.input.count > 3", verdict: ask, expires: 90m}
  - {name: guests, when: "'guests' in principal.groups || agent.name == 'guest' || 'guest' in principal.permissions", verdict: deny}
  - {name: late, when: "now > timestamp('2030-01-01T00:00:00Z') && principal.id == 'bo' && tenant == 'acme'", verdict: deny}
cases:
  - {name: a page, tool: file.write, input: {path: docs/a.md, count: 1}, expect: run, rules: [docs]}
  - {name: a read, tool: {name: file.read, permission: read}, expect: run}
`

func shopTools() client.Catalog {
	return client.Catalog{Tools: []jig.Tool{
		jig.Tool{Name: "file.read", Permission: jig.PermissionRead}.WithDefaults(),
		jig.Tool{
			Name: "file.write", Permission: jig.PermissionWrite,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"count":{"type":"integer","default":1}}}`),
		}.WithDefaults(),
		jig.Tool{Name: "shop.refund", Permission: jig.PermissionWrite, Risk: jig.RiskHigh}.WithDefaults(),
		jig.Tool{Name: "billing.pay", Permission: jig.PermissionWrite}.WithDefaults(),
	}}
}

// noWorker is an engine without a worker.
func noWorker() *fake {
	return &fake{err: &jig.Error{Code: jig.CodeUnavailable, Message: "no worker answers", Reason: client.ReasonNoWorker}}
}

func TestPolicyTest_RunsTheCases(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "shop.yaml", shopPolicy)
	e := &fake{catalog: shopTools()}
	got := jigCLI(t, e, nil, "policy", "test", file)
	require.Equal(t, outcome{code: exitDone, stdout: "ok    a page: run, unless the session has read untrusted data\nok    a read: run\n", stderr: "ok: 2 cases\n"}, got)

	got = jigCLI(t, e, nil, "policy", "test", file, "--output", "json")
	require.Equal(t, exitDone, got.code)
	require.JSONEq(t, `{"ok":true,"cases":[
		{"name":"a page","expect":"run","got":"run","rules":["docs"],"ok":true,"unless":"the session has read untrusted data",
			"reasons":["policy shop, rule docs: pages are reviewed"]},
		{"name":"a read","expect":"run","got":"run","rules":[],"ok":true,"reasons":["file.read only reads (permission read)"]}]}`, got.stdout)

	file = writeFile(t, "shop.yaml", strings.Replace(shopPolicy, "count: 1}, expect: run", "count: 9}, expect: run", 1))
	got = jigCLI(t, e, nil, "policy", "test", file)
	require.Equal(t, outcome{code: exitFailed, stderr: "failed: 1 of 2 cases\n", stdout: `FAIL  a page: the verdict is ask, not run
        file.write changes data (permission write)
        policy shop, rule many: it says ask
        policy shop, rule docs: pages are reviewed (says run, overruled)
ok    a read: run
`}, got)
	got = jigCLI(t, e, nil, "policy", "test", file, "--output", "json")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, `{"ok":false,"cases":[{"name":"a page","expect":"run","got":"ask","rules":["many","docs"],"ok":false,"problem":`)
}

// The catalog is read only if a case names a tool.
func TestPolicyTest_ReadsTheCatalogOnlyIfNeeded(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "shop.yaml", shopPolicy)
	got := jigCLI(t, noWorker(), nil, "policy", "test", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "give --catalog FILE, or spell out the tools of the cases")
	catalog, err := json.Marshal(shopTools())
	require.NoError(t, err)
	got = jigCLI(t, noWorker(), nil, "policy", "test", file, "--catalog", writeFile(t, "catalog.json", string(catalog)))
	require.Equal(t, exitDone, got.code, got.stderr)

	uncased, _, _ := strings.Cut(shopPolicy, "cases:")
	for text, said := range map[string]string{
		strings.Replace(shopPolicy, "tool: file.write", "tool: {name: file.write}", 1): "ok: 2 cases",
		uncased: "the policy has no cases",
	} {
		got = jigCLI(t, noWorker(), nil, "policy", "test", writeFile(t, "shop.yaml", text))
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Contains(t, got.stderr, said)
	}
	got = jigCLI(t, noWorker(), nil, "policy", "test", writeFile(t, "p.yaml", "kind: policy\nname: a\nrules: [{name: a, when: true, verdict: ask}]\n"), "--output", "json")
	require.JSONEq(t, `{"ok":true,"cases":[]}`, got.stdout)
}

func TestPolicy_RefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, says string }{
		"another kind": {writeFile(t, "spec.yaml", specDocument), "a policy is needed: kind: policy"},
		"no document":  {writeFile(t, "x.txt", "hello"), "does not say what it describes"},
		"a problem":    {writeFile(t, "p.yaml", strings.Replace(shopPolicy, "verdict: deny", "verdict: forbid", 1)), `rules[2].verdict: "forbid" is not a verdict`},
		"none":         {filepath.Join(t.TempDir(), "none.yaml"), "none.yaml"},
	} {
		for _, args := range [][]string{{"test", c.file}, {"explain", c.file, "--tool", "file.read"}} {
			got := jigCLI(t, &fake{catalog: shopTools()}, nil, append([]string{"policy"}, args...)...)
			require.Equal(t, exitUsage, got.code, name)
			require.Contains(t, got.stderr, c.says, name)
			require.Empty(t, got.stdout, name)
		}
	}
	require.Equal(t, exitUsage, jigCLI(t, &fake{}, nil, "policy", "tset").code)
	require.Equal(t, exitUsage, jigCLI(t, &fake{}, nil, "policy", "test").code)
	require.Contains(t, jigCLI(t, &fake{}, nil, "policy").stdout, "jig policy test production.yaml")
}

func TestPolicyExplain_PrintsTheVerdictAndItsRules(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "shop.yaml", shopPolicy)
	for name, c := range map[string]struct {
		args   []string
		stdout string
		says   string
	}{
		"lifted": {
			[]string{"file.write", "--input", "path=docs/1"}, "file.write: run\n  policy shop, rule docs: pages are reviewed\n", "without the policy: ask\n",
		},
		"pairs and defaults": {
			[]string{"file.write", "--input", "path=7", "--input", "count=12"},
			"file.write: ask, for 1h30m\n  file.write changes data (permission write)\n  policy shop, rule many: it says ask\n", "",
		},
		"an input in JSON": {
			[]string{"file.write", "--input", `{"path": "a.md", "count": 2}`}, "file.write: ask\n  file.write changes data (permission write)\n", "",
		},
		"a group":      {[]string{"file.read", "--group", "ops", "--group", "guests"}, "file.read: deny\n  policy shop, rule guests: it says deny\n", "without the policy: run\n"},
		"a permission": {[]string{"file.read", "--permission", "guest"}, "file.read: deny\n  policy shop, rule guests: it says deny\n", ""},
		"an agent":     {[]string{"file.read", "--agent", "guest"}, "file.read: deny\n  policy shop, rule guests: it says deny\n", ""},
		"who and when": {
			[]string{"file.read", "--as", "bo", "--tenant", "acme", "--now", "2031-01-01T00:00:00+02:00"}, "file.read: deny\n  policy shop, rule late: it says deny\n", "",
		},
		"nobody": {[]string{"file.read"}, "file.read: run\n  file.read only reads (permission read)\n", "policy shop@"},
	} {
		got := jigCLI(t, &fake{catalog: shopTools()}, nil, append([]string{"policy", "explain", file, "--tool"}, c.args...)...)
		require.Equal(t, exitDone, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, c.stdout, got.stdout, name)
		require.Contains(t, got.stderr, c.says, name)
	}
	got := jigCLI(t, &fake{catalog: shopTools()}, nil, "policy", "explain", file, "--tool", "file.write", "--input", "count=4", "--input", "path=docs/x", "--output", "json")
	var report struct {
		PolicyVersion string `json:"policy_version"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Regexp(t, "^shop@[0-9a-f]{64}$", report.PolicyVersion)
	require.JSONEq(t, `{"tool":"file.write","verdict":"ask","expires":"1h30m","policy_version":"`+report.PolicyVersion+`",
		"reasons":["file.write changes data (permission write)","policy shop, rule many: it says ask","policy shop, rule docs: pages are reviewed (says run, overruled)"],
		"base":{"verdict":"ask","reasons":["file.write changes data (permission write)"]},
		"rules":[{"policy":"shop","rule":"many","verdict":"ask","reason":"it says ask"},{"policy":"shop","rule":"docs","verdict":"run","reason":"pages are reviewed"}]}`, got.stdout)
}

const payPolicy = `kind: policy
name: pay
rules:
  - name: two
    when: tool.name == 'billing.pay'
    verdict: ask
    approvers: {groups: [finance], permission: pay}
    quorum: 2
    not_requester: true
    expires: 2d
    remind: 90m
    escalate: [{after: 1d, approvers: {people: [dora]}}]
    on_expiry: cancel
  - {name: fail, when: "tool.name == 'billing.pay' && input.?amount.orValue(0) > 10", verdict: ask, on_expiry: fail}
cases:
  - {name: pays, tool: billing.pay, expect: ask, quorum: 2}
  - {name: pays alone, tool: billing.pay, expect: ask, quorum: 1}
`

// The verdict is shown together with who must approve.
func TestPolicy_ShowsWhoMustApprove(t *testing.T) {
	t.Parallel()
	file, e := writeFile(t, "pay.yaml", payPolicy), &fake{catalog: shopTools()}
	got := jigCLI(t, e, nil, "policy", "test", file)
	const terms = `needs 2 of group finance or permission pay (pay/two); after 1d also dora
IND the requester may not decide, having requested it
IND a reminder every 1h30m
IND if nobody decides in time, the session is canceled
`
	require.Equal(t, outcome{code: exitFailed, stderr: "failed: 1 of 2 cases\n", stdout: `ok    pays: ask, 2 of group finance or permission pay
FAIL  pays alone: the largest quorum is 2, not 1
        billing.pay changes data (permission write)
        policy pay, rule two: it says ask
        ` + strings.ReplaceAll(terms, "IND ", "        ")}, got)

	got = jigCLI(t, e, nil, "policy", "explain", file, "--tool", "billing.pay")
	require.Equal(t, "billing.pay: ask, for 2d\n  billing.pay changes data (permission write)\n  policy pay, rule two: it says ask\n  "+
		strings.ReplaceAll(terms, "IND ", "  "), got.stdout)
	got = jigCLI(t, e, nil, "policy", "explain", file, "--tool", "billing.pay", "--input", "amount=11")
	require.Contains(t, got.stdout, "  if nobody decides in time, the session fails\n")

	const asJSON = `{"requirements":[{"rule":"pay/two","approvers":{"groups":["finance"],"permission":"pay"},"quorum":2,
		"escalate":[{"after":"24h","approvers":{"people":["dora"]}}]}],"not_requester":true,"remind":"1h30m","on_expiry":"cancel"}`
	var report struct {
		Terms json.RawMessage
		Cases []struct{ Terms json.RawMessage }
	}
	got = jigCLI(t, e, nil, "policy", "explain", file, "--tool", "billing.pay", "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.JSONEq(t, asJSON, string(report.Terms))
	got = jigCLI(t, e, nil, "policy", "test", file, "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.JSONEq(t, asJSON, string(report.Cases[0].Terms))
}

func TestPolicyExplain_RefusesMistakes(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "shop.yaml", shopPolicy)
	for name, c := range map[string]struct {
		engine any
		args   []string
		code   int
		says   string
	}{
		"no tool":         {&fake{}, nil, exitUsage, "tool"},
		"an unknown tool": {&fake{catalog: shopTools()}, []string{"--tool", "file.wirte"}, exitFailed, `did you mean "file.write"?`},
		"a bad input":     {&fake{catalog: shopTools()}, []string{"--tool", "file.write", "--input", "path"}, exitUsage, "key=value"},
		"a bad time":      {&fake{catalog: shopTools()}, []string{"--tool", "file.write", "--now", "noon"}, exitUsage, "2026-12-24T20:00:00Z"},
		"no worker":       {noWorker(), []string{"--tool", "file.write"}, exitFailed, "give --catalog FILE, or --tool-permission to describe the tool"},
		"a bad permission": {
			noWorker(), []string{"--tool", "shop.refund", "--tool-permission", "wirte"}, exitUsage, `--tool-permission is "wirte"; it must be read`,
		},
		"a bad risk": {noWorker(), []string{"--tool", "shop.refund", "--tool-risk", "low"}, exitUsage, `--tool-risk is "low"; it must be safe`},
	} {
		got := jigCLI(t, c.engine, nil, append([]string{"policy", "explain", file}, c.args...)...)
		require.Equal(t, c.code, got.code, name)
		require.Contains(t, got.stderr, c.says, name)
		require.Empty(t, got.stdout, name)
	}
}

// The commands in docs/policy.md print what the page says. They need nothing but the files on the page.
func TestPolicyPage_CommandsPrintWhatItSays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/policy.md")
	require.NoError(t, err)
	files := map[string]string{}
	for _, example := range regexp.MustCompile("(?s)```yaml\n(kind: policy\nname: (.*?)\n.*?)```").FindAllSubmatch(raw, -1) {
		files[string(example[2])+".yaml"] = writeFile(t, "policy.yaml", string(example[1]))
	}
	commands := regexp.MustCompile("(?s)```\n\\$ jig (policy [^\n]*)\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	require.Len(t, commands, 3)
	for _, command := range commands {
		args := strings.Fields(command[1])
		for i, arg := range args {
			if file, ok := files[arg]; ok {
				args[i] = file
			}
		}
		got := jigCLI(t, noWorker(), nil, args...)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Equal(t, command[2], got.stdout)
	}
}
