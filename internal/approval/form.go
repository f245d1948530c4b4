package approval

import (
	"fmt"

	"github.com/jig-run/jig"
)

// CheckDecision returns why the form of a decision is wrong, or "" when it is right.
func CheckDecision(d jig.Decision) string {
	switch {
	case d.Call == "":
		return "`call` is missing: name the call to decide, e.g. 3.2"
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		return fmt.Sprintf("%q is not an answer; use approve, deny or delegate", d.Answer)
	case d.Answer != jig.AnswerApprove && len(d.Input) > 0:
		return "`input` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.Grant != nil:
		return "`grant` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.GrantID != "":
		return "`grant_id` is allowed only with approve"
	case d.GrantID != "" && (d.Grant != nil || len(d.Input) > 0):
		return "`grant_id` approves the call as it is: leave out `grant` and `input`"
	case d.Answer != jig.AnswerDelegate && d.To != "":
		return "`to` is allowed only with delegate"
	case d.Answer != jig.AnswerDelegate && d.Undo:
		return "`undo` is allowed only with delegate"
	case d.Undo && d.To != "":
		return "`undo` takes a delegation back: leave out `to`"
	}
	return ""
}

// CheckReply returns why the form of an answer is wrong, or "" when it is right. Whether the value fits the question is not checked.
func CheckReply(r jig.Reply) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call of the question, e.g. 3.2"
	case len(r.Value) == 0:
		return "`value` is missing: give the answer"
	case len(r.Value) > jig.InlineBytes:
		return fmt.Sprintf("`value` has %d bytes; at most %d are allowed", len(r.Value), jig.InlineBytes)
	}
	return ""
}

// CheckReconciliation returns why the form of a statement about an unknown outcome is wrong, or "" when it is right.
func CheckReconciliation(r jig.Reconciliation) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call, e.g. 3.2"
	case r.Outcome != jig.OutcomeHappened && r.Outcome != jig.OutcomeNotHappened && r.Outcome != jig.OutcomeGiveUp:
		return fmt.Sprintf("%q is not an outcome; use happened, not_happened or give_up", r.Outcome)
	case r.Attempt < 0:
		return fmt.Sprintf("`attempt` is %d: give the number of the attempt in doubt, 1 or more", r.Attempt)
	}
	return ""
}
