package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// reviewed is a store of recorded calls and of calls that wait for people. It implements nothing else.
type reviewed struct {
	activities.Store
	activities.Catalog
	activities.Policy

	calls  []ledger.RecordedCall
	filter jig.PendingFilter
	cursor string
	limit  int
	since  time.Time
	tested []ledger.RecordedCall
}

func (r *reviewed) ListPending(_ context.Context, tenant string, f jig.PendingFilter, cursor string, limit int) ([]jig.Pending, string, error) {
	r.filter, r.cursor, r.limit = f, cursor, limit
	return []jig.Pending{{Tenant: tenant, Call: "1.1"}}, "next", nil
}

func (r *reviewed) RecordedCalls(_ context.Context, _ string, since time.Time, cursor string, limit int) ([]ledger.RecordedCall, string, error) {
	r.since, r.cursor, r.limit = since, cursor, limit
	return r.calls, "next", nil
}

func (r *reviewed) Tool(name string) (jig.Tool, bool) {
	return jig.Tool{Name: name}, name != "gone.tool"
}

func (r *reviewed) Rule(context.Context, jig.Tool, jig.Call, jig.Session, time.Time) (policy.Ruling, error) {
	return policy.Ruling{}, nil
}

func (r *reviewed) Backtest(_ context.Context, tenant, document string, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error) {
	if document != "the document" || tenant != "acme" {
		return nil, jig.Errorf(jig.CodeInvalidInput, "no document").WithField("document")
	}
	r.tested = calls
	results := make([]protocol.BacktestResult, len(calls))
	for i, c := range calls {
		results[i] = protocol.BacktestResult{Call: c.Call.ID, Tool: c.Call.Tool, Recorded: c.Call.Verdict}
		if c.Tool != nil {
			results[i].Now, results[i].New = jig.VerdictRun, jig.VerdictRun
			if c.Call.Write {
				results[i].New, results[i].Rules = jig.VerdictDeny, []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}
			}
		}
	}
	return results, nil
}

func (r *reviewed) activities() *activities.Activities {
	return activities.New(activities.Deps{Store: r, Tenants: who{}, Catalog: r, Policy: r})
}

// failed returns the error code that an activity failed with.
func failed(t *testing.T, err error) jig.Code {
	t.Helper()
	var e *temporal.ApplicationError
	require.ErrorAs(t, err, &e)
	return jig.Code(e.Type())
}

func TestListPending_Filters(t *testing.T) {
	t.Parallel()
	r := &reviewed{}
	filter := jig.PendingFilter{Tool: "file.*", Agent: "writer"}
	for asked, limit := range map[int]int{0: 40, 7: 7, 41: 40, -1: 40} {
		page, err := r.activities().ListPending(t.Context(), protocol.PendingRequest{Tenant: "acme", Filter: filter, Cursor: "c", Limit: asked})
		require.NoError(t, err)
		require.Equal(t, protocol.ApprovalList{Approvals: []jig.Pending{{Tenant: "acme", Call: "1.1"}}, Next: "next"}, page)
		require.Equal(t, filter, r.filter)
		require.Equal(t, "c", r.cursor)
		require.Equal(t, limit, r.limit)
	}
}

// who has the settings of a tenant with one group.
type who struct{}

func (who) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{People: []jig.Principal{{ID: "ana", Groups: []string{"finance"}}}}, nil
}

func (w who) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return w.Settings(ctx, tenant)
}

// desk lists calls that wait for people, at most two per page.
type desk struct {
	activities.Store
	waiting []jig.Pending
}

func (d desk) ListPending(_ context.Context, _ string, _ jig.PendingFilter, cursor string, limit int) ([]jig.Pending, string, error) {
	at := len(cursor)
	to := min(at+min(limit, 2), len(d.waiting))
	next := strings.Repeat("x", to)
	if to == len(d.waiting) {
		next = ""
	}
	return d.waiting[at:to], next, nil
}

func TestListPending_SelectsForOnePerson(t *testing.T) {
	t.Parallel()
	finance := &jig.Terms{Requirements: []jig.Requirement{{Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: 2}}}
	d := desk{waiting: []jig.Pending{
		{Call: "1.1"},
		{Call: "1.2", Terms: finance},
		{Call: "1.3", Terms: finance, Votes: []jig.Vote{{By: "ana", Counts: []int{0}}}},
		{Call: "1.4", Terms: &jig.Terms{NotRequester: true}, RequestedBy: "ana"},
		{Call: "1.5", Delegations: []jig.Delegation{{From: "ana", To: "ben"}}},
		{Call: "1.6", Kind: jig.PendingReconcile},
	}}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: d, Tenants: who{}})
	for person, want := range map[string][]string{"ana": {"1.1", "1.2", "1.6"}, "ben": {"1.1", "1.4", "1.5", "1.6"}} {
		var got []string
		request := protocol.PendingRequest{Tenant: "acme", Filter: jig.PendingFilter{For: person}, Limit: 2}
		for {
			page, err := a.ListPending(t.Context(), request)
			require.NoError(t, err)
			for _, p := range page.Approvals {
				got = append(got, p.Call)
			}
			if request.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		require.Equal(t, want, got, person)
	}
}
