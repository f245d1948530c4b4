package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// PolicyRule gives a verdict on the calls for which its condition holds.
type PolicyRule struct {
	// Name is unique in the document. It appears in the reasons for verdicts.
	Name string `json:"name" spec:"required,max=64,form=name" hint:"add e.g. name: large-refunds" jsonschema:"The rule's name, unique in the document; verdicts name it in their reasons."`
	// When is a CEL condition on tool, call, input, agent, principal, tenant, session and now.
	When Expression `json:"when" spec:"required,min=1,max=4096" hint:"add when: true for a rule that applies to every call" jsonschema:"The condition (CEL over tool, call, input, agent, principal, tenant, session and now)."`
	// Verdict is run, ask or deny.
	Verdict jig.Verdict `json:"verdict" spec:"required" hint:"add verdict: run, ask or deny" jsonschema:"run, ask or deny. The strictest rule whose condition holds wins."`
	// Reason is a template over the same names. People read it.
	Reason string `json:"reason,omitempty" spec:"max=4096" jsonschema:"The reason, for people; a template that reads the same variables."`
	// Untraced lets the rule run calls whose arguments cannot be traced, which otherwise ask a person; see docs/data-flow.md.
	Untraced bool `json:"untraced,omitempty" jsonschema:"Whether calls with untrusted arguments run, too, after the session has read untrusted data; only with verdict: run."`
	// Expires is how long an approval that the rule asks for may wait. If zero, the agent's setting applies.
	Expires Duration `json:"expires,omitempty" spec:"min=1s,max=365d,term" jsonschema:"How long the approval waits, e.g. 48h; only with verdict: ask."`
	// Approvers lists who may decide. If nil, everybody may.
	Approvers *Approvers `json:"approvers,omitempty" spec:"term" jsonschema:"Who may decide; everybody by default. Only with verdict: ask."`
	// Quorum is how many distinct people must approve; 0 means 1.
	Quorum int `json:"quorum,omitempty" spec:"min=1,max=20,term" jsonschema:"How many distinct people must approve; default 1. Only with verdict: ask."`
	// NotRequester keeps those who asked for the call from deciding. If nil, that is so in a tenant with several people. False lets them decide
	// unless another rule that asks says true.
	NotRequester *bool `json:"not_requester,omitempty" spec:"term" jsonschema:"Whether those who asked for the call are excluded from deciding it; by default they are in a tenant with several people. False lets them decide if no other rule says true. Only with verdict: ask."`
	// Proof is the weakest proof with which a decision counts, if it is more than what the tenant demands.
	Proof jig.Proof `json:"proof,omitempty" spec:"form=proof,term" jsonschema:"The weakest proof with which a decision counts, e.g. passkey, if it is more than what the tenant demands; only with verdict: ask."`
	// Remind is the interval between reminders. If zero, there are none.
	Remind Duration `json:"remind,omitempty" spec:"min=1m,max=30d,term" jsonschema:"How often people are reminded while the approval waits, e.g. 4h; only with verdict: ask."`
	// Escalate lets further people decide as time passes.
	Escalate []Escalation `json:"escalate,omitempty" spec:"min=1,max=10,term" jsonschema:"Who else may decide after it has waited for some time; only with verdict: ask and approvers."`
	// OnExpiry says what happens to the call if nobody decides in time. If empty, the call is denied.
	OnExpiry jig.ExpiryOutcome `json:"on_expiry,omitempty" spec:"form=on_expiry,term" jsonschema:"What happens if nobody decides in time: deny (the default: the call ends and the agent continues), cancel or fail (the session). Only with verdict: ask."`
}

// Approvers says who may decide an approval: everyone who is named by at least one of the keys.
type Approvers struct {
	People     []string `json:"people,omitempty" spec:"min=1,max=100,form=label" jsonschema:"Principals who may decide."`
	Groups     []string `json:"groups,omitempty" spec:"min=1,max=100,form=label" jsonschema:"Groups whose members may decide; the tenant's document says who is in them."`
	Permission string   `json:"permission,omitempty" spec:"min=1,max=128" jsonschema:"Principals with this permission may decide."`
}

