package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// Rules is a compiled policy document. It is immutable and safe for concurrent use. A nil *Rules means the base rules alone.
type Rules struct {
	name    string
	version string
	rules   []rule
	cases   []spec.PolicyCase
}

// rule is a compiled rule of a document.
type rule struct {
	spec.PolicyRule
	when   *expr.Program
	reason *expr.Template
}

// Compile compiles a policy. version is the version of the document, the hash of its content. A document that was loaded without problems
// always compiles; for any other the error is INVALID_INPUT with the field, e.g. rules[2].when.
func Compile(p spec.Policy, version string) (*Rules, error) {
	env, err := expr.PolicyUse().Env()
	if err != nil {
		return nil, fmt.Errorf("compile policy %s: %w", p.Name, err)
	}
	if len(p.Rules) > spec.MaxPolicyRules {
		return nil, jig.Errorf(jig.CodeInvalidInput, "policy %s has %d rules", p.Name, len(p.Rules)).WithField("rules").
			WithHint(fmt.Sprintf("use at most %d", spec.MaxPolicyRules))
	}
	r := &Rules{name: p.Name, version: version, cases: p.Cases}
	names := map[string]bool{}
	for i, one := range p.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		if names[one.Name] {
			return nil, jig.Errorf(jig.CodeInvalidInput, "policy %s has two rules %s", p.Name, one.Name).WithField(at + ".name").
				WithHint("give one of them another name")
		}
		names[one.Name] = true
		made, field, err := compileRule(env, one)
		if err != nil {
			e := jig.AsError(err)
			return nil, jig.Errorf(jig.CodeInvalidInput, "policy %s, rule %s: %w", p.Name, one.Name, err).
				WithField(at + "." + field).WithHint(e.Hint)
		}
		r.rules = append(r.rules, made)
	}
	// The order of rules in a document has no meaning, so it must not affect rulings either.
	slices.SortFunc(r.rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(strictness(b.Verdict), strictness(a.Verdict)), cmp.Compare(a.Name, b.Name))
	})
	return r, nil
}

func compileRule(env *expr.Env, one spec.PolicyRule) (made rule, field string, err error) {
	made = rule{PolicyRule: one}
	if strictness(one.Verdict) == 0 {
		return made, "verdict", jig.Errorf(jig.CodeInvalidInput, "%q is not a verdict", one.Verdict).WithHint("use run, ask or deny")
	}
	if one.Untraced && one.Verdict != jig.VerdictRun {
		return made, "untraced", jig.Errorf(jig.CodeInvalidInput, "only a rule with verdict run may have untraced").WithHint("remove untraced")
	}
	if err := one.CheckTerms(); err != nil {
		return made, jig.AsError(err).Field, err
	}
	if made.when, err = env.CompileAs(string(one.When), expr.Bool); err != nil {
		return made, "when", err
	}
	made.reason, err = env.Template(one.Reason)
	return made, "reason", err
}

// strictness orders the verdicts that rules may give; 0 for anything else.
func strictness(v jig.Verdict) int {
	switch v {
	case jig.VerdictRun:
		return 1
	case jig.VerdictAsk:
		return 2
	case jig.VerdictDeny:
		return 3
	case jig.VerdictRefuse: // calls that are refused never reach policy
	}
	return 0
}

// Name returns the document's name. It is empty for the base rules alone.
func (r *Rules) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Version returns the policy version that rulings carry: <name>@<version of the document>, or [BaseVersion] for the base rules.
func (r *Rules) Version() string {
	if r == nil {
		return BaseVersion
	}
	return r.name + "@" + r.version
}

// AppliedRule is a rule that applies to a call: its condition holds, or cannot be evaluated.
type AppliedRule struct {
	protocol.AppliedRule
	rule spec.PolicyRule
}

// counts reports whether the rule takes part in the verdict. A failing ask or deny rule still counts; a failing run rule does not.
func (s AppliedRule) counts() bool { return !s.Failed || s.Verdict != jig.VerdictRun }

// strictness orders the rules that apply; 0 for a rule that is ignored.
func (s AppliedRule) strictness() int {
	if !s.counts() {
		return 0
	}
	return strictness(s.Verdict)
}

