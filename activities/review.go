package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
)

// Review returns, for calls that wait for a person, whether somebody may decide them and what policy demands today. It leaves out calls that
// no longer wait.
func (a *Activities) Review(ctx context.Context, in protocol.ReviewRequest) (_ protocol.ReviewList, err error) {
	defer asTemporal(&err)
	page := protocol.ReviewList{Reviews: []protocol.Review{}}
	if n := len(in.Calls); n > protocol.MaxReviewed {
		return page, jig.Errorf(jig.CodeInvalidInput, "%d calls are too many for one request", n).WithField("calls").
			WithHint(fmt.Sprintf("send at most %d", protocol.MaxReviewed))
	}
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return page, err
	}
	for _, c := range in.Calls {
		asked, err := a.Store.Pending(ctx, in.Tenant, c.SessionID, c.Call)
		if jig.CodeOf(err) == jig.CodeNotFound {
			continue
		}
		if err != nil {
			return page, err
		}
		r := protocol.Review{SessionID: c.SessionID, Call: c.Call, Conditions: approval.Conditions(asked)}
		if settings.ProofWanted() && !in.Signs {
			r.Refusal, r.Unsigned = "this tenant accepts only signed decisions, and there is no signing key", true
		} else {
			r.Refusal = approval.WhyNot(settings.Voters().Counted(asked, a.Now()), settings.Person(in.For), settings.Reconcilers, a.Now())
		}
		if asked.Kind == jig.PendingApproval {
			if err := a.today(ctx, asked, &r); err != nil {
				return page, err
			}
		}
		page.Reviews = append(page.Reviews, r)
	}
	return page, nil
}

// today adds what policy demands now for a call, if that is something else than the terms under which the call waits. A call that cannot be
// judged now is left without.
func (a *Activities) today(ctx context.Context, asked jig.Pending, r *protocol.Review) error {
	session, call, err := a.callOf(ctx, protocol.SessionRef{Tenant: asked.Tenant, SessionID: asked.SessionID}, asked.Call)
	if err != nil {
		return err
	}
	tool, known, err := a.currentTool(ctx, call)
	if err != nil || !known {
		return err
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, a.Now())
	if err != nil || ruling.Held != "" {
		return err
	}
	settings, err := a.Tenants.Settings(ctx, asked.Tenant)
	if err != nil {
		return err
	}
	today := a.pending(session, tool, call, ruling, settings, asked.Askers)
	r.Today, r.Terms = changedTerms(asked, today, ruling.Verdict)
	return nil
}

// changedTerms compares the terms under which a call waits with those of today. It returns an empty verdict if they demand the same.
func changedTerms(asked, today jig.Pending, verdict jig.Verdict) (jig.Verdict, *jig.Terms) {
	if verdict != jig.VerdictAsk {
		return verdict, nil
	}
	was, is := approval.Ruled(approval.ConsentOf(asked).Terms), approval.Ruled(approval.ConsentOf(today).Terms)
	was.Remind, is.Remind = 0, 0 // reminders do not change who decides
	if was.Plain() && is.Plain() || reflect.DeepEqual(was, is) {
		return "", nil
	}
	if is.Plain() {
		return jig.VerdictAsk, nil
	}
	return jig.VerdictAsk, &is
}

// Show returns the open approval or question of a call, or the latest decision about it, and a piece of the call's complete arguments; the approval
// itself has only a preview of 2 KiB. The error is NOT_FOUND if the call has never waited for a person.
func (a *Activities) Show(ctx context.Context, in protocol.ShowRequest) (page protocol.ShowPage, err error) {
	defer asTemporal(&err)
	decided, err := a.Store.DecisionsOf(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return page, err
	}
	page.Pending, err = a.Store.Pending(ctx, in.Tenant, in.SessionID, in.Call)
	if jig.CodeOf(err) == jig.CodeNotFound && len(decided) > 0 {
		return a.showDecided(ctx, in, decided)
	}
	if err != nil {
		return page, err
	}
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return page, err
	}
	if page.Input, err = piece(call.Input, in.Offset, "arguments"); err != nil {
		return page, err
	}
	if page.Size = len(call.Input); call.Digest != page.Pending.Digest {
		return page, jig.Errorf(jig.CodeConflict, "call %s has changed since its approval was requested", in.Call).
			WithHint("look at it again: it needs a new approval")
	}
	if in.Offset > 0 {
		return page, nil
	}
	pending := page.Pending
	pending.Tenant, pending.SessionID = in.Tenant, in.SessionID
	if page.Similar, err = a.similar(ctx, pending, call.Input); err != nil {
		return page, err
	}
	page.ToSign, page.Decisions = toSign(pending), decisionsOf(decided)
	page.Comparison, err = a.Store.Comparison(ctx, pending, a.Now().Add(-protocol.ComparedFor))
	return page, err
}

