package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// rulings are the stored answers, by key.
type rulings struct {
	activities.Store

	stored map[string]jig.Ruled
}

func (r rulings) Ruled(_ context.Context, _, _ string, keys []string) (list []jig.Ruled, _ error) {
	for _, key := range keys {
		if one, ok := r.stored[key]; ok {
			list = append(list, one)
		}
	}
	return list, nil
}

// An update was answered if each of its decisions was.
func TestRuled_ReturnsTheAnswersOfAnUpdate(t *testing.T) {
	t.Parallel()
	one, two := jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted}, jig.Ruled{Call: "1.2", Outcome: jig.DecisionRefused}
	r := rulings{stored: map[string]jig.Ruled{"update:u#0": one, "update:u#1": two, "update:v#0": one}}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: r, Tenants: who{}})
	got, err := a.Ruled(t.Context(), protocol.RuledRequest{Tenant: "acme", SessionID: "ses_1", Update: "u", Count: 2})
	require.NoError(t, err)
	require.Equal(t, protocol.DecideResult{SessionID: "ses_1", Decisions: []jig.Ruled{one, two}}, got)
	_, err = a.Ruled(t.Context(), protocol.RuledRequest{Tenant: "acme", SessionID: "ses_1", Update: "v", Count: 2})
	require.ErrorContains(t, err, "no answer to this update")
	r.stored["again:1"] = two
	got, err = a.Ruled(t.Context(), protocol.RuledRequest{Tenant: "acme", SessionID: "ses_1", Update: "w", Count: 1, Same: []string{"again:1"}})
	require.NoError(t, err)
	require.Equal(t, []jig.Ruled{two}, got.Decisions, "another update asked the same")
	for _, count := range []int{0, protocol.MaxDecisions + 1} {
		_, err = a.Ruled(t.Context(), protocol.RuledRequest{Tenant: "acme", SessionID: "ses_1", Update: "u", Count: count})
		require.ErrorContains(t, err, "an update has 1 to 500 decisions")
	}
}