// Escalation lets further people decide once an approval has waited for some time.
type Escalation struct {
	After     Duration  `json:"after" spec:"required,min=1s,max=365d" hint:"add e.g. after: 4h" jsonschema:"When this happens: how long the approval has waited, e.g. 4h."`
	Approvers Approvers `json:"approvers" spec:"required" hint:"add e.g. approvers: {groups: [leads]}" jsonschema:"Who may also decide from then on."`
}

// MaxQuorum is the largest quorum that a rule may demand.
const MaxQuorum = 20

// termKeys returns the keys of a rule that set the terms of its approval. They require verdict: ask.
func termKeys() []string {
	var keys []string
	for _, f := range fieldsOf(reflect.TypeFor[PolicyRule]()) {
		if f.term {
			keys = append(keys, f.name)
		}
	}
	return keys
}

// says reports whether the rule gives a key a value other than zero.
func (r PolicyRule) says(key string) bool {
	return slices.ContainsFunc(fieldsOf(reflect.TypeFor[PolicyRule]()), func(f field) bool {
		return f.name == key && !reflect.ValueOf(r).FieldByIndex(f.index).IsZero()
	})
}

// Terms returns what the rule demands of an approval. policy is the name of the policy, which is part of the rule's name for people.
func (r PolicyRule) Terms(policy string) jig.Terms {
	t := jig.Terms{Proof: r.Proof, Remind: jig.Duration(r.Remind), OnExpiry: r.OnExpiry}
	name := policy + "/" + r.Name
	switch {
	case r.NotRequester == nil:
	case *r.NotRequester:
		t.NotRequester = true
	default:
		t.RequesterMay = name
	}
	if r.Approvers == nil && r.Quorum <= 1 {
		return t
	}
	need := jig.Requirement{Rule: name, Quorum: max(1, r.Quorum)}
	if r.Approvers != nil {
		need.Approvers = jig.Approvers(*r.Approvers)
	}
	for _, e := range r.Escalate {
		need.Escalate = append(need.Escalate, jig.Escalation{After: jig.Duration(e.After), Approvers: jig.Approvers(e.Approvers)})
	}
	t.Requirements = []jig.Requirement{need}
	return t
}

// CheckTerms checks the terms of a rule that was made in code. The conditions are the same as for a rule in a document. The error is
// INVALID_INPUT with the rule's key as its field, e.g. quorum.
func (r PolicyRule) CheckTerms() error {
	refuse := func(field, hint, format string, args ...any) error {
		return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField(field).WithHint(hint)
	}
	for _, key := range termKeys() {
		if r.says(key) && r.Verdict != jig.VerdictAsk {
			return refuse(key, onlyAskHint, "%s", jig.Known(onlyAsk(key)))
		}
	}
	outcomes := []jig.ExpiryOutcome{"", jig.ExpiryDeny, jig.ExpiryCancel, jig.ExpiryFail}
	switch {
	case r.Expires < 0:
		return refuse("expires", "remove it", "an approval cannot expire before it is requested")
	case r.Remind < 0:
		return refuse("remind", "remove it", "nobody can be reminded before the approval is requested")
	case r.Quorum < 0 || r.Quorum > MaxQuorum:
		return refuse("quorum", fmt.Sprintf("use 1 to %d", MaxQuorum), "%d is out of range", r.Quorum)
	case !slices.Contains(outcomes, r.OnExpiry):
		return refuse("on_expiry", "use deny, cancel or fail", "%q is not a valid on_expiry", r.OnExpiry)
	case r.Approvers != nil && jig.Approvers(*r.Approvers).Anybody():
		return refuse("approvers", nobodyHint, "%s", jig.Known(nobody))
	}
	for i, e := range r.Escalate {
		if e.After <= 0 {
			return refuse(indexPath("escalate", i)+".after", "write e.g. 4h", "an escalation needs a positive duration")
		}
		if jig.Approvers(e.Approvers).Anybody() {
			return refuse(indexPath("escalate", i)+".approvers", nobodyHint, "%s", jig.Known(nobody))
		}
	}
	for _, p := range r.termProblems() {
		return refuse(p.path, p.hint, "%s", jig.Words(p.message))
	}
	return nil
}

const (
	onlyAskHint = "remove it, or write verdict: ask"
	nobody      = "this names nobody"
	nobodyHint  = "give people, groups or a permission; without approvers everybody may decide"
)

