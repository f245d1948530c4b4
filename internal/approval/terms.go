package approval

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

// term is one of the terms of an approval: a field of [jig.Terms], or several that have a meaning only together. All that jig knows of a term
// is here, apart from the fields themselves and the key of a rule that sets them.
type term struct {
	// fields are the names of the fields of [jig.Terms].
	fields []string
	// words says for people what the term demands of an approval with the given terms; nothing if the term has its default value.
	words func(p jig.Pending, t jig.Terms) []string
	// stricter adds the demands of another rule.
	stricter func(to *jig.Terms, other jig.Terms)
	// looser compares two versions of a rule. It says what the later one demands less (looser), and what it changes in a way that may mean
	// that (check). If it is nil, the term does not affect who decides.
	looser func(was, is jig.Terms) (looser, check []string)
	// refusal returns why a decision does not meet the term, or "". It is nil for terms that say whose decisions count; see
	// [Consent.Entitled].
	refusal func(t jig.Terms, r DecisionRequest) string
}

// terms returns the table of terms, in the order in which people read them.
func terms() []term {
	return []term{
		{fields: []string{"Requirements"}, words: requirementWords, stricter: moreRequirements, looser: looserRequirements},
		{fields: []string{"NotRequester", "ByDefault", "RequesterMay"}, words: requesterWords, stricter: stricterRequester, looser: looserRequester},
		{fields: []string{"Proof"}, words: proofWords, stricter: strongerProof, looser: looserProof, refusal: weakProof},
		{fields: []string{"Remind"}, words: remindWords, stricter: soonerRemind},
		{fields: []string{"OnExpiry"}, words: expiryWords, stricter: stricterExpiry, looser: looserExpiry},
	}
}

// Conditions returns the terms of an approval as sentences for people, without terms that have their default value. There is always one that says
// who may decide, except for a call whose outcome is unknown: there the tenant's settings may name the people.
func Conditions(p jig.Pending) []string {
	t := termsOf(p)
	if p.Kind == jig.PendingReconcile && t.Plain() {
		return nil
	}
	var lines []string
	for _, one := range terms() {
		lines = append(lines, one.words(p, t)...)
	}
	return lines
}

// Stricter combines the terms of two rules: an approval must meet the demands of both. Requirements keep their order.
func Stricter(a, b jig.Terms) jig.Terms {
	for _, one := range terms() {
		one.stricter(&a, b)
	}
	return a
}

// Looser compares the terms of a rule with those of an earlier version. It says what is demanded less (looser), and what was changed in a way that
// may mean that (check); both are phrased to follow the name of the rule.
func Looser(was, is jig.Terms) (looser, check []string) {
	for _, one := range terms() {
		if one.looser == nil {
			continue
		}
		less, other := one.looser(was, is)
		looser, check = append(looser, less...), append(check, other...)
	}
	return looser, check
}

// unmet returns the reason why a decision does not meet the terms, regardless of who makes it, or "" if it does.
func unmet(t jig.Terms, r DecisionRequest) string {
	for _, one := range terms() {
		if one.refusal == nil {
			continue
		}
		if why := one.refusal(t, r); why != "" {
			return why
		}
	}
	return ""
}

// Quorum says how many people must approve for a requirement, and who they are, e.g. "2 of group finance".
func Quorum(r jig.Requirement) string { return fmt.Sprintf("%d of %s", max(1, r.Quorum), r.Approvers) }

func requirementWords(_ jig.Pending, t jig.Terms) []string {
	if len(t.Requirements) == 0 {
		return []string{"anybody may decide"}
	}
	var lines []string
	for _, r := range t.Requirements {
		line := "needs " + Quorum(r)
		if r.Rule != "" {
			line += " (" + r.Rule + ")"
		}
		for _, e := range r.Escalate {
			if e.Counts(0) {
				line += fmt.Sprintf("; also %s", e.Approvers)
				continue
			}
			line += fmt.Sprintf("; after %s also %s", duration.Format(time.Duration(e.After)), e.Approvers)
		}
		lines = append(lines, line)
	}
	return lines
}

func moreRequirements(to *jig.Terms, other jig.Terms) {
	to.Requirements = slices.Concat(to.Requirements, other.Requirements)
}

