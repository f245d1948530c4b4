package policy

import (
	"github.com/jig-run/jig"
)

// BaseVersion is the policy version of the base rules. It is the SHA-256 of their truth table (testdata/base.json) as RFC 8785
// JSON, which a test computes again: a change of any verdict changes it, a change of wording does not.
const BaseVersion = "da7e2bb375ef78e5da9388e790dbba93b7438d6fa997e142121e2a0e2853d1cf"

// Base is the tools' own word on their calls, and what holds when no policy document says otherwise: reads and drafts run;
// writes, high risk and whatever is not known ask; destructive tools always ask. Its zero value is ready.
type Base struct{}

// Rule gives the verdict on a call. Every reason that leads to it is named.
func (Base) Rule(tool jig.Tool, _ jig.Call, _ jig.Session) jig.Ruling {
	return baseVerdict(tool).ruling()
}

// base is a base verdict as later rules take it up.
type base struct {
	verdict jig.Verdict
	reasons []string
	// fixed says that no rule and no grant may lift the verdict: the tool is destructive, or its author says always_ask.
	fixed bool
}

// ruling is the verdict as it holds when no rule speaks.
func (b base) ruling() jig.Ruling {
	return jig.Ruling{Verdict: b.verdict, Reasons: b.reasons, PolicyVersion: BaseVersion, Base: b.verdict == jig.VerdictAsk}
}

// ask makes the verdict ask for a reason.
func (b *base) ask(fixed bool, reason string) {
	b.verdict = jig.VerdictAsk
	b.fixed = b.fixed || fixed
	b.reasons = append(b.reasons, reason)
}

// baseVerdict rules by the tool's contract: it begins with run and collects what speaks for asking.
func baseVerdict(tool jig.Tool) base {
	b := base{verdict: jig.VerdictRun}
	switch tool.Permission {
	case jig.PermissionRead, jig.PermissionDraft:
	case jig.PermissionWrite:
		b.ask(false, tool.Name+" changes data (permission write)")
	case jig.PermissionDestructive:
		b.ask(true, tool.Name+" does what cannot be undone (permission destructive)")
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

// runs completes the sentence that says why a call needs nobody.
func runs(p jig.Permission) string {
	if p == jig.PermissionDraft {
		return " only drafts (permission draft)"
	}
	return " only reads (permission read)"
}

// quote shows an unknown value, cut short: it may come from anywhere.
func quote(value string) string {
	const shown = 40
	if value == "" {
		return "none"
	}
	return jig.Cut(value, shown)
}