func onlyAsk(key string) string {
	if key == "expires" {
		return "only a rule that asks has an approval that expires"
	}
	return "only a rule that asks may have " + key
}

// termProblem is a problem with the terms of a rule, with its path in the rule.
type termProblem struct{ path, hint, message string }

// termProblems returns the problems that involve more than one key.
func (r PolicyRule) termProblems() []termProblem {
	var list []termProblem
	if len(r.Escalate) > 0 && r.Approvers == nil {
		list = append(list, termProblem{"escalate", "add approvers, or remove it", "without approvers, everybody may already decide"})
	}
	last := Duration(0)
	for i, e := range r.Escalate {
		path := indexPath("escalate", i) + ".after"
		switch {
		case e.After <= 0: // reported when the value was read
			continue
		case e.After <= last:
			list = append(list, termProblem{path, "order them by after, each later than the one before", jig.Templatef("%s is not after %s", e.After, last)})
		case r.Expires > 0 && e.After >= r.Expires:
			list = append(list, termProblem{path, "escalate sooner, or expire later", jig.Templatef("the approval has already expired by then (after %s)", r.Expires)})
		}
		last = e.After
	}
	if people, listed := r.decided(); listed && r.Quorum > people {
		list = append(list, termProblem{"quorum", "name more people, or a group", fmt.Sprintf("%d people must approve, but only %d may decide", r.Quorum, people)})
	}
	return list
}

// decided counts the people who can ever become entitled to decide. listed is true if the number is known, that is, if the rule and its
// escalations name only people, not groups or permissions.
func (r PolicyRule) decided() (people int, listed bool) {
	if r.Approvers == nil {
		return 0, false
	}
	distinct := map[string]bool{}
	for _, a := range append([]Escalation{{Approvers: *r.Approvers}}, r.Escalate...) {
		if len(a.Approvers.People) == 0 || len(a.Approvers.Groups) > 0 || a.Approvers.Permission != "" {
			return 0, false
		}
		for _, one := range a.Approvers.People {
			distinct[one] = true
		}
	}
	return len(distinct), true
}

// checkTerms checks the terms of a rule at a path.
func (d *decoder) checkTerms(path string, rule PolicyRule) {
	d.checkApprovers(path + ".approvers")
	for i := range rule.Escalate {
		d.checkApprovers(indexPath(path+".escalate", i) + ".approvers")
	}
	if rule.Verdict != jig.VerdictAsk {
		for _, key := range termKeys() {
			if d.has(path + "." + key) {
				d.at(path+"."+key, ProblemBadShape, onlyAskHint, "%s", jig.Known(onlyAsk(key)))
			}
		}
		return
	}
	for _, p := range rule.termProblems() {
		d.at(path+"."+p.path, ProblemBadShape, p.hint, "%s", jig.Words(p.message))
	}
}

// checkApprovers refuses a mapping that names nobody.
func (d *decoder) checkApprovers(path string) {
	if n := d.places[path]; n != nil && n.kind == kindMap && len(n.entries) == 0 {
		d.at(path, ProblemBadShape, nobodyHint, "%s", jig.Known(nobody))
	}
}

// PolicyShapes returns the JSON Schemas of the variables that the rules of a policy can read, by name. All members that a schema lists are
// present for every call. Texts that are not known are empty.
func PolicyShapes() expr.Shapes {
	const text, number, flag, texts = `{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"type":"array","items":{"type":"string"}}`
	object := func(members map[string]string) json.RawMessage {
		properties := make(map[string]json.RawMessage, len(members))
		for name, schema := range members {
			properties[name] = json.RawMessage(schema)
		}
		raw, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": properties})
		if err != nil {
			panic("spec: cannot marshal a constant: " + err.Error())
		}
		return raw
	}
	return expr.Shapes{
		"tool": object(map[string]string{
			"name": text, "version": text, "description": text, "category": text, "permission": text, "risk": text, "approval": text,
			"idempotent": flag, "execution": text, "tags": texts, "reads": texts, "sends": flag, "required_permission": text, "confirm": flag, "undo": text, "implementation": text,
		}),
		"input": json.RawMessage(`{"type":"object"}`),
		"call": object(map[string]string{
			"id": text, "tool": text, "input": `{"type":"object"}`, "pass": number, "untrusted_arguments": texts, "unknown_destinations": texts,
			"computed_arguments": texts,
		}),
		"agent":     object(map[string]string{"name": text, "registered": flag, "version": text}),
		"principal": object(map[string]string{"id": text, "groups": texts, "permissions": texts, "proof": text}),
		"session": object(map[string]string{
			"id": text, "task": text, "input": `{"type":"object"}`, "pass": number, "writes": number,
			"root_agent": text, "parent_agent": text, "depth": number, "source": text, "read_private": flag, "read_untrusted": flag,
		}),
	}
}

