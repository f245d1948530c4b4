package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// refusals is a store that keeps why letters were refused.
type refusals struct {
	activities.Store
	reasons []string
}

func (r *refusals) Refuse(_ context.Context, _, _, _, reason string, _ json.RawMessage) error {
	r.reasons = append(r.reasons, reason)
	return nil
}

// What cannot be read is refused in words for the one who wrote it, and never dropped.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, payload, reason string }{
		{"approve", `{"cal":"1.1"}`, `the payload could not be read: unknown field "cal"`},
		{"approve", `"1.1"`, "the payload could not be read: it is of type string; give a JSON object"},
		{"approve", `{"call":1.1}`, "the payload could not be read: `call` takes no value of type number"},
		{"answer", ``, "the payload could not be read: it is empty; give a JSON object"},
		{"reconcile", `{"call":"1.1"} {}`, "the payload could not be read: there is more than one JSON value"},
		{"message", `{"body":"hello"}`, `the payload could not be read: unknown field "body"`},
		{"event", `{"nam":"paid"}`, `the payload could not be read: unknown field "nam"`},
		{"aprove", `{}`, `there is no signal "aprove"; use approve, deny, delegate, answer, reconcile, message or event`},
	} {
		store := &refusals{}
		heard, err := activities.New(activities.Deps{Store: store}).Hear(t.Context(), activities.Letter{
			SessionRef: activities.SessionRef{Tenant: "t", SessionID: "ses_1"}, Name: row.name, Key: "k", Payload: json.RawMessage(row.payload),
		})
		require.NoError(t, err)
		require.Equal(t, []jig.Ruled{{Outcome: jig.DecisionRefused, Reason: row.reason}}, heard.Decisions)
		require.Equal(t, []string{row.reason}, store.reasons)
	}
}
