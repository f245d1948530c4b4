package activities_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

func TestNext_EndsOrContinuesThePass(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	calls := func(status jig.CallStatus, n int) map[jig.CallStatus]int { return map[jig.CallStatus]int{status: n} }
	limited := func(l jig.Limits) jig.Session {
		return jig.Session{Agent: jig.Agent{Limits: l}, CreatedAt: now.Add(-time.Hour), Tokens: 1000}
	}
	for name, row := range map[string]struct {
		state  ledger.PassState
		pass   int
		status jig.Status
		reason string
		code   jig.Code
	}{
		"an answer completes":              {ledger.PassState{Turn: chat.Turn{Text: "done", Stop: chat.StopEnd}}, 1, jig.StatusCompleted, jig.ReasonAnswered, ""},
		"calls continue":                   {ledger.PassState{Counts: calls(jig.CallSucceeded, 2)}, 1, jig.StatusWorking, "", ""},
		"one duplicate of two continues":   {ledger.PassState{Counts: map[jig.CallStatus]int{jig.CallDuplicate: 1, jig.CallFailed: 1}}, 1, jig.StatusWorking, "", ""},
		"all duplicates complete":          {ledger.PassState{Counts: calls(jig.CallDuplicate, 2)}, 1, jig.StatusCompleted, jig.ReasonAllToolsDuplicate, ""},
		"a message outweighs an answer":    {ledger.PassState{Unread: 1, Turn: chat.Turn{Stop: chat.StopEnd}}, 1, jig.StatusWorking, "", ""},
		"a message outweighs duplicates":   {ledger.PassState{Unread: 1, Counts: calls(jig.CallDuplicate, 1)}, 1, jig.StatusWorking, "", ""},
		"a refusal fails":                  {ledger.PassState{Turn: chat.Turn{Stop: chat.StopRefusal}}, 1, jig.StatusFailed, jig.ReasonRefusal, jig.CodeDenied},
		"a cut-off answer fails":           {ledger.PassState{Turn: chat.Turn{Stop: chat.StopLength}}, 1, jig.StatusFailed, jig.ReasonCutOff, jig.CodeInvalidOutput},
		"cut-off calls are the model's":    {ledger.PassState{Turn: chat.Turn{Stop: chat.StopLength}, Counts: calls(jig.CallFailed, 1)}, 1, jig.StatusWorking, "", ""},
		"the last pass fails":              {ledger.PassState{Session: limited(jig.Limits{MaxPasses: 3}), Counts: calls(jig.CallSucceeded, 1)}, 3, jig.StatusFailed, jig.ReasonMaxPasses, jig.CodeBudgetExhausted},
		"a message gives new passes":       {ledger.PassState{Session: limited(jig.Limits{MaxPasses: 3}), MessagePass: 2, Counts: calls(jig.CallSucceeded, 1)}, 4, jig.StatusWorking, "", ""},
		"the token budget ends it":         {ledger.PassState{Session: limited(jig.Limits{MaxTotalTokens: 1000}), Counts: calls(jig.CallSucceeded, 1)}, 1, jig.StatusFailed, jig.ReasonBudget, jig.CodeBudgetExhausted},
		"an answer within budget is fine":  {ledger.PassState{Session: limited(jig.Limits{MaxTotalTokens: 1000})}, 1, jig.StatusCompleted, jig.ReasonAnswered, ""},
		"the deadline ends it":             {ledger.PassState{Session: limited(jig.Limits{Deadline: time.Minute}), Counts: calls(jig.CallSucceeded, 1)}, 1, jig.StatusFailed, jig.ReasonDeadline, jig.CodeBudgetExhausted},
		"before the deadline":              {ledger.PassState{Session: limited(jig.Limits{Deadline: 2 * time.Hour}), Counts: calls(jig.CallSucceeded, 1)}, 1, jig.StatusWorking, "", ""},
		"without limits fifty passes stop": {ledger.PassState{Counts: calls(jig.CallSucceeded, 1)}, 50, jig.StatusFailed, jig.ReasonMaxPasses, jig.CodeBudgetExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := activities.Next(row.state, row.pass, now)
			require.Equal(t, row.status, end.Status)
			require.Equal(t, row.reason, end.Reason)
			if row.code == "" {
				require.Nil(t, end.Error)
				return
			}
			require.Equal(t, row.code, end.Error.Code)
			require.NotEmpty(t, end.Error.Hint)
		})
	}
}

