package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Settled says how a pass ended. The status working means that the session continues.
type Settled struct {
	Status jig.Status `json:"status"`
	Reason string     `json:"reason,omitempty"`
	// Answer is cut to jig.InlineBytes.
	Answer    string     `json:"answer,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	Error     *jig.Error `json:"error,omitempty"`
}

// Settle ends a pass whose calls all have results. If nothing is left to do, it also ends the session. It is idempotent: a second run
// returns the same result as the first.
func (a *Activities) Settle(ctx context.Context, in PassRef) (Settled, error) {
	state, err := a.Store.PassState(ctx, in.Tenant, in.SessionID, in.Pass)
	if err != nil {
		return Settled{}, temporalError(err)
	}
	end := next(state, in.Pass, a.Now())
	end.Tenant, end.SessionID, end.Pass = in.Tenant, in.SessionID, in.Pass
	end, err = a.Store.EndPass(ctx, end)
	if err != nil {
		return Settled{}, temporalError(err)
	}
	a.Tracing.SessionEnded(ctx, end)
	return settled(end), nil
}

func settled(end ledger.End) Settled {
	s := Settled{Status: end.Status, Reason: end.Reason, Answer: end.Answer, Error: end.Error}
	if len(s.Answer) > jig.InlineBytes {
		s.Answer, s.Truncated = jig.Cut(s.Answer, jig.InlineBytes), true
	}
	return s
}

// next decides what follows a pass.
func next(state ledger.PassState, pass int, now time.Time) ledger.End {
	turn, limits := state.Turn, state.Session.Agent.Limits.WithDefaults()
	calls := 0
	for _, n := range state.Counts {
		calls += n
	}
	switch {
	case turn.Stop == chat.StopRefusal:
		return failed(jig.ReasonRefusal, turn.Text, jig.Errorf(jig.CodeDenied, "the model refused to answer").WithReason(jig.ReasonRefusal).
			WithHint("rephrase the task, or use another model"))
	case calls == 0 && turn.Stop == chat.StopLength:
		return failed(jig.ReasonCutOff, turn.Text, jig.Errorf(jig.CodeInvalidOutput, "the answer was cut off at max_tokens (%d)", limits.MaxTokens).
			WithReason(jig.ReasonCutOff).WithHint("raise the agent's max_tokens, and send a message to continue the session"))
	case state.Unread > 0:
		return ledger.End{Status: jig.StatusWorking}
	case calls == 0:
		return ledger.End{Status: jig.StatusCompleted, Reason: jig.ReasonAnswered, Answer: turn.Text}
	case state.Counts[jig.CallDuplicate] == calls && !state.Addressed(pass):
		return ledger.End{Status: jig.StatusCompleted, Reason: jig.ReasonAllToolsDuplicate, Answer: turn.Text}
	}
	return overLimit(state, pass, limits, now)
}

func overLimit(state ledger.PassState, pass int, limits jig.Limits, now time.Time) ledger.End {
	exhausted := func(reason, format string, args ...any) ledger.End {
		return failed(reason, state.Turn.Text, (&jig.Error{Code: jig.CodeBudgetExhausted, Message: fmt.Sprintf(format, args...)}).
			WithReason(reason).WithHint("raise the agent's limit, and send a message to continue the session"))
	}
	switch {
	case pass-state.MessagePass >= limits.MaxPasses:
		return exhausted(jig.ReasonMaxPasses, "the session used its %d passes without an answer", limits.MaxPasses)
	case limits.MaxTotalTokens > 0 && state.Session.Tokens >= limits.MaxTotalTokens:
		return exhausted(jig.ReasonBudget, "the session used %d of its %d tokens", state.Session.Tokens, limits.MaxTotalTokens)
	case limits.Deadline > 0 && now.After(state.Session.CreatedAt.Add(limits.Deadline)):
		return exhausted(jig.ReasonDeadline, "the session did not end within %s", limits.Deadline)
	}
	return ledger.End{Status: jig.StatusWorking}
}

func failed(reason, answer string, err *jig.Error) ledger.End {
	return ledger.End{Status: jig.StatusFailed, Reason: reason, Answer: answer, Error: err}
}

// EndInput asks to end a session early, as canceled, or as failed because something in it could not continue.
type EndInput struct {
	PassRef
	Status jig.Status `json:"status"`
	Reason string     `json:"reason,omitempty"`
	Error  *jig.Error `json:"error,omitempty"`
}

// End closes everything that is open in a session and ends it. A session that has already ended is left alone.
func (a *Activities) End(ctx context.Context, in EndInput) error {
	end := ledger.End{Tenant: in.Tenant, SessionID: in.SessionID, Pass: in.Pass, Status: in.Status, Reason: in.Reason, Error: in.Error}
	if in.Status == jig.StatusCanceled && in.Reason != jig.ReasonExpired {
		end.Audit = a.endedBy(ctx, in.Tenant, in.SessionID, audit.AuditCanceled)
	}
	err := a.Store.CancelSession(ctx, end)
	if err == nil {
		a.Tracing.SessionEnded(ctx, end)
	}
	return temporalError(err)
}

// Swept is the result of a sweep: how many sessions it closed.
type Swept struct {
	Closed int `json:"closed"`
}

const (
	// maxSwept limits how many sessions one sweep looks at.
	maxSwept = 10_000
	// sweptRows limits how many reservations of budgets, and how many rows of rate limits, one sweep deletes.
	sweptRows = 1000
)

// tokensKept is how long a used token is kept after it expired. Clocks may differ by that much.
const tokensKept = time.Hour

// Sweep closes sessions whose workflow was terminated or timed out, and their approvals. It tells workflows about calls that were settled
// late by workers that died since, deletes used tokens that expired long ago, releases what dead workers reserved in budgets, and sums up the usage of
// days that are over. A failure does not stop the remaining work; all errors
// are joined and returned.
func (a *Activities) Sweep(ctx context.Context) (Swept, error) {
	stop := heartbeat(ctx)
	defer stop()
	swept, unclosed := a.closeEnded(ctx)
	unnotified := a.notifyLeftOver(ctx)
	_, tokens := a.Store.ForgetTokens(ctx, tokensKept)
	_, budgets := a.Store.ReleaseBudgets(ctx, sweptRows)
	_, rates := a.Store.ForgetRates(ctx, sweptRows)
	_, usage := a.Store.SumUsage(ctx, sweptRows)
	return swept, temporalError(errors.Join(unclosed, unnotified, tokens, budgets, rates, usage))
}

// notifyAgainAfter is how long the sweeper waits after the latest attempt to tell a workflow about a settled call. By then the process that
// settled the call has given up.
const notifyAgainAfter = time.Minute

// maxNotified limits how many calls one sweep reports.
const maxNotified = 1000

// notifySettled tells the workflow that waits for a call that the call was settled late. The attempt's own result cannot do that, because
// Temporal has already given up on the attempt. If notifySettled fails, or the worker dies first, the sweeper tells the workflow.
func (a *Activities) notifySettled(ctx context.Context, call jig.Call) {
	if a.Runs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := retryWhileUnavailable(ctx, func() error { return a.signalSettled(ctx, call) })
	if err == nil {
		err = retryWhileUnavailable(ctx, func() error { return a.Store.ToldSettled(ctx, call.Tenant, call.SessionID, call.ID) })
	}
	if err != nil {
		a.Logger.ErrorContext(ctx, "the workflow was not told that a call was settled; the sweeper will tell it", slog.String("session_id", call.SessionID),
			slog.String("call_id", call.ID), slog.String("error", err.Error()))
	}
}

// signalSettled signals the workflow that considers a call unknown: the session's workflow or the one that runs the call's composition.
func (a *Activities) signalSettled(ctx context.Context, call jig.Call) error {
	id := call.SessionID
	if call.Frame != "" {
		id = jig.QualifiedCallID(call.SessionID, call.Frame)
	}
	return a.Runs.Settled(ctx, id, protocol.Settlement{Call: call.ID})
}

// notifyLeftOver tells workflows about calls that were settled late by workers that did not manage to tell them. If that fails for one
// workflow, the others are still told, and a later sweep tries again.
func (a *Activities) notifyLeftOver(ctx context.Context) error {
	if a.Runs == nil {
		return nil
	}
	left, err := a.Store.TakeSettled(ctx, notifyAgainAfter, maxNotified)
	if err != nil {
		return err
	}
	var failed error
	for _, call := range left {
		err := a.signalSettled(ctx, call)
		if err == nil {
			err = a.Store.ToldSettled(ctx, call.Tenant, call.SessionID, call.ID)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Standing returns the state of a call, for a workflow that was told that the call was settled, or that heard a decision on the call early.
func (a *Activities) Standing(ctx context.Context, in RunInput) (Ran, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if call.Status == jig.CallWaiting || call.Status == jig.CallUnknown {
		ran, err := a.asked(ctx, call)
		if jig.CodeOf(err) == jig.CodeNotFound { // it was decided a moment ago
			return result(call), nil
		}
		return ran, temporalError(err)
	}
	return result(call), nil
}
