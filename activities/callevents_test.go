package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// requireTellingEvents checks that the events of every attempt in a session show what ran: the one that begins it shows an input, and all
// have the id that the model provider gave the call. It runs at the end of every test that opens a session.
func (o *office) requireTellingEvents(t *testing.T, session string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	list, err := o.db.Events(ctx, o.tenant, session, 0, 0)
	require.NoError(t, err)
	for _, e := range list {
		if e.Type != jig.EventToolStarted && e.Type != jig.EventToolCompleted && e.Type != jig.EventToolFailed {
			continue
		}
		call, err := o.db.Call(ctx, o.tenant, session, e.CallID)
		require.NoError(t, err)
		var data map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(e.Data, &data))
		if e.Type == jig.EventToolStarted {
			require.NotContains(t, []string{"", `""`}, string(data["input"]), "%s: %s", e.CallID, e.Data)
		}
		var provider string
		if raw, ok := data["provider_id"]; ok {
			require.NoError(t, json.Unmarshal(raw, &provider))
		}
		require.Equal(t, call.ProviderID, provider, "%s of %s: %s", e.Type, e.CallID, e.Data)
	}
}
