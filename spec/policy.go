package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/seal"
	"github.com/jig-run/jig/internal/suggest"
)

// Policy is a parsed policy document: rules on tool calls, and test cases with the verdicts that the rules must give.
type Policy struct {
	Name        string
	Description string
	// Rules are all evaluated for every call. Their order does not matter.
	Rules []PolicyRule
	// Cases are the document's own tests.
	Cases []PolicyCase
}

// MaxPolicyRules limits the rules of a policy.
const MaxPolicyRules = 500

// PolicyCase is a test of a policy: a call, with the verdict that the policy must give on it.
type PolicyCase struct {
	Name string
	// Tool is the contract of the called tool. If Lookup is true, the case has only the tool's name, and the contract comes from the catalog.
	Tool   jig.Tool
	Lookup bool
	// Assumed is set if the case describes its tool without a permission, so that the tool counts as one that writes.
	Assumed bool
	// Input is the call's input, an object. It is {} if the case has none.
	Input     json.RawMessage
	Principal jig.Principal
	// Agent has only Name, Version and Registered.
	Agent   jig.Agent
	Tenant  string
	Session PolicySession
	// UntrustedArguments and UnknownDestinations are JSON pointers of arguments that cannot be traced.
	UntrustedArguments  []string
	UnknownDestinations []string
	// ComputedArguments are JSON pointers of numbers, dates and times that occur in no text.
	ComputedArguments []string
	// Now is the time of the call.
	Now time.Time
	// Expect is the verdict. Rules are the names of rules that must hold for the call; other rules may hold as well.
	Expect jig.Verdict
	Rules  []string
	// Quorum is how many people must approve according to the rule that requires most. It is 0 if the case does not check it.
	Quorum int
}

// PolicySession is the session of a case.
type PolicySession struct {
	ID     string          `json:"id,omitempty" spec:"max=128" jsonschema:"The session's id; default ses_case."`
	Task   string          `json:"task,omitempty" spec:"max=65536" jsonschema:"What the session was asked to do."`
	Input  json.RawMessage `json:"input,omitempty" spec:"form=schema" jsonschema:"The session's input."`
	Pass   int             `json:"pass,omitempty" spec:"min=1,max=100000" jsonschema:"The number of the pass that makes the call; default 1."`
	Writes int             `json:"writes,omitempty" spec:"min=0,max=1000000" jsonschema:"How many calls of the session have written so far."`
	// RootAgent, ParentAgent, Depth and Source say where the session comes from.
	RootAgent   string     `json:"root_agent,omitempty" spec:"max=134" jsonschema:"The agent of the first session of the tree; by default the agent itself."`
	ParentAgent string     `json:"parent_agent,omitempty" spec:"max=134" jsonschema:"The agent of the session that started this one; none by default."`
	Depth       int        `json:"depth,omitempty" spec:"min=0,max=100" jsonschema:"How many sessions are above this one; default 0."`
	Source      jig.Source `json:"source,omitempty" spec:"form=source" jsonschema:"web, api, mcp, cli, schedule or agent; default api."`
	// ReadPrivate and ReadUntrusted say what the session has read.
	ReadPrivate   bool `json:"read_private,omitempty" jsonschema:"Whether the session has read private data."`
	ReadUntrusted bool `json:"read_untrusted,omitempty" jsonschema:"Whether the session has read untrusted data."`
}

// policyHead is a document of kind policy.
type policyHead struct {
	Kind        string       `json:"kind" spec:"required" jsonschema:"policy."`
	Name        string       `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: production" jsonschema:"The policy's name: lower-case letters, digits, '.', '_' and '-'."`
	Description string       `json:"description,omitempty" spec:"max=4096" jsonschema:"What the policy is for."`
	Rules       []PolicyRule `json:"rules" spec:"required,min=1,max=500" hint:"add at least one rule" jsonschema:"The rules. All of them are evaluated for every call, and the strictest wins; their order does not matter."`
	Cases       []policyCase `json:"cases,omitempty" spec:"max=1000" jsonschema:"Calls and the verdicts that the policy must give: the document's own tests."`
}

