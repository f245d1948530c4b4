package policy

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// terms are the demands of an ask rule on the approval.
type terms struct {
	// requirement is nil if any one person may decide.
	requirement *jig.Requirement
	// notRequester is nil if the rule does not say whether askers may decide. rule is its name, <policy>/<rule>.
	notRequester *bool
	rule         string
	proof        jig.Proof
	remind       time.Duration
	expires      time.Duration
	onExpiry     jig.ExpiryOutcome
}

// termsOf returns the terms of a policy's rule.
func termsOf(policy string, r spec.PolicyRule) terms {
	t := terms{
		notRequester: r.NotRequester, rule: policy + "/" + r.Name, proof: r.Proof, remind: time.Duration(r.Remind), expires: time.Duration(r.Expires), onExpiry: r.OnExpiry,
	}
	if r.Approvers == nil && r.Quorum <= 1 {
		return t
	}
	t.requirement = &jig.Requirement{Rule: t.rule, Quorum: max(1, r.Quorum)}
	if r.Approvers != nil {
		t.requirement.Approvers = jig.Approvers(*r.Approvers)
	}
	for _, e := range r.Escalate {
		t.requirement.Escalate = append(t.requirement.Escalate, jig.Escalation{After: time.Duration(e.After), Approvers: jig.Approvers(e.Approvers)})
	}
	return t
}

// ask makes the ruling ask, on the combined terms of all ask rules that apply: each rule's requirement, the shortest times and the strictest
// outcome. The rules must be ordered by policy and name.
func ask(ruling *Ruling, spoken []Spoken) {
	ruling.Verdict, ruling.Base, ruling.Expires, ruling.Terms = jig.VerdictAsk, true, 0, jig.Terms{}
	for _, s := range spoken {
		if s.Verdict == jig.VerdictRun { // it adds nothing, whether it holds or fails
			continue
		}
		ruling.Base = false
		if s.Verdict != jig.VerdictAsk {
			continue
		}
		to := &ruling.Terms
		if s.terms.requirement != nil {
			to.Requirements = append(to.Requirements, *s.terms.requirement)
		}
		switch says := s.terms.notRequester; {
		case says != nil && *says:
			to.NotRequester = true
		case says != nil && to.RequesterMay == "" && !s.Failed:
			to.RequesterMay = s.terms.rule
		}
		to.Proof = to.Proof.Stronger(s.terms.proof)
		to.Remind = shorter(to.Remind, s.terms.remind)
		ruling.Expires = shorter(ruling.Expires, s.terms.expires)
		if s.terms.onExpiry.Strictness() > to.OnExpiry.Strictness() {
			to.OnExpiry = s.terms.onExpiry
		}
	}
	if ruling.Terms.NotRequester {
		ruling.Terms.RequesterMay = ""
	}
}

// shorter returns the shorter of two durations. Zero means no limit.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
