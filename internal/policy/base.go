package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// BaseVersion is the policy version of the base rules. It is the SHA-256 of their truth table (testdata/base.json) as RFC 8785 JSON; a test
// recomputes it. It changes if a verdict changes, but not if the wording of a reason does.
const BaseVersion = "59f2bec81aa8022cae4c1277fe7380a6ed3dbcb608e7f8ad61167937115fde69"

// base is the verdict on a call by the tool's contract alone, to which policy rules are then applied: reads and drafts run; writes, high risk
// and unknown values ask; destructive tools always ask.
type base struct {
	verdict jig.Verdict
	reasons []string
	// fixed says that no rule and no grant may lift the verdict: the tool is destructive, its approval is always_ask, or its contract has
	// an unknown value.
	fixed bool
	// untraced are the reasons to ask because of where the call's arguments come from; see [base.trace]. cut reports that not all of these
	// arguments are known to the rules, so that no rule can lift the verdict.
	untraced []string
	cut      bool
}

// ruling returns the ruling for a call that no rule applies to.
func (b base) ruling() Ruling {
	return Ruling{Verdict: b.verdict, Reasons: b.reasons, PolicyVersion: BaseVersion, Base: b.verdict == jig.VerdictAsk}
}

// ask makes the verdict ask, for the given reason.
func (b *base) ask(fixed bool, reason string) {
	b.verdict = jig.VerdictAsk
	b.fixed = b.fixed || fixed
	b.reasons = append(b.reasons, reason)
}

// trace adds the base rule on data flow: once a session has read untrusted data, a call that writes or sends asks a person if it has arguments
// that cannot be traced. Only a rule that says so (untraced: true) can lift it.
func (b *base) trace(tool jig.Tool, call jig.Call) {
	f := call.Flow
	if f == nil || !f.ReadUntrusted || len(f.UntrustedArguments) == 0 || !tool.Permission.Writes() && !tool.Sends() {
		return
	}
	b.cut = f.Cut
	b.untraced = append([]string{"the session has read untrusted data, and " + arguments(f.UntrustedArguments) +
		" of " + tool.Name + " cannot be traced to what was typed or to trusted results"}, f.Notes...)
}

// wayOut returns the change of the policy that would let a call run whose arguments cannot be traced. It returns "" if the call would ask
// anyway.
func (b base) wayOut(applied []AppliedRule) string {
	if b.fixed || slices.ContainsFunc(applied, func(s AppliedRule) bool { return s.counts() && s.Verdict != jig.VerdictRun }) {
		return ""
	}
	if b.cut {
		return "it has more such arguments than rules can look at, so no rule lets it run"
	}
	if i := slices.IndexFunc(applied, AppliedRule.counts); i >= 0 {
		return fmt.Sprintf("policy %s, rule %s would let it run with untraced: true", applied[i].Policy, applied[i].Rule)
	}
	return "a rule with verdict: run and untraced: true would let it run"
}

// arguments names arguments, at most five of them.
func arguments(paths []string) string {
	const shown = 5
	names := strings.Join(paths[:min(len(paths), shown)], ", ")
	switch more := len(paths) - shown; {
	case more > 0:
		return fmt.Sprintf("the arguments %s and %d more", names, more)
	case len(paths) > 1:
		return "the arguments " + names
	}
	return "the argument " + names
}