// policyCase is a case as the document writes it.
type policyCase struct {
	Name string `json:"name" spec:"required,min=1,max=256" hint:"add e.g. name: a small refund runs" jsonschema:"What the case tests, in a few words; unique in the document."`
	// Tool is a text or a policyTool.
	Tool      json.RawMessage  `json:"tool" spec:"required" hint:"add e.g. tool: file.write" jsonschema:"The tool's name, or the relevant part of its contract."`
	Input     json.RawMessage  `json:"input,omitempty" spec:"form=schema" jsonschema:"The call's input."`
	Principal *policyPrincipal `json:"principal,omitempty" jsonschema:"The principal for whom the call is made."`
	// Agent is a text or a policyAgent.
	Agent   json.RawMessage `json:"agent,omitempty" jsonschema:"The agent that makes the call: the name of a registered agent, or its properties."`
	Tenant  string          `json:"tenant,omitempty" spec:"max=128" jsonschema:"The tenant; by default the one named default."`
	Session *PolicySession  `json:"session,omitempty" jsonschema:"The session that makes the call."`
	// Arguments that cannot be traced.
	UntrustedArguments  []string    `json:"untrusted_arguments,omitempty" spec:"max=1000,form=pointer" jsonschema:"The arguments that cannot be traced, as JSON pointers, e.g. /to; only with session.read_untrusted."`
	UnknownDestinations []string    `json:"unknown_destinations,omitempty" spec:"max=1000,form=pointer" jsonschema:"Those of them that data is sent to."`
	ComputedArguments   []string    `json:"computed_arguments,omitempty" spec:"max=1000,form=pointer" jsonschema:"Numbers, dates and times that occur in no text, as JSON pointers; only with session.read_untrusted."`
	Now                 string      `json:"now,omitempty" spec:"max=64" jsonschema:"When the call is made (RFC 3339); default 2026-01-01T12:00:00Z."`
	Expect              jig.Verdict `json:"expect" spec:"required" hint:"add expect: run, ask or deny" jsonschema:"The verdict: run, ask or deny."`
	Rules               []string    `json:"rules,omitempty" spec:"max=500" jsonschema:"Rules that must apply; others may apply too."`
	Quorum              int         `json:"quorum,omitempty" spec:"min=1,max=20" jsonschema:"How many people must approve, according to the rule that requires most; only with expect: ask."`
}

// policyPrincipal is the principal of a case.
type policyPrincipal struct {
	ID          string   `json:"id" spec:"required,max=128" hint:"add e.g. id: ana" jsonschema:"The principal's id."`
	Groups      []string `json:"groups,omitempty" spec:"max=1000" jsonschema:"The principal's groups."`
	Permissions []string `json:"permissions,omitempty" spec:"max=1000" jsonschema:"The principal's permissions."`
	// Proof says how the principal was authenticated.
	Proof jig.Proof `json:"proof,omitempty" spec:"form=proof" jsonschema:"claimed (the default), vouched, key or passkey."`
}

// policyAgent is the agent of a case.
type policyAgent struct {
	Name string `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: nightly" jsonschema:"The agent's name."`
	// Registered is true if it is left out. The name of an agent that is not registered becomes draft:<name>.
	Registered *bool  `json:"registered,omitempty" jsonschema:"Whether exactly this document is registered; default true. If false, rules see the name draft:<name>."`
	Version    string `json:"version,omitempty" spec:"max=128" jsonschema:"The version of its document."`
}

// policyTool is the contract of a case's tool. Missing keys get the same defaults as for a tool in code.
type policyTool struct {
	Name               string   `json:"name" spec:"required,max=64,form=tool_name" hint:"add e.g. name: billing.refund" jsonschema:"The tool's name."`
	Description        string   `json:"description,omitempty" spec:"max=4096" jsonschema:"What the tool does."`
	Category           string   `json:"category,omitempty" spec:"max=64" jsonschema:"Its category; by default the first part of the name."`
	Permission         string   `json:"permission,omitempty" spec:"form=permission" jsonschema:"read, draft, write (the default) or destructive."`
	Risk               string   `json:"risk,omitempty" spec:"form=risk" jsonschema:"safe, moderate (the default) or high."`
	Approval           string   `json:"approval,omitempty" spec:"form=approval" jsonschema:"auto (the default) or always_ask."`
	Idempotent         bool     `json:"idempotent,omitempty" jsonschema:"Whether running the same call twice changes nothing more."`
	Tags               []string `json:"tags,omitempty" spec:"max=32" jsonschema:"Its tags."`
	RequiredPermission string   `json:"required_permission,omitempty" spec:"max=128" jsonschema:"A permission that the principal must have."`
	Confirm            bool     `json:"confirm,omitempty" jsonschema:"Whether its input must be confirmed before it acts."`
	Undo               string   `json:"undo,omitempty" spec:"max=64,form=tool_name" jsonschema:"The tool that undoes the effect."`
	Implementation     string   `json:"implementation,omitempty" spec:"max=64" jsonschema:"go (the default), or the kind of the tool's document."`
	Labels             *labels  `json:"labels,omitempty" jsonschema:"Which kinds of data the tool reads, and whether it sends data away."`
}

