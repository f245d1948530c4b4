package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestErrors_RoundTrip(t *testing.T) {
	t.Parallel()
	f := &fake{activity: func(o sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadStatus), name)
		require.Equal(t, protocol.StatusRequest{Tenant: "default", SessionID: "ses_a"}, request)
		require.Equal(t, testTimeout, o.ScheduleToStartTimeout)
		require.NotZero(t, o.StartToCloseTimeout)
		return nil, applicationError(jig.CodeNotFound, "there is no session ses_a")
	}}
	_, err := newTestClient(f).Status(t.Context(), "default", "ses_a")
	var e *jig.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, jig.CodeNotFound, e.Code)
	require.Equal(t, "there is no session ses_a", e.Message)
	require.Equal(t, "look", e.Hint)
}

func TestNoWorker_ErrorIsReadable(t *testing.T) {
	t.Parallel()
	f := &fake{activity: noWorkerAnswers}
	_, err := newTestClient(f).Approvals(t.Context(), "default", "")
	require.EqualError(t, err, "UNAVAILABLE: no worker is answering on task queue jig; start one with `jig worker`")
	require.True(t, isNoWorker(err))
}

// A worker that starts soon may still get a decision that the client has given up.
func TestDecide_WithoutAWorkerMayTakeEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{describe: running, activity: noWorkerAnswers, update: func(sdk.UpdateWorkflowOptions) (any, error) {
			time.Sleep(2 * testTimeout)
			return nil, context.Canceled
		}}
		_, err := newTestClient(f).Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
		require.True(t, isNoWorker(err))
		require.ErrorContains(t, err, "the decision may still take effect")
	})
}

func noWorkerAnswers(sdk.StartActivityOptions, string, any) (any, error) {
	return nil, sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
}

func TestTranslate_GivesCodes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err  error
		code jig.Code
	}{
		{serviceerror.NewNamespaceNotFound("x"), jig.CodeNotFound},
		{notFound(), jig.CodeNotFound},
		{exhausted(), jig.CodeRateLimited},
		{serviceerror.NewUnavailable("x"), jig.CodeUnavailable},
		{serviceerror.NewDeadlineExceeded("x"), jig.CodeUnavailable},
		{serviceerror.NewPermissionDenied("x", ""), jig.CodeNotPermitted},
		{serviceerror.NewInvalidArgument("x"), jig.CodeInvalidInput},
		{serviceerror.NewUnimplemented("x"), jig.CodeUnavailable},
		{sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), jig.CodeTimeout},
		{fmt.Errorf("workflow execution error: %w", sdktemporal.NewCanceledError()), jig.CodeCanceled},
		{fmt.Errorf("workflow execution error: %w", &sdktemporal.TerminatedError{}), jig.CodeCanceled},
		{sdktemporal.NewApplicationError("odd", "SomethingElse"), jig.CodeInternal},
		{errors.New("odd"), jig.CodeInternal},
	} {
		require.Equal(t, row.code, jig.CodeOf(translate(row.err)), "%T", row.err)
	}
	require.NoError(t, translate(nil))
	require.ErrorIs(t, translate(context.Canceled), context.Canceled)
}

func TestDecide_RetriesAreOneUpdate(t *testing.T) {
	t.Parallel()
	want := protocol.DecideResult{SessionID: "ses_a", Decisions: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted}}}
	failures := []error{
		exhausted(), notFound(), serviceerror.NewUnavailable("the workflow is changing runs"),
		sdktemporal.NewApplicationErrorWithOptions("cut off", typeUpdateCutOff, sdktemporal.ApplicationErrorOptions{NonRetryable: true}),
	}
	ids := map[string]int{}
	f := &fake{describe: running, update: func(o sdk.UpdateWorkflowOptions) (any, error) {
		require.Equal(t, protocol.UpdateDecide, o.UpdateName)
		require.Equal(t, "3.1", as[protocol.Decisions](t, o.Args[0]).All()[0].Call)
		ids[o.UpdateID]++
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return nil, err
		}
		return want, nil
	}}
	c := newTestClient(f)
	got, err := c.Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, ids, 1)

	_, err = c.Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
	require.NoError(t, err)
	require.Len(t, ids, 2, "the same decisions sent again are another update")
}

