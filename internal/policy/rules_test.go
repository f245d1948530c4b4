package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/seal"
	"github.com/jig-run/jig/spec"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// load loads and compiles a policy.
func load(t testing.TB, text string) *policy.Rules {
	t.Helper()
	doc, problems := spec.Load("policy.yaml", []byte(text))
	require.Empty(t, problems)
	rules, err := policy.Compile(*doc.Policy(), doc.Version)
	require.NoError(t, err)
	return rules
}

// compile makes rules from conditions and verdicts, in order.
func compile(t testing.TB, rules ...spec.PolicyRule) *policy.Rules {
	t.Helper()
	compiled, err := policy.Compile(spec.Policy{Name: "p", Rules: rules}, "0123456789abcdef")
	require.NoError(t, err)
	return compiled
}

// decisions reads testdata/decisions.txt: the verdict by class of tool and set of rules.
func decisions(t *testing.T) (table map[string]map[string]jig.Verdict, sets []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/decisions.txt")
	require.NoError(t, err)
	table = map[string]map[string]jig.Verdict{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		switch {
		case words[0] == "#":
		case sets == nil:
			sets = words[1:]
		default:
			require.Len(t, words, len(sets)+1, line)
			table[words[0]] = map[string]jig.Verdict{}
			for i, set := range sets {
				table[words[0]][set] = jig.Verdict(words[i+1])
			}
		}
	}
	return table, sets
}

// classOf returns the class of a tool in the table.
func classOf(tool jig.Tool) string {
	has := func(word, words string) bool { return strings.Contains(" "+words+" ", " "+word+" ") }
	switch permission, risk, approval := string(tool.Permission), string(tool.Risk), string(tool.Approval); {
	case !has(permission, "read draft write"), !has(risk, "safe moderate high"), approval != "auto":
		return "fixed"
	case permission == "write", risk == "high":
		return "gated"
	}
	return "free"
}

// everyTool returns every contract that matters to policy, including unknown values.
func everyTool() []jig.Tool {
	var all []jig.Tool
	for _, permission := range []jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive, "", "raed"} {
		for _, risk := range []jig.Risk{jig.RiskSafe, jig.RiskModerate, jig.RiskHigh, "", "low"} {
			for _, approval := range []jig.ApprovalPolicy{jig.ApprovalAuto, jig.ApprovalAlwaysAsk, "", "never"} {
				all = append(all, jig.Tool{Name: "file.act", Permission: permission, Risk: risk, Approval: approval})
			}
		}
	}
	return all
}

func TestVerdict_TheStrictestRuleWins(t *testing.T) {
	t.Parallel()
	table, sets := decisions(t)
	tried := map[string]int{}
	for _, set := range sets {
		var rules []spec.PolicyRule
		for _, word := range strings.Split(set, "+") {
			switch word {
			case "none":
			case "other":
				rules = append(rules, spec.PolicyRule{Name: word, When: "tool.name == 'other.tool'", Verdict: jig.VerdictDeny})
			default:
				if verdict, fails := strings.CutPrefix(word, "fails-"); fails {
					rules = append(rules, spec.PolicyRule{Name: word, When: "call.input.missing == 1", Verdict: jig.Verdict(verdict)})
					continue
				}
				rules = append(rules, spec.PolicyRule{Name: word, When: "tool.name == 'file.act'", Verdict: jig.Verdict(word)})
			}
		}
		compiled := compile(t, rules...)
		for _, tool := range everyTool() {
			class := classOf(tool)
			got := compiled.Rule(t.Context(), tool, jig.Call{Tool: tool.Name}, jig.Session{}, noon)
			require.Equal(t, table[class][set], got.Verdict, "%s %q: %q %q %q", set, class, tool.Permission, tool.Risk, tool.Approval)
			require.NotEmpty(t, got.Reasons)
			require.Equal(t, "p@0123456789abcdef", got.PolicyVersion)
			tried[class]++
		}
	}
	require.Len(t, tried, len(table))
	require.GreaterOrEqual(t, tried["free"]+tried["gated"]+tried["fixed"], 150)
}

// Without a policy, and with a policy that does not apply, the tools' contracts decide.
func TestVerdict_WithoutRules(t *testing.T) {
	t.Parallel()
	var none *policy.Rules
	require.Equal(t, policy.BaseVersion, none.Version())
	require.Empty(t, none.Name())
	require.Empty(t, policy.Test(t.Context(), none, nil))
	silent := compile(t, spec.PolicyRule{Name: "never", When: "false", Verdict: jig.VerdictDeny})
	require.Equal(t, "p", silent.Name())
	for _, tool := range everyTool() {
		base := policy.BaseRuling(tool)
		require.Equal(t, base, none.Rule(t.Context(), tool, jig.Call{}, jig.Session{}, noon))
		base.PolicyVersion = silent.Version()
		require.Equal(t, base, silent.Rule(t.Context(), tool, jig.Call{}, jig.Session{}, noon))
	}
}

