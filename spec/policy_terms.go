package spec

import (
	"fmt"
	"slices"

	"github.com/jig-run/jig"
)

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
	return []string{"approvers", "quorum", "not_requester", "expires", "remind", "escalate", "on_expiry"}
}

// says reports whether the rule gives a key of termKeys a value other than zero.
func (r PolicyRule) says(key string) bool {
	switch key {
	case "approvers":
		return r.Approvers != nil
	case "quorum":
		return r.Quorum != 0
	case "not_requester":
		return r.NotRequester != nil
	case "expires":
		return r.Expires != 0
	case "remind":
		return r.Remind != 0
	case "escalate":
		return len(r.Escalate) > 0
	}
	return r.OnExpiry != ""
}

// CheckTerms checks the terms of a rule that was made in code. The conditions are the same as for a rule in a document. The error is
// INVALID_INPUT with the rule's key as its field, e.g. quorum.
func (r PolicyRule) CheckTerms() error {
	refuse := func(field, hint, format string, args ...any) error {
		return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField(field).WithHint(hint)
	}
	for _, key := range termKeys() {
		if r.says(key) && r.Verdict != jig.VerdictAsk {
			return refuse(key, onlyAskHint, "%s", onlyAsk(key))
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
		return refuse("approvers", nobodyHint, "%s", nobody)
	}
	for i, e := range r.Escalate {
		if e.After <= 0 {
			return refuse(indexPath("escalate", i)+".after", "write e.g. 4h", "an escalation needs a positive duration")
		}
		if jig.Approvers(e.Approvers).Anybody() {
			return refuse(indexPath("escalate", i)+".approvers", nobodyHint, "%s", nobody)
		}
	}
	for _, p := range r.termProblems() {
		return refuse(p.path, p.hint, "%s", p.message)
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
			list = append(list, termProblem{path, "order them by after, each later than the one before", fmt.Sprintf("%s is not after %s", e.After, last)})
		case r.Expires > 0 && e.After >= r.Expires:
			list = append(list, termProblem{path, "escalate sooner, or expire later", fmt.Sprintf("the approval has already expired by then (after %s)", r.Expires)})
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
				d.at(path+"."+key, ProblemBadShape, onlyAskHint, "%s", onlyAsk(key))
			}
		}
		return
	}
	for _, p := range rule.termProblems() {
		d.at(path+"."+p.path, ProblemBadShape, p.hint, "%s", p.message)
	}
}

// checkApprovers refuses a mapping that names nobody.
func (d *decoder) checkApprovers(path string) {
	if n := d.places[path]; n != nil && n.kind == kindMap && len(n.entries) == 0 {
		d.at(path, ProblemBadShape, nobodyHint, "%s", nobody)
	}
}