// A client does not ask Temporal again who owns a session that it has just started or seen. It always asks about another tenant's session.
func TestDecide_RemembersWhoOwnsASession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looked := 0
		f := &fake{
			start: func(sdk.StartWorkflowOptions, protocol.PassInput) error { return nil },
			describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
				looked++
				return protocol.PassWorkflow, "acme", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
			},
			update: func(sdk.UpdateWorkflowOptions) (any, error) { return protocol.DecideResult{}, nil },
		}
		c := newTestClient(f)
		decide := func(tenant, id string) error {
			_, err := c.Decide(t.Context(), tenant, id, []jig.Decision{{Call: "3.1"}})
			return err
		}
		started, err := c.Start(t.Context(), StartOptions{Tenant: "acme", Agent: "a", Task: "t"})
		require.NoError(t, err)
		require.NoError(t, decide("acme", started.SessionID))
		require.Zero(t, looked, "this client started it")
		require.NoError(t, decide("acme", "ses_seen"))
		require.NoError(t, decide("acme", "ses_seen"))
		require.Equal(t, 1, looked, "this client has seen it")
		for range 2 {
			require.ErrorIs(t, decide("zeta", started.SessionID), &jig.Error{Code: jig.CodeNotFound})
			require.ErrorIs(t, decide("zeta", "ses_seen"), &jig.Error{Code: jig.CodeNotFound})
		}
		require.Equal(t, 5, looked)
		time.Sleep(ownFor)
		require.NoError(t, decide("acme", "ses_seen"))
		require.Equal(t, 6, looked)
	})
}

func TestDecide_SendsManyDecisionsInSeveralRequests(t *testing.T) {
	t.Parallel()
	var sizes []int
	f := &fake{describe: running, update: func(o sdk.UpdateWorkflowOptions) (any, error) {
		list := as[protocol.Decisions](t, o.Args[0]).All()
		sizes = append(sizes, len(list))
		if len(sizes) == 3 {
			return nil, errors.New("no")
		}
		return protocol.DecideResult{SessionID: "ses_a", Decisions: make([]jig.Ruled, len(list))}, nil
	}}
	result, err := newTestClient(f).Decide(t.Context(), "default", "ses_a", make([]jig.Decision, 2*protocol.MaxDecisions+1))
	require.Error(t, err)
	require.Equal(t, []int{protocol.MaxDecisions, protocol.MaxDecisions, 1}, sizes)
	require.Len(t, result.Decisions, 2*protocol.MaxDecisions, "the outcomes of the requests before the failure")
}

// A decision may take long, and meanwhile the client checks whether a worker answers. These checks stop when the request returns.
func TestDecide_LeavesNoPingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings, open := 0, 0
		f := &fake{
			describe: running,
			update: func(sdk.UpdateWorkflowOptions) (any, error) {
				time.Sleep(testTimeout + time.Second) // one second after the first ping, in the bubble's time
				return protocol.DecideResult{SessionID: "ses_a"}, nil
			},
			activity: func(sdk.StartActivityOptions, string, any) (any, error) {
				pings++
				open++
				defer func() { open-- }()
				time.Sleep(time.Minute)
				return jig.SessionView{SessionID: "ses_a"}, nil
			},
		}
		_, err := newTestClient(f).Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
		require.NoError(t, err)
		require.Equal(t, 1, pings)
		require.Zero(t, open)
	})
}