const refunds = `
kind: policy
name: shop
rules:
  - {name: small, when: call.input.amount <= 50.0, verdict: run, reason: "${call.input.amount} is little"}
  - {name: large, when: call.input.amount > 500.0, verdict: deny}
  - {name: night, when: now.getHours() < 6, verdict: ask, reason: "it is ${now.getHours()} o'clock,\n  ${principal.id}", expires: 2h}
  - {name: trainee, when: "'trainees' in principal.groups", verdict: ask, expires: 30m}
  - {name: broken, when: "session.input.flag && agent.name == 'desk'", verdict: run}
`

func TestReasons_IncludeEveryRule(t *testing.T) {
	t.Parallel()
	rules := load(t, refunds)
	tool := jig.Tool{Name: "shop.refund", Permission: jig.PermissionWrite}.WithDefaults()
	night := time.Date(2026, 3, 2, 3, 0, 0, 0, time.FixedZone("", 3600))
	flagged := json.RawMessage(`{"flag":false}`)
	const writes = "shop.refund changes data (permission write)"
	for name, c := range map[string]struct {
		amount  string
		session jig.Session
		now     time.Time
		tool    jig.Tool
		verdict jig.Verdict
		expires time.Duration
		reasons []string
	}{
		"a small one runs": {"20", jig.Session{Input: flagged}, noon, tool, jig.VerdictRun, 0, []string{"policy shop, rule small: 20 is little"}},
		"no rule applies":  {"100", jig.Session{Input: flagged}, noon, tool, jig.VerdictAsk, 0, []string{writes}},
		"a large one is denied": {
			"501",
			jig.Session{Input: flagged},
			night, tool, jig.VerdictDeny, 0,
			[]string{"policy shop, rule large: it says deny", "policy shop, rule night: it is 2 o'clock, (says ask, overruled)"},
		},
		"the strictest wins, and the shortest expiry": {
			"20",
			jig.Session{Input: flagged, Principal: jig.Principal{ID: "ana", Groups: []string{"trainees"}}},
			night, tool, jig.VerdictAsk, 30 * time.Minute,
			[]string{
				writes, "policy shop, rule night: it is 2 o'clock, ana", "policy shop, rule trainee: it says ask",
				"policy shop, rule small: 20 is little (says run, overruled)",
			},
		},
		"one rule's expiry": {
			"100",
			jig.Session{Input: flagged, Principal: jig.Principal{ID: "bo"}},
			night, tool, jig.VerdictAsk, 2 * time.Hour,
			[]string{writes, "policy shop, rule night: it is 2 o'clock, bo"},
		},
		"a run rule that fails": {
			"20",
			jig.Session{Agent: jig.Agent{Name: "desk"}},
			noon, tool, jig.VerdictRun, 0,
			[]string{
				"policy shop, rule small: 20 is little",
				"policy shop, rule broken: it failed, so it is ignored: no such key: 'flag'; has(…) or .?flag tests whether it is present",
			},
		},
		"what cannot be lifted": {
			"20",
			jig.Session{Input: flagged},
			noon, jig.Tool{Name: "shop.refund", Permission: jig.PermissionDestructive}.WithDefaults(), jig.VerdictAsk, 0,
			[]string{"shop.refund can destroy data (permission destructive)", "policy shop, rule small: 20 is little (says run, overruled)"},
		},
		"what runs anyway": {
			"20",
			jig.Session{Input: flagged},
			noon, jig.Tool{Name: "shop.refund", Permission: jig.PermissionRead}.WithDefaults(), jig.VerdictRun, 0,
			[]string{"shop.refund only reads (permission read)", "policy shop, rule small: 20 is little"},
		},
	} {
		got := rules.Rule(t.Context(), c.tool, jig.Call{Input: []byte(`{"amount":` + c.amount + `}`)}, c.session, c.now)
		base := name == "no rule applies" || name == "what cannot be lifted"
		require.Equal(t, policy.Ruling{Verdict: c.verdict, Reasons: c.reasons, Expires: c.expires, PolicyVersion: rules.Version(), Base: base}, got, name)
	}
	require.Regexp(t, `^shop@[0-9a-f]{64}$`, rules.Version())
}

