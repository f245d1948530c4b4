package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
)

// filling is a store with one call that fills an entity, and an extractor with a bug.
type filling struct {
	activities.Store
	activities.Catalog
	activities.Extractor
	activities.Policy
	call jig.Call
}

func (f filling) Tool(string) (jig.Tool, bool) {
	return jig.Tool{Name: f.call.Tool, Implementation: activities.ChildExtraction}.WithDefaults(), true
}

func (filling) Installation() string { return "test" }

func (f filling) CallsOf(context.Context, string, string, []string) (jig.Session, []jig.Call, error) {
	return jig.Session{Tenant: "t", ID: "ses_1", Agent: jig.Agent{Tools: []string{"*"}}}, []jig.Call{f.call}, nil
}

func (f filling) Rule(context.Context, jig.Tool, jig.Call, jig.Session, time.Time) (policy.Ruling, error) {
	return policy.Ruling{Verdict: jig.VerdictRun}, nil
}

func (f filling) Reserve(context.Context, ledger.ReserveRequest) (ledger.Reservation, error) {
	return ledger.Reservation{Outcome: ledger.ReserveRun, Call: f.call, Fence: 1}, nil
}

func (f filling) Begin(context.Context, string, jig.Invocation, json.RawMessage) (plan.Extraction, error) {
	panic("a bug")
}

// A bug in an extraction that runs in a local activity fails the activity but does not end the worker.
func TestLocalActivity_PanicIsAnError(t *testing.T) {
	t.Parallel()
	f := filling{call: jig.Call{Tenant: "t", SessionID: "ses_1", ID: "1.1", Tool: "entities.extract", Status: jig.CallReserved, Input: []byte(`{}`)}}
	var log bytes.Buffer
	a := activities.New(activities.Deps{Store: f, Tenants: who{}, Catalog: f, Extractor: f, Policy: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := a.RunLocal(t.Context(), activities.RunLocalInput{
		SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Calls: []string{"1.1"},
	})
	e := activities.ErrorFrom(err)
	require.NotNil(t, e)
	require.Equal(t, jig.CodeInternal, e.Code)
	require.Equal(t, "panic", e.Reason)
	require.Contains(t, log.String(), "a bug")
}