// showDecided returns the latest decision about a call that does not wait. Without its session, only the excerpt of its arguments is left.
func (a *Activities) showDecided(ctx context.Context, in protocol.ShowRequest, decided []jig.Pending) (page protocol.ShowPage, err error) {
	page.Pending = decided[0]
	input := page.Pending.Input
	if page.Pending.Decided.Status != "" {
		call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
		if err != nil {
			return page, err
		}
		input = call.Input
	}
	if page.Size = len(input); in.Offset == 0 {
		page.Decisions = decisionsOf(decided)
	}
	page.Input, err = piece(input, in.Offset, "arguments")
	return page, err
}

func decisionsOf(calls []jig.Pending) []jig.Decided {
	list := make([]jig.Decided, len(calls))
	for i, c := range calls {
		list[i] = *c.Decided
		list[i].Status, list[i].Result, list[i].Error = "", "", nil // they stand with the call
	}
	return list
}

// ListDecisions returns a page of the decisions about calls that match a filter, the latest first.
func (a *Activities) ListDecisions(ctx context.Context, in protocol.DecisionsRequest) (protocol.ApprovalList, error) {
	if in.Limit <= 0 || in.Limit > maxListed {
		in.Limit = maxListed
	}
	list, next, err := a.Store.Decisions(ctx, in.Tenant, in.Filter, in.Cursor, in.Limit)
	for i := range list {
		shortPreview(&list[i])
		if d := list[i].Decided; len(d.Patch) > jig.ExcerptBytes {
			d.Patch = nil
		}
	}
	return protocol.ApprovalList{Approvals: list, Next: next}, temporalError(err)
}

// piece returns the part of a call's input from offset that fits into one message. what names the input in the error.
func piece(input []byte, offset int, what string) ([]byte, error) {
	if offset < 0 || offset > len(input) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the offset is outside of the %s (%d bytes)", jig.Known(what), len(input)).WithField("offset")
	}
	return input[offset:min(len(input), offset+chunkBytes)], nil
}

const (
	// maxSimilar is the number of earlier decisions that an approval shows.
	maxSimilar = 3
	// maxDifference is the maximum size of each difference, in bytes.
	maxDifference = 16 << 10
)

// similar returns the latest decisions about other calls of the tool, with the difference between their inputs and this one's.
func (a *Activities) similar(ctx context.Context, pending jig.Pending, input json.RawMessage) ([]protocol.SimilarDecision, error) {
	if pending.Kind != jig.PendingApproval {
		return nil, nil
	}
	found, err := a.Store.SimilarDecisions(ctx, pending, maxSimilar)
	if err != nil {
		return nil, err
	}
	list := make([]protocol.SimilarDecision, len(found))
	for i, s := range found {
		_, difference, _ := strings.Cut(preview.Diff("the input", indented(s.Input), indented(input)), "\n")
		list[i] = protocol.SimilarDecision{
			SessionID: s.SessionID, Call: s.Call, Answer: s.Answer, By: s.By, At: s.At, Difference: jig.Cut(difference, maxDifference),
		}
	}
	return list, nil
}