// Every member that spec documents for rules is present on every call, even if its value is not known.
func TestRules_ReadWhatIsDocumented(t *testing.T) {
	t.Parallel()
	full := jig.Session{
		Tenant: "acme", ID: "ses_1", Agent: jig.Agent{Name: "desk", Version: "v7", Registered: true}, Input: json.RawMessage(`{"order":7}`), Task: "Refund it.", Pass: 3, Writes: 2,
		Principal: jig.Principal{ID: "ana", Groups: []string{"support"}, Permissions: []string{"shop.refund"}, Proof: jig.ProofKey},
		RootAgent: "reader", ParentAgent: "draft:helper", Depth: 2, Source: jig.SourceAgent,
	}
	tool, err := seal.Tool(jig.Tool{
		Name: "shop.refund", Description: "Refunds.", Risk: jig.RiskHigh, Tags: []string{"money"}, RequiredPermission: "shop.refund", Undo: "shop.charge", Idempotent: true, Confirm: true,
	})
	require.NoError(t, err)
	call := jig.Call{ID: "3.1", Pass: 3, Tool: "shop.refund", Input: []byte(`{"amount":12.5,"lines":[{"id":1}]}`)}
	var all []string
	for name, schema := range spec.PolicyShapes() {
		var shape struct {
			Properties map[string]struct{ Type string }
		}
		require.NoError(t, json.Unmarshal(schema, &shape))
		for member, of := range shape.Properties {
			celType := map[string]string{"string": "string", "integer": "int", "boolean": "bool", "array": "list", "object": "map"}[of.Type]
			all = append(all, "type("+name+"."+member+") == "+celType)
		}
	}
	require.Greater(t, len(all), 20)
	for _, condition := range append(all, "type(tenant) == string", "now == timestamp('2026-03-02T12:00:00Z')") {
		rules := compile(t, spec.PolicyRule{Name: "a", When: spec.Expression(condition), Verdict: jig.VerdictDeny})
		require.Equal(t, jig.VerdictDeny, rules.Rule(t.Context(), jig.Tool{}, jig.Call{}, jig.Session{}, noon).Verdict, condition)
		require.Equal(t, jig.VerdictDeny, rules.Rule(t.Context(), tool, call, full, noon).Verdict, condition)
	}
	rules := load(t, `
kind: policy
name: a
rules:
  - name: all
    verdict: deny
    when: >-
      tool.name == 'shop.refund' && tool.version != '' && tool.description == 'Refunds.' && tool.category == 'shop' && tool.permission == 'write' &&
      tool.risk == 'high' && tool.approval == 'auto' && tool.idempotent && tool.execution == 'activity' && tool.tags == ['money'] &&
      tool.required_permission == 'shop.refund' && tool.confirm && input.amount == 12.5 && tool.undo == 'shop.charge' && tool.implementation == 'go' && call.id == '3.1' &&
      call.tool == 'shop.refund' && call.pass == 3 && call.input.amount == 12.5 && call.input.lines[0].id == 1 && agent.name == 'desk' &&
      principal.id == 'ana' && principal.groups == ['support'] && principal.permissions == ['shop.refund'] && tenant == 'acme' &&
      session.id == 'ses_1' && session.task == 'Refund it.' && session.input.order == 7 && session.pass == 3 && session.writes == 2 &&
      agent.registered && agent.version == 'v7' && principal.proof == 'key' && session.root_agent == 'reader' &&
      session.parent_agent == 'draft:helper' && session.depth == 2 && session.source == 'agent'
`)
	require.Equal(t, jig.VerdictDeny, rules.Rule(t.Context(), tool, call, full, noon).Verdict)
}

// failures returns conditions that cannot be evaluated for an input, each with the text of the reason.
func failures() map[string]struct {
	when  spec.Expression
	input string
	says  string
} {
	padding := strings.Repeat(`{"iban":"DE1"},`, 60_000)
	return map[string]struct {
		when  spec.Expression
		input string
		says  string
	}{
		"a member that is missing":        {"call.input.x == 1", `{}`, "no such key: 'x'"},
		"a value of another type":         {"call.input.x > 1", `{"x":"1"}`, "'>' cannot be applied to (string, int)"},
		"an input that is not JSON":       {"call.input.x == 1", `{"x":`, "not JSON"},
		"a condition of another type":     {"call.input.x", `{"x":1}`, "true or false"},
		"a division by zero":              {"1 / call.input.x == 1", `{"x":0}`, "zero"},
		"padding before the checked part": {"call.input.items.exists(i, i.iban.startsWith('XX'))", `{"items":[` + padding + `{"iban":"XX1"}]}`, "more than 100000 steps"},
	}
}