// ended is a store of sessions whose workflows have ended. Some of them cannot be closed.
type ended struct {
	activities.Store
	broken         map[string]*jig.Error
	closed         []string
	forgot, summed int
	// deaf is a workflow that cannot be signaled. told are the calls whose workflows have been told.
	deaf          string
	signals, told []string
}

func (e *ended) LiveSessions(context.Context, int) ([]jig.Session, error) {
	return []jig.Session{{Tenant: "t", ID: "ses_1"}, {Tenant: "t", ID: "ses_2"}, {Tenant: "t", ID: "ses_3"}}, nil
}

func (e *ended) CancelSession(_ context.Context, end ledger.End) error {
	if err := e.broken[end.SessionID]; err != nil {
		return err
	}
	e.closed = append(e.closed, end.SessionID)
	return nil
}

func (e *ended) ForgetTokens(context.Context, time.Duration) (int64, error) {
	e.forgot++
	return 0, nil
}

func (e *ended) ReleaseBudgets(context.Context, int) (int64, error) { return 0, nil }

func (e *ended) ForgetRates(context.Context, int) (int64, error) { return 0, nil }

func (e *ended) SumUsage(context.Context, int) (int64, error) {
	e.summed++
	return 0, nil
}

func (e *ended) TakeSettled(context.Context, time.Duration, int) ([]jig.Call, error) {
	return []jig.Call{
		{Tenant: "t", SessionID: "ses_1", ID: "1.1"},
		{Tenant: "t", SessionID: "ses_2", ID: "1.2"},
		{Tenant: "t", SessionID: "ses_3", ID: "1.3/step", Frame: "1.3"},
	}, nil
}

func (e *ended) ToldSettled(_ context.Context, _, id, call string) error {
	e.told = append(e.told, id+" "+call)
	return nil
}

func (e *ended) Open(context.Context, string, string) (bool, error) { return false, nil }

func (e *ended) Ended(_ context.Context, ids []string) ([]string, error) { return ids, nil }

func (e *ended) Ending(context.Context, string, string) (ledger.Ending, error) {
	return ledger.Ending{How: ledger.EndedTerminated}, nil
}

func (e *ended) ResetReason(context.Context, string, string) (string, error) { return "", nil }

func TestSweep_ContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	for code, closed := range map[jig.Code][]string{
		jig.CodeInternal:    {"ses_1", "ses_3"},
		jig.CodeUnavailable: {"ses_1"}, // the database is unavailable, so the next sweep continues
	} {
		e := &ended{broken: map[string]*jig.Error{"ses_2": jig.Errorf(code, "broken")}}
		a := activities.New(activities.Deps{Policy: noPolicies{}, Store: e, Tenants: who{}, Runs: e, Logger: slog.New(slog.DiscardHandler)})
		_, err := a.Sweep(t.Context())
		require.Equal(t, code, activities.ErrorFrom(err).Code)
		require.Equal(t, closed, e.closed)
		require.Equal(t, []int{1, 1}, []int{e.forgot, e.summed})
	}
}

func (e *ended) Settled(_ context.Context, workflowID string, call protocol.Settlement) error {
	e.signals = append(e.signals, workflowID+" "+call.Call)
	if workflowID == e.deaf {
		return jig.Errorf(jig.CodeUnavailable, "no answer")
	}
	return nil
}

// If a worker died before it told a workflow of a settled call, the sweeper tells it, so that the session does not wait forever.
func TestSweep_NotifiesWorkflowsOfCallsSettledLate(t *testing.T) {
	t.Parallel()
	e := &ended{deaf: "ses_2"}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: e, Tenants: who{}, Runs: e, Logger: slog.New(slog.DiscardHandler)})
	_, err := a.Sweep(t.Context())
	require.Equal(t, jig.CodeUnavailable, activities.ErrorFrom(err).Code)
	require.Equal(t, []string{"ses_1 1.1", "ses_2 1.2", "ses_3/1.3 1.3/step"}, e.signals, "one signal each")
	require.Equal(t, []string{"ses_1 1.1", "ses_3 1.3/step"}, e.told, "the other one is told by a later sweep")
	require.Equal(t, 1, e.forgot)
}