// baseVerdict decides by the tool's contract. It starts with run and collects the reasons to ask.
func baseVerdict(tool jig.Tool) base {
	b := base{verdict: jig.VerdictRun}
	switch tool.Permission {
	case jig.PermissionRead, jig.PermissionDraft:
	case jig.PermissionWrite:
		b.ask(false, tool.Name+" changes data (permission write)")
	case jig.PermissionDestructive:
		b.ask(true, tool.Name+" can destroy data (permission destructive)")
	default:
		b.ask(true, tool.Name+" has a permission that is not known: "+quote(string(tool.Permission)))
	}
	switch tool.Risk {
	case jig.RiskSafe, jig.RiskModerate:
	case jig.RiskHigh:
		b.ask(false, "a wrong call of "+tool.Name+" can do much harm (risk high)")
	default:
		b.ask(true, tool.Name+" has a risk that is not known: "+quote(string(tool.Risk)))
	}
	switch tool.Approval {
	case jig.ApprovalAuto:
	case jig.ApprovalAlwaysAsk:
		b.ask(true, tool.Name+" always asks (approval always_ask)")
	default:
		b.ask(true, tool.Name+" has an approval setting that is not known: "+quote(string(tool.Approval)))
	}
	if b.verdict == jig.VerdictRun {
		b.reasons = []string{tool.Name + runs(tool.Permission)}
	}
	return b
}

// runs completes the sentence that says why a call needs no approval.
func runs(p jig.Permission) string {
	if p == jig.PermissionDraft {
		return " only drafts (permission draft)"
	}
	return " only reads (permission read)"
}

// quote returns an unknown value for a message, cut short because it may come from anywhere.
func quote(value string) string {
	const shown = 40
	if value == "" {
		return "none"
	}
	return jig.Cut(value, shown)
}

// variables returns the variables that rules read, in the form that spec.PolicyShapes describes. If a variable cannot be converted, such as an
// input that is not JSON, the rules that read it fail.
func variables(tool jig.Tool, call jig.Call, session jig.Session, now time.Time) map[string]any {
	var flow jig.DataFlow // as of the call's admission, so that a later evaluation sees the same
	if call.Flow != nil {
		flow = *call.Flow
	}
	vars := map[string]any{
		"tool": map[string]any{
			"name": tool.Name, "version": tool.Version, "description": tool.Description, "category": tool.Category,
			"permission": string(tool.Permission), "risk": string(tool.Risk), "approval": string(tool.Approval),
			"idempotent": tool.Idempotent, "execution": string(tool.Execution), "tags": list(tool.Tags),
			"reads": reads(tool), "sends": tool.Sends(),
			"required_permission": tool.RequiredPermission, "confirm": tool.Confirm, "undo": tool.Undo, "implementation": tool.Implementation,
		},
		"input": object(call.Input),
		"call": map[string]any{
			"id": call.ID, "tool": call.Tool, "input": object(call.Input), "pass": call.Pass,
			"untrusted_arguments": list(flow.UntrustedArguments), "unknown_destinations": list(flow.UnknownDestinations),
			"computed_arguments": list(flow.ComputedArguments),
		},
		"agent": map[string]any{"name": session.Agent.Name, "registered": session.Agent.Registered, "version": session.Agent.Version},
		"principal": map[string]any{
			"id": session.Principal.ID, "groups": list(session.Principal.Groups), "permissions": list(session.Principal.Permissions),
			"proof": string(cmp.Or(session.Principal.Proof, jig.ProofClaimed)),
		},
		"tenant": session.Tenant,
		"session": map[string]any{
			"id": session.ID, "task": session.Task, "input": object(session.Input), "pass": session.Pass, "writes": session.Writes,
			"root_agent": cmp.Or(session.RootAgent, session.Agent.Name), "parent_agent": session.ParentAgent, "depth": session.Depth,
			"source": string(cmp.Or(session.Source, jig.SourceAPI)), "read_private": flow.ReadPrivate, "read_untrusted": flow.ReadUntrusted,
		},
		"now": now.UTC(),
	}
	for name, v := range vars {
		if ready, err := expr.From(v); err == nil { // convert once for all rules
			vars[name] = ready
		}
	}
	return vars
}

// reads returns what a tool reads by its labels.
func reads(tool jig.Tool) []string {
	kinds := []string{}
	for _, kind := range []string{jig.ReadsPrivate, jig.ReadsUntrusted} {
		if tool.Reads(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// list returns texts, or an empty list if texts is nil.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// object returns raw, or an empty object if raw is blank.
func object(raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}