// Explanation is a ruling with the base verdict and the rules that led to it.
type Explanation struct {
	Ruling
	// Base is the ruling from the tool's contract alone.
	Base Ruling
	// Rules lists the rules that apply, the strictest first, then by policy and name.
	Rules []AppliedRule
}

// Asked returns the ruling for calls that must not be denied: deny becomes ask, on the terms of the rules that ask.
func (x Explanation) Asked() Ruling {
	if x.Verdict == jig.VerdictDeny {
		ask(&x.Ruling, x.Rules)
	}
	return x.Ruling
}

// Rule returns the verdict on a call: the tool's base verdict, unless rules of the document say otherwise. Of the rules whose condition
// holds, the strictest wins: deny, then ask, then run. Ask and deny make any verdict stricter. Run lifts the ask of a tool that writes or
// has high risk, but never of a tool that is destructive, always asks, or has an unknown setting in its contract. A rule whose condition
// cannot be evaluated counts as if the condition held, except that run is then ignored. The reasons include every rule that applies. An
// approval must meet the combined demands of all rules that ask; if no rule asks, anybody may decide. The input in call must be the input
// that will run.
func (r *Rules) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Ruling {
	return r.Explain(ctx, tool, call, session, now).Ruling
}

// Explain is like [Rules.Rule] and also returns the base verdict and the rules that led to the ruling.
func (r *Rules) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	if r == nil {
		return Set(nil).Explain(ctx, tool, call, session, now)
	}
	return Set{r}.Explain(ctx, tool, call, session, now)
}

// asksUntraced reports whether the call asks because it has arguments that cannot be traced and no rule that applies lifts that. If the lists of
// these arguments were cut, no rule does, because its condition has not seen all of them.
func (b base) asksUntraced(applied []AppliedRule) bool {
	return len(b.untraced) > 0 && (b.cut || !slices.ContainsFunc(applied, func(s AppliedRule) bool { return s.rule.Untraced && s.counts() }))
}

// decide combines the base verdict with the rules that apply. Arguments that cannot be traced make a verdict of run ask.
func decide(start base, applied []AppliedRule) jig.Verdict {
	verdict := combine(start, applied)
	if verdict == jig.VerdictRun && start.asksUntraced(applied) {
		return jig.VerdictAsk
	}
	return verdict
}

// combine applies the rules to the verdict of the tool's contract.
func combine(start base, applied []AppliedRule) jig.Verdict {
	strictest := jig.Verdict("")
	for _, s := range applied {
		if s.strictness() > strictness(strictest) {
			strictest = s.Verdict
		}
	}
	switch {
	case strictest == "":
		return start.verdict
	case strictest == jig.VerdictRun && start.fixed:
		return start.verdict
	}
	return strictest
}

// apply evaluates every rule of the document and returns those that apply.
func (r *Rules) apply(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) []AppliedRule {
	if r == nil || len(r.rules) == 0 {
		return nil
	}
	vars := variables(tool, call, session, now)
	var all []AppliedRule
	for _, one := range r.rules {
		s := AppliedRule{protocol.AppliedRule{Policy: r.name, Rule: one.Name, Verdict: one.Verdict}, one.PolicyRule}
		holds, err := one.when.EvalBool(ctx, vars)
		switch {
		case err != nil:
			s.Failed, s.Reason = true, clip.Line(failed(one.Verdict)+why(err), maxReason)
		case holds:
			s.Reason = one.because(ctx, vars)
		default:
			continue
		}
		all = append(all, s)
	}
	return all
}

// failed returns the beginning of the reason of a rule whose condition cannot be evaluated.
func failed(v jig.Verdict) string {
	switch v {
	case jig.VerdictDeny:
		return "it failed, so it denies: "
	case jig.VerdictRun:
		return "it failed, so it is ignored: "
	case jig.VerdictAsk, jig.VerdictRefuse: // no rule says refuse
	}
	return "it failed, so it asks: "
}

// because returns the rule's reason. A reason that cannot be evaluated does not change the verdict.
func (r rule) because(ctx context.Context, vars map[string]any) string {
	text, err := r.reason.EvalText(ctx, vars)
	if err != nil {
		text = "its reason could not be worked out: " + why(err)
	}
	if text = clip.Line(text, maxReason); text != "" {
		return text
	}
	return "it says " + string(r.Verdict)
}