// A decision may end its session before its answer arrives. Then the answer is read from the store. If nobody can read it, the error says that the
// decision may have taken effect.
func TestDecide_FindsTheAnswerOfASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	decided := protocol.DecideResult{SessionID: "ses_a", Decisions: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted}}}
	for name, one := range map[string]struct {
		stored any
		failed error
		want   []jig.Ruled
		code   jig.Code
	}{
		"stored":       {stored: decided, want: decided.Decisions},
		"not stored":   {failed: applicationError(jig.CodeNotFound, "the session has no answer"), code: jig.CodeConflict},
		"without news": {failed: sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), code: jig.CodeConflict},
	} {
		again := []string{protocol.Again("ana", jig.Decision{Call: "3.1"})}
		var sent string
		var updates []string
		f := &fake{describe: running}
		f.update = func(o sdk.UpdateWorkflowOptions) (any, error) {
			sent, f.describe = o.UpdateID, completed
			return nil, notFound()
		}
		f.activity = func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
			require.Equal(t, string(protocol.ReadRuled), name)
			got := as[protocol.RuledRequest](t, request)
			updates, got.Update = append(updates, got.Update), ""
			require.Equal(t, protocol.RuledRequest{Tenant: "default", SessionID: "ses_a", Count: 1, Same: again}, got)
			return one.stored, one.failed
		}
		for range 2 { // another client finds that the session has ended before it decides the same
			result, err := newTestClient(f).Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1", By: "ana"}})
			require.Equal(t, one.code, jig.CodeOf(err), name)
			require.Equal(t, one.want, result.Decisions, name)
			require.Equal(t, name == "without news", err != nil && strings.Contains(err.Error(), "not known whether the decision took effect"), name)
		}
		require.Equal(t, sent, updates[0], name)
	}
}

func TestDecide_ReportsWhyItFails(t *testing.T) {
	t.Parallel()
	gone := func(sdk.UpdateWorkflowOptions) (any, error) { return nil, notFound() }
	_, err := newTestClient(&fake{describe: completed, update: gone}).Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
	require.ErrorContains(t, err, "session ses_a has ended (completed)")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict})
	_, err = newTestClient(&fake{describe: unknown, update: gone}).Decide(t.Context(), "default", "ses_a", []jig.Decision{{Call: "3.1"}})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})
	_, err = newTestClient(&fake{}).Decide(t.Context(), "default", "ses_a", nil)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
}

func TestReconcile_IsSent(t *testing.T) {
	t.Parallel()
	f := &fake{describe: running, update: func(o sdk.UpdateWorkflowOptions) (any, error) {
		require.Equal(t, protocol.UpdateReconcile, o.UpdateName)
		sent := as[protocol.Reconciled](t, o.Args[0])
		require.Equal(t, jig.OutcomeHappened, sent.Outcome)
		require.Equal(t, "decide ses_a "+sent.Content(), sent.Proof)
		return protocol.DecideResult{SessionID: "ses_a"}, nil
	}}
	c := newTestClient(f)
	c.voucher = stamp{}
	_, err := c.Reconcile(t.Context(), "default", "ses_a", jig.Reconciliation{Call: "1.1", Outcome: jig.OutcomeHappened})
	require.NoError(t, err)
}

func TestEvents_ReadsAllPages(t *testing.T) {
	t.Parallel()
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		switch r := request.(type) {
		case protocol.ApprovalsRequest:
			if r.Cursor == "" {
				return protocol.ApprovalList{Approvals: []jig.Pending{{Call: "1.1"}}, Next: "n"}, nil
			}
			return protocol.ApprovalList{Approvals: []jig.Pending{{Call: "1.2"}}}, nil
		case protocol.CatalogRequest:
			if r.After == "" {
				return protocol.CatalogPage{
					Tools: []jig.Tool{{Name: "a.b"}}, Agents: []string{"review"}, Skills: []string{}, Compositions: []string{"nightly"}, More: true,
				}, nil
			}
			require.Equal(t, "a.b", r.After)
			return protocol.CatalogPage{Tools: []jig.Tool{{Name: "c.d"}}}, nil
		case protocol.EventsRequest:
			require.Zero(t, r.Wait)
			return protocol.EventsPage{Events: upTo(r.After+1, min(r.After+2, 3))}, nil
		default:
			return nil, errors.New(name)
		}
	}}
	c := newTestClient(f)
	approvals, err := c.Approvals(t.Context(), "default", "")
	require.NoError(t, err)
	require.Len(t, approvals, 2)
	catalog, err := c.Catalog(t.Context(), "default")
	require.NoError(t, err)
	require.Len(t, catalog.Tools, 2)
	require.Equal(t, []string{"review"}, catalog.Agents)
	require.Equal(t, []string{"nightly"}, catalog.Compositions)
	require.NotNil(t, catalog.Skills, "an empty list means that there are none")
	events, err := c.Events(t.Context(), "default", "ses_a", 0)
	require.NoError(t, err)
	require.Len(t, events, 3)
}