// LoadPolicy reads a document of kind policy, in YAML or JSON. document is the file name for error messages. The error is a [Problems] with
// everything that is wrong.
func LoadPolicy(document string, body []byte) (Policy, error) {
	return loadAs[Policy](KindPolicy, document, body)
}

func (d *decoder) policy(h policyHead, _ source) Policy {
	p := Policy{Name: h.Name, Description: h.Description, Rules: h.Rules}
	names := d.checkPolicyRules(h.Rules)
	for i, c := range h.Cases {
		p.Cases = append(p.Cases, d.policyCase(indexPath("cases", i), c, names))
	}
	d.unique("cases", "name", len(h.Cases), func(i int) string { return h.Cases[i].Name })
	d.checkPolicyExpressions(h.Rules)
	return p
}

// policyVerdicts returns the verdicts that rules and cases may have. The verdict refuse is not among them: it is for calls that never reach
// policy.
func policyVerdicts() []jig.Verdict {
	return []jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny}
}

// checkPolicyRules checks rules that involve more than one key, and returns the names of the policy's rules.
func (d *decoder) checkPolicyRules(rules []PolicyRule) []string {
	names := make([]string, 0, len(rules))
	for i, rule := range rules {
		path := indexPath("rules", i)
		names = append(names, rule.Name)
		d.checkVerdict(path+".verdict", rule.Verdict)
		if rule.Untraced && rule.Verdict != jig.VerdictRun {
			d.at(path+".untraced", ProblemBadShape, "remove it, or write verdict: run", "only a rule with verdict run may have untraced")
		}
		d.checkTerms(path, rule)
	}
	d.unique("rules", "name", len(rules), func(i int) string { return rules[i].Name })
	return names
}

func (d *decoder) checkVerdict(path string, verdict jig.Verdict) {
	if n := d.places[path]; n == nil || n.kind != kindString || slices.Contains(policyVerdicts(), verdict) {
		return // a missing verdict, and one that is not text, were reported already
	}
	d.at(path, ProblemBadValue, "use run, ask or deny", "%q is not a verdict", verdict)
}

// unique reports entries of a list that have the same value for a key as an earlier one.
func (d *decoder) unique(list, key string, length int, name func(i int) string) {
	first := map[string]int{}
	for i := range length {
		j, again := first[name(i)]
		if name(i) == "" {
			continue
		}
		if again {
			d.at(indexPath(list, i)+"."+key, ProblemDuplicateID, "give one of them another "+key, "%q is already the %s of %s", name(i), jig.Known(key), jig.Known(indexPath(list, j)))
			continue
		}
		first[name(i)] = i
	}
}

// The defaults of a case.
const (
	caseSession = "ses_case"
	caseAgent   = "case"
	caseNow     = "2026-01-01T12:00:00Z"
)

// policyCase converts a case from its written form.
func (d *decoder) policyCase(path string, c policyCase, rules []string) PolicyCase {
	out := PolicyCase{
		Name: c.Name, Input: c.Input, Agent: d.policyAgent(path + ".agent"), Tenant: c.Tenant, Expect: c.Expect, Rules: c.Rules, Quorum: c.Quorum,
		Principal: jig.Principal{ID: "case"}, Session: PolicySession{ID: caseSession, Pass: 1},
	}
	out.Tool, out.Lookup = d.policyTool(path + ".tool")
	out.Assumed = !out.Lookup && !d.has(path+".tool.permission")
	d.checkVerdict(path+".expect", c.Expect)
	if d.has(path+".quorum") && c.Expect != jig.VerdictAsk {
		d.at(path+".quorum", ProblemBadShape, "remove it, or write expect: ask", "only a call that asks has a quorum")
	}
	d.checkObject(path+".input", c.Input)
	if len(out.Input) == 0 {
		out.Input = json.RawMessage(`{}`)
	}
	if c.Principal != nil {
		out.Principal = jig.Principal{ID: c.Principal.ID, Groups: c.Principal.Groups, Permissions: c.Principal.Permissions, Proof: c.Principal.Proof}
	}
	if c.Session != nil {
		d.checkObject(path+".session.input", c.Session.Input)
		out.Session = *c.Session
		setDefault(&out.Session.ID, caseSession)
		setDefault(&out.Session.Pass, 1)
	}
	d.caseFlow(path, c, &out)
	setDefault(&out.Tenant, jig.DefaultTenant)
	setDefault(&c.Now, caseNow)
	now, err := time.Parse(time.RFC3339, c.Now)
	if err != nil {
		d.at(path+".now", ProblemBadValue, "write e.g. "+caseNow, "%q is not a time", c.Now)
	}
	out.Now = now.UTC()
	for i, name := range c.Rules {
		if !slices.Contains(rules, name) {
			d.at(indexPath(path+".rules", i), ProblemBadValue, suggest.OrKnown(name, rules), "there is no rule %q", name)
		}
	}
	return out
}