// looserRequirements compares rules, each of which has one requirement at most.
func looserRequirements(was, is jig.Terms) (looser, check []string) {
	before, after := demands(was)[0], demands(is)[0]
	if need := max(1, after.Quorum); need < before.Quorum {
		looser = append(looser, fmt.Sprintf("needs %s; it needed %d", approvals(need), before.Quorum))
	}
	if more := wider(before.Approvers, after.Approvers); more != "" {
		looser = append(looser, fmt.Sprintf("lets %s decide", more))
	}
	if len(after.Escalate) > 0 && !reflect.DeepEqual(after.Escalate, before.Escalate) {
		check = []string{"lets other people decide after some time"}
	}
	return looser, check
}

func approvals(n int) string {
	if n == 1 {
		return "1 approval"
	}
	return fmt.Sprintf("%d approvals", n)
}

// wider names the approvers who could not decide before; "" if there are none.
func wider(before, after jig.Approvers) string {
	switch {
	case before.Anybody():
		return ""
	case after.Anybody():
		return after.String()
	}
	more := jig.Approvers{People: without(after.People, before.People), Groups: without(after.Groups, before.Groups)}
	if after.Permission != before.Permission {
		more.Permission = after.Permission
	}
	if more.Anybody() {
		return ""
	}
	return more.String()
}

func without(list, known []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(known, s) })
}

func requesterWords(p jig.Pending, t jig.Terms) []string {
	switch {
	case t.NotRequester && t.ByDefault:
		return []string{cmp.Or(Excluded(p), "the requester") + " may not decide, having requested it (the default)"}
	case t.NotRequester:
		return []string{cmp.Or(Excluded(p), "the requester") + " may not decide, having requested it"}
	case t.RequesterMay != "":
		return []string{"those who requested it may decide (" + t.RequesterMay + ")"}
	}
	return nil
}

// stricterRequester excludes the requester if any rule does. If none does, the first rule that lets the requester decide is named.
func stricterRequester(to *jig.Terms, other jig.Terms) {
	to.NotRequester = to.NotRequester || other.NotRequester
	to.ByDefault = to.ByDefault || other.ByDefault
	to.RequesterMay = cmp.Or(to.RequesterMay, other.RequesterMay)
	if to.NotRequester {
		to.RequesterMay = ""
	}
}

func looserRequester(was, is jig.Terms) (looser, check []string) {
	strictness := func(t jig.Terms) int {
		switch {
		case t.NotRequester:
			return 2
		case t.RequesterMay == "":
			return 1
		}
		return 0
	}
	if strictness(is) < strictness(was) {
		return []string{"lets the requester decide"}, nil
	}
	return nil, nil
}

func proofWords(_ jig.Pending, t jig.Terms) []string {
	if t.Proof == "" {
		return nil
	}
	return []string{fmt.Sprintf("decisions need the proof %s", t.Proof)}
}

func strongerProof(to *jig.Terms, other jig.Terms) { to.Proof = to.Proof.Stronger(other.Proof) }

func looserProof(was, is jig.Terms) (looser, check []string) {
	if is.Proof.AtLeast(was.Proof) {
		return nil, nil
	}
	return []string{fmt.Sprintf("demands %s of decisions; it was %s", cmp.Or(string(is.Proof), "no proof of its own"), was.Proof)}, nil
}

func weakProof(t jig.Terms, r DecisionRequest) string { return Weak(r.Principal.Proof, t.Proof) }

func remindWords(_ jig.Pending, t jig.Terms) []string {
	if t.Remind == 0 {
		return nil
	}
	return []string{"a reminder every " + duration.Format(time.Duration(t.Remind))}
}

func soonerRemind(to *jig.Terms, other jig.Terms) { to.Remind = Sooner(to.Remind, other.Remind) }

// Sooner returns the shorter of two durations. Zero means no limit.
func Sooner[D ~int64](a, b D) D {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func expiryWords(_ jig.Pending, t jig.Terms) []string {
	switch t.OnExpiry {
	case jig.ExpiryCancel:
		return []string{"if nobody decides in time, the session is canceled"}
	case jig.ExpiryFail:
		return []string{"if nobody decides in time, the session fails"}
	case jig.ExpiryDeny: // the default for every approval
	}
	return nil
}

func stricterExpiry(to *jig.Terms, other jig.Terms) {
	if other.OnExpiry.Strictness() > to.OnExpiry.Strictness() {
		to.OnExpiry = other.OnExpiry
	}
}

func looserExpiry(was, is jig.Terms) (looser, check []string) {
	if is.OnExpiry.Strictness() < was.OnExpiry.Strictness() {
		return nil, []string{"lets the session go on when nobody decides in time"}
	}
	return nil, nil
}