// why returns what went wrong with an expression, without quoting the expression.
func why(err error) string {
	var issue *expr.IssueError
	if errors.As(err, &issue) {
		return issue.Message
	}
	return jig.AsError(err).Message
}

// maxReason limits the length of a reason, in characters.
const maxReason = 500

// Set holds the policies of a tenant. The rules of all policies are evaluated on every call, and the strictest wins, whichever document it is
// in. An empty set means the base rules alone. A set is immutable and safe for concurrent use.
type Set []*Rules

// NewSet makes a set of policies. Their order has no meaning.
func NewSet(list ...*Rules) Set {
	s := Set(slices.Clone(list))
	slices.SortFunc(s, func(a, b *Rules) int { return cmp.Compare(a.Version(), b.Version()) })
	return s
}

// Version returns the policy version that rulings carry: the versions of all documents, or [BaseVersion] for the base rules.
func (s Set) Version() string {
	if len(s) == 0 {
		return BaseVersion
	}
	versions := make([]string, len(s))
	for i, r := range s {
		versions[i] = r.Version()
	}
	return strings.Join(versions, " ")
}

// Rule returns the verdict of these policies on a call; see [Rules.Rule]. It returns an error if ctx ended before all rules were evaluated,
// because the result of an interrupted rule is not known.
func (s Set) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Ruling, error) {
	x := s.Explain(ctx, tool, call, session, now)
	if err := ctx.Err(); err != nil {
		return Ruling{}, fmt.Errorf("evaluate the policies: %w", err)
	}
	return x.Ruling, nil
}

// Explain is like [Set.Rule] and also returns the base verdict and the rules that led to the ruling. It does not check whether ctx has ended.
func (s Set) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	start := baseVerdict(tool)
	start.trace(tool, call)
	x := Explanation{Base: start.ruling()}
	for _, r := range s {
		x.Rules = append(x.Rules, r.apply(ctx, tool, call, session, now)...)
	}
	slices.SortStableFunc(x.Rules, func(a, b AppliedRule) int {
		return cmp.Or(cmp.Compare(b.strictness(), a.strictness()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule))
	})
	x.Ruling = Ruling{Verdict: decide(start, x.Rules), PolicyVersion: s.Version()}
	if x.Verdict == start.verdict {
		x.Reasons = slices.Clone(start.reasons)
	}
	for _, applied := range x.Rules {
		reason := fmt.Sprintf("policy %s, rule %s: %s", applied.Policy, applied.Rule, applied.Reason)
		if applied.counts() && applied.Verdict != x.Verdict {
			reason += fmt.Sprintf(" (says %s, overruled)", applied.Verdict)
		}
		x.Reasons = append(x.Reasons, reason)
	}
	if x.Verdict == jig.VerdictAsk {
		ask(&x.Ruling, x.Rules)
	}
	if asks := start.asksUntraced(x.Rules); asks && x.Verdict != jig.VerdictDeny {
		x.Reasons = append(x.Reasons, start.untraced...)
		if way := start.wayOut(x.Rules); way != "" {
			x.Reasons = append(x.Reasons, way)
		}
		x.Ruling.Base, x.Person = false, true
	}
	x.Person = x.Person || slices.ContainsFunc(x.Rules, func(s AppliedRule) bool { return s.Failed && s.counts() })
	return x
}

// Ruling is a verdict with its reasons, which are shown to people.
type Ruling struct {
	Verdict jig.Verdict `json:"verdict"`
	Reasons []string    `json:"reasons"`
	// PolicyVersion is <name>@<content hash> of the policy that decided. If only the base rules applied, it is their hash.
	PolicyVersion string `json:"policy_version"`
	// Expires is how long the approval waits before it expires; zero means the agent's setting. In JSON: nanoseconds.
	Expires time.Duration `json:"expires,omitempty"`
	// Terms are the conditions for an approval. They are set when the verdict is ask.
	Terms jig.Terms `json:"terms,omitzero"`
	// Base reports that the verdict is ask because of the tool's contract alone: no rule asked for more.
	Base bool `json:"base,omitempty"`
	// Person reports that no grant may approve the call, because a rule that asks or denies cannot be evaluated.
	Person bool `json:"person,omitempty"`
	// Held says why nothing can be decided now: a policy cannot be read. Until it can be read, the call neither runs nor asks, and the
	// other fields have no meaning.
	Held string `json:"held,omitempty"`
}
