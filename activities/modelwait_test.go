package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/tools"
)

// fails asks for the turn of the first pass, which fails, and returns the error as Temporal gets it.
func (o *office) fails(t *testing.T) *temporal.ApplicationError {
	t.Helper()
	_, err := o.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	return failed
}

// waitsFor returns the lines of the status that say what the session waits for.
func (o *office) waitsFor(t *testing.T) []string {
	t.Helper()
	view, err := o.db.SessionView(t.Context(), o.tenant, o.session)
	require.NoError(t, err)
	return view.Held
}

func TestThink_RecordsAWaitForItsProvider(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, chat.Turn{})
	limited := jig.Errorf(jig.CodeRateLimited, "the model's provider limits the rate: slow down")
	limited.RetryAfter = 30 * time.Minute
	m.err = limited
	began := o.now()
	failed := o.fails(t)
	require.False(t, failed.NonRetryable())
	require.Equal(t, 30*time.Minute, failed.NextRetryDelay())
	var wait ledger.ModelWait
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventModelWaiting), &wait))
	require.Equal(t, jig.CodeRateLimited, wait.Code)
	require.WithinRange(t, wait.Next, began.Add(30*time.Minute), o.now().Add(30*time.Minute))
	require.Len(t, o.waitsFor(t), 1)
	require.Contains(t, o.waitsFor(t)[0], limited.Message)
	require.Contains(t, o.waitsFor(t)[0], wait.Next.Format(time.RFC3339))

	m.err = jig.Errorf(jig.CodeUnavailable, "overloaded")
	require.Equal(t, 2*time.Second, o.fails(t).NextRetryDelay())
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventModelWaiting), &wait))
	require.Equal(t, 2, wait.Attempt)

	m.err, m.answer = nil, pays("a")
	o.thinks(t, 1, 100)
	require.Empty(t, o.waitsFor(t), "the model has answered")
}

// An answer that is broken is asked for three times more, and an empty one once.
func TestThink_GivesUpAnswersThatStayBroken(t *testing.T) {
	t.Parallel()
	for reason, times := range map[string]int{jig.ReasonBrokenAnswer: 3, jig.ReasonNoAnswer: 1} {
		o, m := thinking(t, chat.Turn{})
		m.err = jig.Errorf(jig.CodeUnavailable, "overloaded")
		require.False(t, o.fails(t).NonRetryable(), "an outage does not count")
		m.err = jig.Errorf(jig.CodeUnavailable, "the provider ended its answer with xyz").WithReason(reason)
		for range times {
			require.False(t, o.fails(t).NonRetryable())
		}
		failed := o.fails(t)
		require.True(t, failed.NonRetryable())
		e := activities.ErrorFrom(failed)
		require.Equal(t, jig.CodeInvalidOutput, e.Code)
		require.Equal(t, reason, e.Reason)
		require.Contains(t, e.Message, "xyz")
		require.Equal(t, times+2, m.asked)
	}
}

func TestThink_DoesNotRecordAWaitThatIsNone(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, chat.Turn{})
	m.err = jig.Errorf(jig.CodeBudgetExhausted, "the quota is used up").WithReason(jig.ReasonProviderQuota)
	require.True(t, o.fails(t).NonRetryable())
	require.Empty(t, o.waitsFor(t))
}

func TestThink_RecordsThatAnAnswerMayNotBeComplete(t *testing.T) {
	t.Parallel()
	o, _ := thinking(t, chat.Turn{Stop: chat.StopEnd, Text: "42", Warning: `the provider ended the answer with "xyz"`})
	require.Equal(t, "42", o.thinks(t, 1, 100).Ended.Answer)
	require.Contains(t, string(o.event(t, jig.EventModelWarning)), "xyz")
}

func TestThink_AsksTheModelAgain(t *testing.T) {
	t.Parallel()
	outage := jig.Errorf(jig.CodeUnavailable, "down")
	require.Equal(t, outage, chat.AskedAgain(outage, 9))
}

// asksModel sets up an office with a call whose tool asks a model, and returns a function that runs it: the provider fails, or answers if err is
// nil. The function returns the error as Temporal gets it.
func asksModel(t *testing.T) (*office, func(err *jig.Error) *temporal.ApplicationError) {
	t.Helper()
	var down *jig.Error
	o := newOffice(t, func(o *office) {
		contract := jig.Tool{Permission: jig.PermissionDraft, Idempotent: true, MaxAttempts: chat.MaxRequests, RetryFor: chat.RetryFor}
		o.extra = []tools.Tool{o.payment(contract, func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
			if down != nil {
				return jig.Failure(fmt.Errorf("ask a model: %w", down))
			}
			return paid(ctx, inv, input)
		})}
	})
	call := o.asks(t, 1, payTool, `{"order":"a"}`)
	return o, func(err *jig.Error) *temporal.ApplicationError {
		down = err
		_, failed := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: call.ID})
		var e *temporal.ApplicationError
		if failed != nil {
			require.ErrorAs(t, failed, &e)
		}
		return e
	}
}

// A call whose tool asks a model waits for the provider as a turn does: with an event, and with a line of the status until the next attempt.
func TestRunTool_RecordsAWaitForAProvider(t *testing.T) {
	t.Parallel()
	o, run := asksModel(t)
	limited := jig.Errorf(jig.CodeRateLimited, "slow down").WithReason(jig.ReasonProviderFailed)
	limited.RetryAfter = 50 * time.Minute
	require.Equal(t, limited.RetryAfter, run(limited).NextRetryDelay())
	var wait ledger.ModelWait
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventModelWaiting), &wait))
	require.Equal(t, limited.Message, wait.Message)
	require.Equal(t, "waits: "+wait.String(), o.status(t).Calls[0].Summary)
	require.Contains(t, wait.String(), wait.Next.Format(time.RFC3339))

	broken := jig.Errorf(jig.CodeUnavailable, "network_error").WithReason(jig.ReasonBrokenAnswer)
	require.Equal(t, 2*time.Second, run(broken).NextRetryDelay())
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventModelWaiting), &wait))
	require.Equal(t, 2, wait.Attempt)
	require.Nil(t, run(nil))
	require.Equal(t, "paid", o.status(t).Calls[0].Summary)
}

// A failure that is not the provider's is no wait for a model.
func TestRunTool_RecordsNoWaitForOtherFailures(t *testing.T) {
	t.Parallel()
	o, run := asksModel(t)
	require.NotNil(t, run(jig.Errorf(jig.CodeUnavailable, "the warehouse is closed")))
	require.NotContains(t, o.eventsOf(t, "1.1"), jig.EventModelWaiting)
}

// Outages do not count among the answers that may be broken.
func TestRunTool_GivesUpAnswersThatStayBroken(t *testing.T) {
	t.Parallel()
	for reason, times := range map[string]int{jig.ReasonBrokenAnswer: 3, jig.ReasonNoAnswer: 1} {
		o, run := asksModel(t)
		for range 2 {
			require.NotNil(t, run(jig.Errorf(jig.CodeUnavailable, "overloaded").WithReason(jig.ReasonProviderFailed)))
		}
		broken := jig.Errorf(jig.CodeUnavailable, "the provider ended its answer with xyz").WithReason(reason)
		for range times {
			require.NotNil(t, run(broken))
		}
		require.Nil(t, run(broken))
		call := o.call(t, "1.1")
		require.Equal(t, jig.CallFailed, call.Status)
		require.Equal(t, jig.CodeInvalidOutput, call.Result.Error.Code)
		require.Equal(t, reason, call.Result.Error.Reason)
	}
}