// caseFlow reads where the arguments of a case come from.
func (d *decoder) caseFlow(path string, c policyCase, out *PolicyCase) {
	out.UntrustedArguments, out.UnknownDestinations, out.ComputedArguments = c.UntrustedArguments, c.UnknownDestinations, c.ComputedArguments
	const hint, message = "add session: {read_untrusted: true}", "arguments are traced only after the session has read untrusted data"
	if len(c.UntrustedArguments) > 0 && !out.Session.ReadUntrusted {
		d.at(path+".untrusted_arguments", ProblemBadShape, hint, message)
	}
	if len(c.ComputedArguments) > 0 && !out.Session.ReadUntrusted {
		d.at(path+".computed_arguments", ProblemBadShape, hint, message)
	}
	for i, pointer := range c.UnknownDestinations {
		if !slices.Contains(c.UntrustedArguments, pointer) {
			d.at(indexPath(path+".unknown_destinations", i), ProblemBadValue, "add it to untrusted_arguments", "%s is not one of untrusted_arguments", pointer)
		}
	}
}

// policyAgent reads the agent of a case: the name of a registered one, or a mapping.
func (d *decoder) policyAgent(path string) jig.Agent {
	agent := jig.Agent{Name: caseAgent, Registered: true}
	n := d.places[path]
	switch {
	case n == nil || n.kind == kindBroken:
	case n.kind == kindString:
		d.checkForm(path, n.text, "name")
		agent.Name = n.text
	case n.kind != kindMap:
		d.at(path, ProblemWrongType, "write the agent's name, or {name: …, registered: false}", "this must be text or a mapping, not %s", jig.Known(n.kind))
	default:
		var a policyAgent
		d.into(n, path, reflect.ValueOf(&a).Elem())
		agent = jig.Agent{Name: a.Name, Version: a.Version, Registered: a.Registered == nil || *a.Registered}
		if !agent.Registered {
			agent.Name = jig.DraftPrefix + agent.Name
		}
	}
	return agent
}

// policyTool reads the tool of a case: only its name (lookup), or its contract.
func (d *decoder) policyTool(path string) (tool jig.Tool, lookup bool) {
	n := d.places[path]
	switch {
	case n == nil || n.kind == kindBroken:
		return jig.Tool{}, false
	case n.kind == kindString:
		d.checkForm(path, n.text, "tool_name")
		return jig.Tool{Name: n.text}, true
	case n.kind != kindMap:
		d.at(path, ProblemWrongType, "write the tool's name, or {name: …, permission: …}", "this must be text or a mapping, not %s", jig.Known(n.kind))
		return jig.Tool{}, false
	}
	var t policyTool
	d.into(n, path, reflect.ValueOf(&t).Elem())
	tool, err := seal.Tool(jig.Tool{
		Name: t.Name, Description: t.Description, Category: t.Category, Permission: jig.Permission(t.Permission), Risk: jig.Risk(t.Risk),
		Approval: jig.ApprovalPolicy(t.Approval), Idempotent: t.Idempotent, Tags: t.Tags, RequiredPermission: t.RequiredPermission,
		Confirm: t.Confirm, Undo: t.Undo, Implementation: t.Implementation, Labels: t.Labels.contract(),
	})
	if err != nil {
		d.at(path, ProblemBadValue, "", "%v", err)
	}
	return tool, false
}

// checkObject refuses a value that is present and is not a mapping.
func (d *decoder) checkObject(path string, raw json.RawMessage) {
	if len(raw) > 0 && !bytes.HasPrefix(raw, []byte("{")) && d.places[path] != nil {
		d.wrongType(d.places[path], path, string(kindMap))
	}
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