// A rule that cannot be evaluated stays strict, even for a tool that would otherwise run: deny denies, ask asks, and run lifts nothing.
func TestRules_AFailingOneKeepsItsVerdict(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "file.read", Permission: jig.PermissionRead}.WithDefaults()
	write := jig.Tool{Name: "file.write", Permission: jig.PermissionWrite}.WithDefaults()
	for name, c := range failures() {
		for verdict, want := range map[jig.Verdict]struct {
			read, write jig.Verdict
			says        string
			person      bool
		}{
			jig.VerdictRun:  {jig.VerdictRun, jig.VerdictAsk, "it failed, so it is ignored: ", false},
			jig.VerdictAsk:  {jig.VerdictAsk, jig.VerdictAsk, "it failed, so it asks: ", true},
			jig.VerdictDeny: {jig.VerdictDeny, jig.VerdictDeny, "it failed, so it denies: ", true},
		} {
			rules := compile(t, spec.PolicyRule{Name: "fails", When: c.when, Verdict: verdict})
			x := rules.Explain(t.Context(), read, jig.Call{Input: []byte(c.input)}, jig.Session{}, noon)
			require.Equal(t, want.read, x.Verdict, name)
			require.Equal(t, want.person, x.Person, "%s: no grant replaces a rule that cannot be evaluated", name)
			require.Len(t, x.Rules, 1)
			require.True(t, x.Rules[0].Failed)
			require.Equal(t, verdict, x.Rules[0].Verdict)
			reason := x.Reasons[len(x.Reasons)-1]
			require.Contains(t, reason, "policy p, rule fails: "+want.says, name)
			require.Contains(t, reason, c.says, name)
			require.NotContains(t, reason, "overruled")
			got := rules.Rule(t.Context(), write, jig.Call{Input: []byte(c.input)}, jig.Session{}, noon)
			require.Equal(t, want.write, got.Verdict, name)
		}
	}
}

// The rules for a payment apply to prices with and without cents. An input that makes a rule fail does not disable it.
func TestInput_CannotWeakenARule(t *testing.T) {
	t.Parallel()
	rules := load(t, `
kind: policy
name: payments
rules:
  - {name: large, when: input.quantity * input.price > 1000, verdict: ask, approvers: {groups: [finance]}, quorum: 2, not_requester: true, expires: 2d}
  - {name: huge, when: input.quantity * input.price > 1000000, verdict: deny}
  - {name: small, when: input.quantity * input.price <= 100, verdict: run}
`)
	tool := jig.Tool{Name: "billing.pay"}.WithDefaults()
	for input, want := range map[string]jig.Verdict{
		`{"quantity":2,"price":30}`:                              jig.VerdictRun,
		`{"quantity":2,"price":30.5}`:                            jig.VerdictRun,
		`{"quantity":2,"price":600}`:                             jig.VerdictAsk,
		`{"quantity":2,"price":600.5}`:                           jig.VerdictAsk,
		`{"quantity":2000,"price":1000}`:                         jig.VerdictDeny,
		`{"quantity":2000,"price":1000.5}`:                       jig.VerdictDeny,
		`{"quantity":2000,"price":"1000.5"}`:                     jig.VerdictDeny,
		`{"quantity":2000}`:                                      jig.VerdictDeny,
		`{"quantity":2000,"price":null}`:                         jig.VerdictDeny,
		`{"quantity":9007199254740991,"price":9007199254740991}`: jig.VerdictDeny,
	} {
		got := rules.Rule(t.Context(), tool, jig.Call{Input: []byte(input)}, jig.Session{}, noon)
		require.Equal(t, want, got.Verdict, input)
		if want == jig.VerdictAsk {
			require.Equal(t, 2, got.Terms.Requirements[0].Quorum, input)
			require.True(t, got.Terms.NotRequester, input)
		}
	}
}

