package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/toolname"
)

// Tenant holds everything that decides on the calls of one tenant. The zero value means the base rules alone.
type Tenant struct {
	Policies Set
	// Unreadable lists the tenant's policies that this version cannot read because a newer version of jig wrote them.
	Unreadable []jig.PolicyState
	// Owners are the terms on which operator tools are approved; see [OwnerTerms]. OwnersUnknown says why they cannot be read.
	Owners        jig.Terms
	OwnersUnknown error
}

// Unreadable returns the state of a policy that cannot be read, with err as the reason.
func Unreadable(name, version string, err error) jig.PolicyState {
	return jig.PolicyState{Name: name, Version: version, Error: clip.Line(err.Error(), maxReason)}
}

// Decide returns the ruling on a call. While a policy cannot be read, its rules for the call are not known, so the call is held back and
// Ruling.Held says why. The only exceptions are the tools that register policies, which ask; otherwise nobody could replace the unreadable
// policy. An error means that ctx ended; callers must not decide.
func (t Tenant) Decide(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Explanation, error) {
	if held := t.held(tool); held != "" {
		return Explanation{Ruling: Ruling{Held: held}}, nil
	}
	x := t.Explain(ctx, tool, call, session, now)
	if err := ctx.Err(); err != nil {
		return Explanation{}, fmt.Errorf("evaluate the policies: %w", err)
	}
	return x, nil
}

// held returns why a call is held back, or an empty string if it is not.
func (t Tenant) held(tool jig.Tool) string {
	switch {
	case len(t.Unreadable) > 0 && !toolname.Registers(tool.Name):
		return t.Unreadable[0].Unreadable()
	case t.OwnersUnknown != nil && Operator(tool.Name):
		return fmt.Sprintf("the owners of the tenant cannot be read: %v", t.OwnersUnknown)
	}
	return ""
}

// Explain returns the verdict of the readable policies, with the base verdict and the rules that led to it. Operator tools are approved on the
// terms of the owners; rules can only add demands. The tools that register and remove policies ask where a rule would deny them, so that a
// tenant can always change its policies.
func (t Tenant) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	x := t.Policies.Explain(ctx, tool, call, session, now)
	if toolname.Registers(tool.Name) {
		if x.Verdict == jig.VerdictDeny {
			x.Ruling = x.Asked()
			x.Reasons = append(x.Reasons, "calls of the tools that register and remove policies ask; they are never denied")
		}
		for _, u := range t.Unreadable {
			x.Reasons = append(x.Reasons, u.Unreadable()+", so its rules for "+tool.Name+" are not applied")
		}
	}
	if x.Verdict == jig.VerdictAsk && Operator(tool.Name) && !t.Owners.Plain() {
		x.Reasons = append(x.Reasons, "owners of the tenant decide about "+tool.Name)
		x.Terms = approval.Stricter(t.Owners, x.Terms)
		x.Ruling.Base = false
	}
	return x
}

// States lists the policies by name, including those that cannot be read. It never returns nil.
func (t Tenant) States() []jig.PolicyState {
	states := append([]jig.PolicyState{}, t.Unreadable...)
	for _, r := range t.Policies {
		states = append(states, jig.PolicyState{Name: r.name, Version: r.version, Rules: len(r.rules)})
	}
	slices.SortFunc(states, func(a, b jig.PolicyState) int { return strings.Compare(a.Name, b.Name) })
	return states
}

// With returns a copy of the tenant with the policy r added. If the tenant has a document with the same name, r replaces it.
func (t Tenant) With(r *Rules) Tenant {
	t.Policies = t.Policies.With(r)
	return t
}

// Operator reports whether a tool sets up the tenant itself: who decides, by which rules, and what runs without asking. Owners approve the
// calls of such a tool.
func Operator(tool string) bool {
	return slices.ContainsFunc([]string{"catalog.", "bundle.", "grants.", "tenants."}, func(family string) bool {
		return strings.HasPrefix(tool, family)
	})
}

// ownersRule is the name of the owners' requirement in the terms of an approval.
const ownersRule = "owners"

// OwnerTerms returns the terms for approving an operator tool in a tenant. The tenant's document says how many owners must approve; the
// requester cannot approve. Without owners in the document, anybody except the requester may approve. If the document lists only one person,
// that person decides. If it lists nobody, as before a new tenant's first document, any one person may approve.
func OwnerTerms(s tenancy.Settings) jig.Terms {
	switch known := s.Listed(); {
	case len(known) == 0:
		return jig.Terms{}
	case len(known) == 1:
		only := withOperator(jig.Approvers{People: known}, s.Operator)
		return jig.Terms{Requirements: []jig.Requirement{{Rule: ownersRule, Approvers: only, Quorum: 1}}}
	case s.Owners == nil:
		return jig.Terms{NotRequester: true}
	}
	return jig.Terms{NotRequester: true, Requirements: []jig.Requirement{
		{Rule: ownersRule, Approvers: withOperator(s.Owners.Approvers, s.Operator), Quorum: max(1, s.Owners.Quorum)},
	}}
}

// withOperator adds the operator of the workers to those who may decide.
func withOperator(a jig.Approvers, operator string) jig.Approvers {
	if operator != "" && !a.Anybody() && !slices.Contains(a.People, operator) {
		a.People = append(slices.Clone(a.People), operator)
	}
	return a
}

// ByDefault returns the ruling with the default terms of a tenant: where it has several people, those on whose word the call rests may not decide
// it, unless a rule lets them (not_requester: false) and none forbids it. Questions are excepted, because the person in the conversation answers
// them. If the tenant has one person, that person may decide.
func (r Ruling) ByDefault(s tenancy.Settings, tool jig.Tool, askers []jig.Asker) Ruling {
	switch {
	case r.Verdict != jig.VerdictAsk, tool.Implementation == jig.ImplementationPerson:
		return r
	case r.Terms.NotRequester:
		r.Terms.RequesterMay = ""
		return r
	}
	only := s.OnlyPerson("") || slices.ContainsFunc(askers, func(a jig.Asker) bool { return s.OnlyPerson(a.Principal) })
	if only {
		r.Terms.RequesterMay = ""
	}
	r.Terms.NotRequester = !only && r.Terms.RequesterMay == ""
	r.Terms.ByDefault = r.Terms.NotRequester
	return r
}

// ask makes the ruling ask, on the combined terms of all ask rules that apply: each rule's requirement, the shortest times and the strictest
// outcome. The rules must be ordered by policy and name.
func ask(ruling *Ruling, applied []AppliedRule) {
	ruling.Verdict, ruling.Base, ruling.Expires, ruling.Terms = jig.VerdictAsk, true, 0, jig.Terms{}
	for _, s := range applied {
		if s.Verdict == jig.VerdictRun { // it adds nothing, whether it holds or fails
			continue
		}
		ruling.Base = false
		if s.Verdict != jig.VerdictAsk {
			continue
		}
		terms := s.rule.Terms(s.Policy)
		if s.Failed {
			terms.RequesterMay = ""
		}
		ruling.Terms = approval.Stricter(ruling.Terms, terms)
		ruling.Expires = approval.Sooner(ruling.Expires, time.Duration(s.rule.Expires))
	}
}