// checkPolicyExpressions checks the conditions and reasons of rules.
func (d *decoder) checkPolicyExpressions(rules []PolicyRule) {
	var all weight
	for i, rule := range rules {
		all.expression(string(rule.When))
		if n := d.places[indexPath("rules", i)+".reason"]; n != nil {
			all.add(n)
		}
	}
	if all.count > maxExpressions || all.bytes > maxExpressionBytes {
		d.at("rules", ProblemTooMany, "shorten the conditions, or use fewer loops",
			"the rules have more than %d expressions or %d bytes of expressions, or too many loops in one expression", maxExpressions, maxExpressionBytes)
		return
	}
	env, err := expr.PolicyUse().Env()
	if err != nil {
		d.at("rules", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c, shapes := compiler{decoder: d, env: env}, PolicyShapes()
	before, wrong := len(d.problems), 0
	for i, rule := range rules {
		if wrong > maxWrongBytes || len(d.problems)-before > maxExpressionProblems {
			return
		}
		path := indexPath("rules", i)
		if rule.When != "" {
			if err := env.Check(string(rule.When), expr.Bool, shapes); err != nil {
				wrong += len(rule.When)
				c.report(path+".when", err)
			}
		}
		if err := env.CheckTemplate(rule.Reason, shapes); err != nil {
			wrong += len(rule.Reason)
			c.report(path+".reason", err)
		}
	}
}

// ProblemInputOfAnyTool warns of a rule that reads a member of the input without saying which tool's input it means.
const ProblemInputOfAnyTool ProblemCode = "INPUT_OF_ANY_TOOL"

// adviseRules warns of rules that fail on calls of tools that their author did not think of. Such a rule keeps its verdict: it denies those
// calls or asks about them.
func adviseRules(doc *Document) Problems {
	env, err := expr.PolicyUse().Env()
	if err != nil {
		return nil //nolint:nilerr // without an environment there is no advice to give
	}
	var problems Problems
	for i, rule := range doc.Policy().Rules {
		if rule.Verdict == jig.VerdictRun { // such a rule is ignored when it fails
			continue
		}
		when, err := env.CompileAs(string(rule.When), expr.Bool)
		if err != nil { // reading the document has reported it
			continue
		}
		member := unguarded(when)
		if member == "" {
			continue
		}
		does := "asks"
		if rule.Verdict == jig.VerdictDeny {
			does = "denies"
		}
		input, name := member[:strings.LastIndex(member, ".")], member[strings.LastIndex(member, ".")+1:]
		p := problemAt(doc, (*place)(nil).key("rules").item(i).key("when"), ProblemInputOfAnyTool,
			"name the tool first, e.g. tool.name == 'shop.refund' && …, or write "+input+".?"+name+".orValue(…)",
			"on calls without %s, of any tool, the rule fails and %s", member, does)
		p.Severity = SeverityWarning
		problems = append(problems, p)
	}
	return problems
}

// unguarded returns the first member of the call's input that a condition reads although it neither names the tool nor tests whether the
// member is present. It returns an empty string if there is none.
func unguarded(when *expr.Program) string {
	read, asked := when.Members()
	for _, naming := range []string{"tool.name", "tool.version", "tool.category", "tool.tags", "tool.implementation", "call.tool"} {
		if slices.Contains(read, naming) {
			return ""
		}
	}
	for _, member := range read {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(member, "call."), "input.")
		if ok && !strings.ContainsAny(rest, ".[") && !slices.Contains(asked, member) {
			return member
		}
	}
	return ""
}
