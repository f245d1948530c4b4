package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Tenant is what decides on the calls of one tenant. The zero value is the base rules alone.
type Tenant struct {
	Policies Set
	// Unreadable are the tenant's policies that cannot be read here, because a newer version of jig wrote them.
	Unreadable []jig.PolicyState
	// Owners are the terms on which operator tools are approved; see OwnerTerms. OwnersUnknown is why they cannot be read.
	Owners        jig.Terms
	OwnersUnknown error
}

// Unreadable is a policy that cannot be read, for the reason that err gives.
func Unreadable(name, version string, err error) jig.PolicyState {
	return jig.PolicyState{Name: name, Version: version, Error: line(err.Error())}
}

// Decide rules on a call. While a policy cannot be read, nobody knows what it says about the call, so the call is held back:
// Ruling.Held says why. Only the tools that register policies are asked about all the same, or nobody could replace that policy.
// An error means that ctx ended: then nothing is decided.
func (t Tenant) Decide(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Explanation, error) {
	if held := t.held(tool); held != "" {
		return Explanation{Ruling: jig.Ruling{Held: held}}, nil
	}
	x := t.Explain(ctx, tool, call, session, now)
	if err := ctx.Err(); err != nil {
		return Explanation{}, fmt.Errorf("evaluate the policies: %w", err)
	}
	return x, nil
}

// held says why a call is held back; "" when it is not.
func (t Tenant) held(tool jig.Tool) string {
	switch {
	case len(t.Unreadable) > 0 && !registersPolicies(tool.Name):
		return t.Unreadable[0].Unreadable()
	case t.OwnersUnknown != nil && Operator(tool.Name):
		return fmt.Sprintf("the owners of the tenant cannot be read: %v", t.OwnersUnknown)
	}
	return ""
}

// Explain gives the verdict of the policies that can be read, with what led to it. Operator tools are approved on the terms of
// the owners, to which rules only add. The tools that register policies and take them back are asked about where a rule
// denies them, so that no policy locks its tenant out of changing it.
func (t Tenant) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	x := t.Policies.Explain(ctx, tool, call, session, now)
	if registersPolicies(tool.Name) {
		if x.Verdict == jig.VerdictDeny {
			x.Ruling = x.Asked()
			x.Reasons = append(x.Reasons, "the tools that register policies and take them back are asked about, never denied")
		}
		for _, u := range t.Unreadable {
			x.Reasons = append(x.Reasons, u.Unreadable()+", so what it says about "+tool.Name+" is left out")
		}
	}
	if x.Verdict == jig.VerdictAsk && Operator(tool.Name) && !t.Owners.Plain() {
		x.Reasons = append(x.Reasons, "owners of the tenant decide about "+tool.Name)
		x.Terms.Requirements = slices.Concat(t.Owners.Requirements, x.Terms.Requirements)
		x.Terms.NotRequester = x.Terms.NotRequester || t.Owners.NotRequester
		x.Ruling.Base = false
	}
	return x
}

// States lists the policies by name, those that cannot be read among them; never null.
func (t Tenant) States() []jig.PolicyState {
	states := append([]jig.PolicyState{}, t.Unreadable...)
	for _, r := range t.Policies {
		states = append(states, jig.PolicyState{Name: r.name, Version: r.version, Rules: len(r.rules)})
	}
	slices.SortFunc(states, func(a, b jig.PolicyState) int { return strings.Compare(a.Name, b.Name) })
	return states
}

// With returns the tenant with a document in the place of the one of its name, or beside the others.
func (t Tenant) With(r *Rules) Tenant {
	t.Policies = t.Policies.With(r)
	return t
}

// registersPolicies reports whether a tool changes which policies are in force.
func registersPolicies(tool string) bool {
	return tool == "catalog.put" || tool == "bundle.install" || tool == "bundle.remove"
}

// Operator reports whether a tool is one with which the tenant itself is set up: who decides, by which rules, and what runs
// unasked. What it changes is approved by the owners.
func Operator(tool string) bool {
	return slices.ContainsFunc([]string{"catalog.", "bundle.", "grants.", "tenants."}, func(family string) bool {
		return strings.HasPrefix(tool, family)
	})
}

// ownersRule names the requirement of the owners among the terms of an approval.
const ownersRule = "owners"

// OwnerTerms are what an approval of an operator tool takes in a tenant: never the word of the one who asks, and that of as many
// owners as the tenant's document says. Where it knows one person only, that person decides; where it knows nobody, as before
// the first document of a new tenant, the terms are plain: anybody, once.
func OwnerTerms(s jig.TenantSettings) jig.Terms {
	var known []string
	for _, p := range s.People {
		known = append(known, p.ID)
	}
	if s.Owners != nil {
		known = append(known, s.Owners.Approvers.People...)
	}
	slices.Sort(known)
	switch known = slices.Compact(known); {
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

// withOperator lets the operator of the workers decide as one of those who may.
func withOperator(a jig.Approvers, operator string) jig.Approvers {
	if operator != "" && !a.Anybody() && !slices.Contains(a.People, operator) {
		a.People = append(slices.Clone(a.People), operator)
	}
	return a
}
