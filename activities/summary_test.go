package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

// long is a store of one session that exceeds its agent's token budget.
type long struct {
	activities.Store
	session   jig.Session
	exchanges []chat.Exchange
	summary   string
	saved     chat.Turn
}

func newLong(passes int) *long {
	l := &long{session: jig.Session{Tenant: "t", ID: "ses_1", Agent: jig.Agent{Model: "anthropic/m", Limits: jig.Limits{TokenBudget: 3000}}}}
	for pass := range passes {
		l.exchanges = append(l.exchanges, chat.Exchange{
			Pass: pass + 1, Messages: []chat.Message{{Role: chat.RoleUser, Text: fmt.Sprintf("wish %d %s", pass+1, strings.Repeat("é", 500))}},
			Turn: &chat.Turn{Text: "done"},
		})
	}
	return l
}

func (l *long) BeginPass(context.Context, string, string, int) (ledger.Beginning, error) {
	return ledger.Beginning{Session: l.session, Exchanges: l.exchanges}, nil
}

func (l *long) OlderCalls(context.Context, string, string, int, int) ([]jig.Call, error) {
	return nil, nil
}

func (l *long) SaveSummary(_ context.Context, _, _ string, _ int, summary string) error {
	l.summary = summary
	return nil
}

func (l *long) SaveTurn(_ context.Context, _, _ string, _ int, turn chat.Turn) (chat.Turn, error) {
	l.saved = turn
	return turn, nil
}

func (l *long) WriteText(string, string, int) *livetext.Writer { return nil }

// writer is a model that returns a fixed summary.
type writer struct {
	activities.Model
	summary string
	// log is the text that it was asked to summarize.
	log string
	// before is called before it summarizes.
	before func()
}

func (w *writer) Answer(_ context.Context, request chat.Request, _ func(string)) (chat.Turn, error) {
	if !strings.HasPrefix(request.System, "Summarise") {
		return chat.Turn{Text: "the answer", Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 10, OutputTokens: 5}}, nil
	}
	if w.before != nil {
		w.before()
	}
	w.log = request.Exchanges[0].Messages[0].Text
	return chat.Turn{Text: w.summary, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 700, OutputTokens: 30, CacheReadTokens: 2, CacheCreateTokens: 1}}, nil
}

func think(t *testing.T, l *long, w *writer) {
	t.Helper()
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: l, Tenants: who{}, Catalog: registry, Model: w})
	_, err = a.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{
		SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Pass: len(l.exchanges) + 1,
	}})
	require.NoError(t, err)
}

// The usage of summaries counts toward the session's token limit.
func TestSummary_CountsAsUsage(t *testing.T) {
	t.Parallel()
	l := newLong(30)
	think(t, l, &writer{summary: "so far, so good"})
	require.Equal(t, "so far, so good", l.summary)
	require.Equal(t, chat.Usage{InputTokens: 710, OutputTokens: 35, CacheReadTokens: 2, CacheCreateTokens: 1}, l.saved.Usage)
}

// A log that is too long for one prompt loses its middle. The earlier summary, the first request and the latest work are kept.
func TestSummary_LongLogIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	l, w := newLong(60), &writer{summary: "short"}
	l.session.Summary = "what went before"
	think(t, l, w)
	require.True(t, strings.HasPrefix(w.log, "Summary so far: what went before\nUser: wish 1 "), w.log[:80])
	require.Contains(t, w.log[len(w.log)-1500:], "User: wish ")
	require.NotContains(t, w.log, "wish 20 ")
	require.LessOrEqual(t, len(w.log), 4*3000+10)
	require.True(t, utf8.ValidString(w.log))
}

// If the model returns no summary, the session still remembers what it was asked for.
func TestSummary_KeepsTheLogIfTheModelReturnsNoText(t *testing.T) {
	t.Parallel()
	l := newLong(30)
	think(t, l, &writer{summary: " \n"})
	require.Contains(t, l.summary, "User: wish 1 ")
	require.LessOrEqual(t, len(l.summary), 8<<10+10)
	require.True(t, utf8.ValidString(l.summary))
}

// busy is a store that keeps the wait for a provider.
type busy struct {
	*long
	wait *ledger.ModelWait
}

func (b *busy) ModelWait(context.Context, string, string, string) (*ledger.ModelWait, error) {
	return b.wait, nil
}

func (b *busy) NoteModelWait(_ context.Context, _, _ string, w ledger.ModelWait) error {
	b.wait = &w
	return nil
}

// down is a model whose provider limits the rate.
type down struct{ activities.Model }

func (down) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{}, jig.Errorf(jig.CodeRateLimited, "slow down")
}

// The request for a summary waits for the provider like the one for the turn.
func TestSummary_RecordsAWaitForItsProvider(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	b := &busy{long: newLong(30)}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: b, Tenants: who{}, Catalog: registry, Model: down{}})
	_, err = a.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{
		SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Pass: 31,
	}})
	require.Error(t, err)
	require.Equal(t, "slow down", b.wait.Message)
}

// A summary may take longer than the heartbeat timeout, so the worker sends heartbeats in the meantime.
func TestThink_SendsHeartbeatsWhileItSummarizes(t *testing.T) {
	t.Parallel()
	beats := make(chan struct{}, 1)
	w := &writer{summary: "short", before: func() {
		select {
		case <-beats:
		case <-time.After(2 * time.Minute):
			t.Error("the summary was written without a heartbeat")
		}
	}}
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: newLong(30), Tenants: who{}, Catalog: registry, Model: w})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // on a busy machine a goroutine may wait for a processor
	env.SetTestTimeout(5 * time.Minute)
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		select {
		case beats <- struct{}{}:
		default:
		}
	})
	env.RegisterActivity(a.Think)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second})
		ref := activities.PassRef{SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Pass: 31}
		return workflow.ExecuteActivity(ctx, a.Think, ref).Get(ctx, nil)
	})
	require.NoError(t, env.GetWorkflowError())
}