// If the context ends while a rule is evaluated, there is no ruling.
func TestRule_StopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, verdict := range []jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny} {
		rules := policy.NewSet(compile(t, spec.PolicyRule{Name: "all", When: "true", Verdict: verdict}))
		_, err := rules.Rule(ctx, jig.Tool{Name: "file.read", Permission: jig.PermissionRead}.WithDefaults(), jig.Call{}, jig.Session{}, noon)
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A reason is for people, so it is one line of limited length for any input. A failing reason does not change the verdict.
func TestReasons_AreOneLine(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"${call.input.text}":    "policy p, rule a: # Hello World of \"lines\"",
		"${call.input.missing}": "policy p, rule a: its reason could not be worked out: no such key: 'missing'; has(…) or .?missing tests whether it is present",
		"${call.input.blank}":   "policy p, rule a: it says deny",
		"":                      "policy p, rule a: it says deny",
	} {
		rules := compile(t, spec.PolicyRule{Name: "a", When: "true", Verdict: jig.VerdictDeny, Reason: template})
		call := jig.Call{Input: []byte(`{"text":"# Hello\n\n\u001b World\tof \"lines\"\u2028","blank":" \n"}`)}
		got := rules.Rule(t.Context(), jig.Tool{}, call, jig.Session{}, noon)
		require.Equal(t, []string{want}, got.Reasons)
	}
	rules := compile(t, spec.PolicyRule{Name: "a", When: "true", Verdict: jig.VerdictDeny, Reason: "${call.input.text}"})
	long, err := json.Marshal(map[string]string{"text": strings.Repeat("é", 10_000)})
	require.NoError(t, err)
	got := rules.Rule(t.Context(), jig.Tool{}, jig.Call{Input: long}, jig.Session{}, noon)
	require.Equal(t, "policy p, rule a: "+strings.Repeat("é", 499)+"…", got.Reasons[0])
}

// Many calls may be ruled on at the same time.
func TestRules_AreSharedSafely(t *testing.T) {
	t.Parallel()
	rules := load(t, refunds)
	q := jig.Session{Input: json.RawMessage(`{"flag":false}`), Principal: jig.Principal{ID: "ana", Groups: []string{"trainees"}}}
	tool := jig.Tool{Name: "shop.refund"}.WithDefaults()
	ruled := make(chan policy.Ruling)
	for range 8 {
		go func() {
			for n := range 50 {
				ruled <- rules.Rule(t.Context(), tool, jig.Call{Input: fmt.Appendf(nil, `{"amount":%d}`, 480+n)}, q, noon)
			}
		}()
	}
	verdicts := map[jig.Verdict]int{}
	for range 8 * 50 {
		verdicts[(<-ruled).Verdict]++
	}
	require.Equal(t, map[jig.Verdict]int{jig.VerdictAsk: 8 * 21, jig.VerdictDeny: 8 * 29}, verdicts)
}

func TestCompile_Refuses(t *testing.T) {
	t.Parallel()
	good := spec.PolicyRule{Name: "a", When: "true", Verdict: jig.VerdictAsk}
	many := make([]spec.PolicyRule, spec.MaxPolicyRules+1)
	for name, c := range map[string]struct {
		rules          []spec.PolicyRule
		field, message string
	}{
		"too many":          {many, "rules", "501 rules"},
		"names twice":       {[]spec.PolicyRule{good, good}, "rules[1].name", "two rules a"},
		"no condition":      {[]spec.PolicyRule{{Name: "a", Verdict: jig.VerdictAsk}}, "rules[0].when", "rule a"},
		"bad":               {[]spec.PolicyRule{{Name: "a", When: "user", Verdict: jig.VerdictAsk}}, "rules[0].when", "user"},
		"no verdict":        {[]spec.PolicyRule{{Name: "a", When: "true"}}, "rules[0].verdict", "not a verdict"},
		"refuse":            {[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictRefuse}}, "rules[0].verdict", "refuse"},
		"no boolean":        {[]spec.PolicyRule{{Name: "a", When: "'x'", Verdict: jig.VerdictAsk}}, "rules[0].when", "true or false"},
		"a reason":          {[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictAsk, Reason: "${"}}, "rules[0].reason", "closing"},
		"an expiry":         {[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictRun, Expires: 1}}, "rules[0].expires", "expires"},
		"a negative expiry": {[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictAsk, Expires: -1}}, "rules[0].expires", "expires"},
		"a quorum":          {[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictDeny, Quorum: 2}}, "rules[0].quorum", "quorum"},
		"nobody": {
			[]spec.PolicyRule{{Name: "a", When: "true", Verdict: jig.VerdictAsk, Approvers: &spec.Approvers{}}}, "rules[0].approvers", "names nobody",
		},
	} {
		_, err := policy.Compile(spec.Policy{Name: "p", Rules: c.rules}, "v")
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, name)
		require.Equal(t, c.field, jig.AsError(err).Field, name)
		require.ErrorContains(t, err, c.message, name)
	}
}