// indented returns indented JSON, or the text itself if it is not JSON.
func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// toSign returns the claims of the tokens for those answers to a call that have no content.
func toSign(pending jig.Pending) []protocol.SignedClaims {
	actions := []string{string(jig.AnswerApprove), string(jig.AnswerDeny)}
	switch pending.Kind {
	case jig.PendingQuestion:
		actions = []string{token.ActionAnswer}
	case jig.PendingReconcile:
		actions = []string{token.ActionReconcile}
	case jig.PendingApproval:
	}
	list := make([]protocol.SignedClaims, len(actions))
	for i, action := range actions {
		list[i] = protocol.SignedClaims{
			Audience: []string{token.Audience}, Tenant: pending.Tenant, Action: action, Session: pending.SessionID, Call: pending.Call, Digest: pending.Digest,
		}
	}
	return list
}

// maxListed is how many approvals fit on a page. Each preview has up to 2 KiB.
const maxListed = 40

// ListPending returns a page of the calls that wait for a person and match a filter, oldest first.
func (a *Activities) ListPending(ctx context.Context, in protocol.PendingRequest) (protocol.ApprovalList, error) {
	if in.Limit <= 0 || in.Limit > maxListed {
		in.Limit = maxListed
	}
	if in.Filter.For == "" {
		list, next, err := a.Store.ListPending(ctx, in.Tenant, in.Filter, in.Cursor, in.Limit)
		return protocol.ApprovalList{Approvals: a.withoutEnded(ctx, in.Tenant, list), Next: next}, temporalError(err)
	}
	page, err := a.decidable(ctx, in)
	return page, temporalError(err)
}

// pagesSifted limits how many pages are searched for approvals that a principal may decide. The cursor says where to continue.
const pagesSifted = 25

// decidable returns a page of the calls that a principal may decide and has not decided yet. The page may be incomplete even if more
// follow.
func (a *Activities) decidable(ctx context.Context, in protocol.PendingRequest) (protocol.ApprovalList, error) {
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return protocol.ApprovalList{}, err
	}
	who := settings.Person(in.Filter.For)
	page := protocol.ApprovalList{Approvals: []jig.Pending{}, Next: in.Cursor}
	for range pagesSifted {
		var list []jig.Pending
		if list, page.Next, err = a.Store.ListPending(ctx, in.Tenant, in.Filter, page.Next, in.Limit-len(page.Approvals)); err != nil {
			return page, err
		}
		for _, p := range list {
			if approval.MayDecide(p, who, settings.Reconcilers, a.Now()) {
				page.Approvals = append(page.Approvals, p)
			}
		}
		if page.Next == "" || len(page.Approvals) >= in.Limit {
			break
		}
	}
	page.Approvals = a.withoutEnded(ctx, in.Tenant, page.Approvals)
	return page, nil
}

// Record returns a call with its result and a piece of its input. A large result is a preview; the result's last artifact is the whole
// one. The error is NOT_FOUND if the tenant has no such session, or the session no such call.
func (a *Activities) Record(ctx context.Context, in protocol.RecordRequest) (page protocol.RecordPage, err error) {
	defer asTemporal(&err)
	_, calls, err := a.Store.CallsOf(ctx, in.Tenant, in.SessionID, []string{in.Call})
	if err != nil {
		return page, err
	}
	if len(calls) == 0 {
		return page, jig.Errorf(jig.CodeNotFound, "session %s has no call %s", in.SessionID, in.Call).
			WithField("call").WithHint("`jig status SESSION` lists its calls")
	}
	call := calls[0]
	page = protocol.RecordPage{Record: recordOf(call), Size: len(call.Input)}
	page.Input, err = piece(call.Input, in.Offset, "input")
	return page, err
}

// recordOf returns the record of a call without its input.
func recordOf(call jig.Call) protocol.CallRecord {
	return protocol.CallRecord{
		SessionID: call.SessionID, ClientID: jig.ClientID(call.SessionID), Call: call.ID, Tool: call.Tool, Version: call.Version,
		Frame: call.Frame, Child: call.Child, Verdict: call.Verdict, Reasons: call.Reasons, Status: call.Status, Digest: call.Digest,
		Attempt:  call.Fence,
		EditedBy: call.EditedBy, CreatedAt: call.CreatedAt, StartedAt: call.StartedAt, FinishedAt: call.FinishedAt,
		DurationMS: call.Duration().Milliseconds(), Result: callState(call).Result,
	}
}