func TestDocument_IsReadInPieces(t *testing.T) {
	t.Parallel()
	versions := []string{"an old text", "a newer text"}
	changes := 1
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		r := as[protocol.CatalogRequest](t, request)
		require.Equal(t, string(protocol.ReadCatalog), name)
		require.Equal(t, protocol.CatalogRequest{Tenant: "acme", Kind: "spec", Name: "nightly", Offset: r.Offset}, r)
		body := versions[0]
		if r.Offset > 0 && changes > 0 { // a new version appears after the first part
			changes--
			slices.Reverse(versions)
			body = versions[0]
		}
		return protocol.CatalogPage{Document: &protocol.DocumentChunk{
			Hash: body, Data: []byte(body[r.Offset:min(r.Offset+5, len(body))]), Size: len(body),
		}}, nil
	}}
	c := newTestClient(f)
	body, err := c.Document(t.Context(), "acme", "spec", "nightly")
	require.NoError(t, err)
	require.Equal(t, "a newer text", string(body), "not a mixture of two versions")

	changes = 100
	_, err = c.Document(t.Context(), "acme", "spec", "nightly")
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))

	old := &fake{activity: func(sdk.StartActivityOptions, string, any) (any, error) { return protocol.CatalogPage{}, nil }}
	_, err = newTestClient(old).Document(t.Context(), "acme", "spec", "nightly")
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	require.ErrorContains(t, err, "older version")
}

func upTo(from, to int64) []jig.Event {
	var list []jig.Event
	for seq := from; seq <= to; seq++ {
		list = append(list, jig.Event{Seq: seq, Type: jig.EventToolStarted})
	}
	return list
}

func TestWatch_UntilTheEnd(t *testing.T) {
	t.Parallel()
	asked := 0
	f := &fake{describe: running, activity: func(_ sdk.StartActivityOptions, _ string, request any) (any, error) {
		r := as[protocol.EventsRequest](t, request)
		asked++
		switch asked {
		case 1: // the session's row does not exist yet
			return nil, applicationError(jig.CodeNotFound, "there is no session")
		case 2: // the worker died
			return noWorkerAnswers(sdk.StartActivityOptions{}, "", nil)
		case 3:
			require.Equal(t, longPoll, r.Wait)
			return protocol.EventsPage{Events: upTo(1, 2), Status: jig.StatusWorking}, nil
		case 4: // nothing happened for a while
			return protocol.EventsPage{Status: jig.StatusInputRequired}, nil
		case 5:
			require.EqualValues(t, 2, r.After)
			return protocol.EventsPage{Events: upTo(3, 3), Status: jig.StatusCompleted}, nil
		default:
			require.Zero(t, r.Wait, "the rest is there already")
			return protocol.EventsPage{Events: []jig.Event{{Seq: 4, Type: jig.EventSessionCompleted}}, Status: jig.StatusCompleted}, nil
		}
	}}
	var seen []int64
	err := newTestClient(f).Watch(t.Context(), "default", "ses_a", 0, func(e jig.Event) error {
		seen = append(seen, e.Seq)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3, 4}, seen)
	require.Equal(t, 6, asked)
}

func TestWatch_EndsWithTheContextAndWithTheCallback(t *testing.T) {
	t.Parallel()
	f := &fake{activity: func(sdk.StartActivityOptions, string, any) (any, error) {
		return protocol.EventsPage{Events: upTo(1, 1), Status: jig.StatusWorking}, nil
	}}
	enough := errors.New("enough")
	err := newTestClient(f).Watch(t.Context(), "default", "ses_a", 0, func(jig.Event) error { return enough })
	require.ErrorIs(t, err, enough)

	ctx, cancel := context.WithCancel(t.Context())
	f = &fake{activity: func(sdk.StartActivityOptions, string, any) (any, error) {
		cancel()
		return nil, context.Canceled
	}}
	err = newTestClient(f).Watch(ctx, "default", "ses_a", 0, func(jig.Event) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestWatch_OfAnUnknownSession(t *testing.T) {
	t.Parallel()
	f := &fake{describe: unknown, activity: func(sdk.StartActivityOptions, string, any) (any, error) {
		return nil, applicationError(jig.CodeNotFound, "there is no session")
	}}
	err := newTestClient(f).Watch(t.Context(), "default", "ses_a", 0, func(jig.Event) error { return nil })
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})
}
