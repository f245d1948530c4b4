package activities_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

const onePayment = `kind: composition
name: t.onePayment
steps:
  - id: paid
    wait_for: {event: paid, timeout: 8s}
    on_error: continue
output: {got: "${steps.paid.success ? string(steps.paid.data.n) : steps.paid.error.code}"}
`

// arrives sends an event to the session and returns why it was refused, or "".
func (o *office) arrives(t *testing.T, e protocol.Event) string {
	t.Helper()
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "event", Key: jig.NewSessionID(), Payload: raw, Composing: true})
	require.NoError(t, err)
	if heard.Event {
		return ""
	}
	return heard.Decisions[0].Reason
}

// An event that arrives before the composition begins is found when it waits.
func TestEvent_BeforeTheCompositionBeginsCounts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.begins(t, onePayment, `{}`)
	require.Empty(t, o.arrives(t, protocol.Event{Name: "paid", Data: json.RawMessage(`{"n":1}`), By: "ana"}))
	require.True(t, o.composes(t).Done)
	require.JSONEq(t, `{"got":"1"}`, string(o.call(t, "1.1").Result.Data))
}

func TestEvent_IsCheckedAndCountsOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.settings.Disabled = []string{"eve"}
	o.begins(t, onePayment, `{}`)
	for reason, e := range map[string]protocol.Event{
		"`name` is missing":          {},
		"`name` has 129 bytes":       {Name: strings.Repeat("x", 129)},
		"`id` has 257 bytes":         {Name: "paid", ID: strings.Repeat("x", 257)},
		"`data` has 32769 bytes":     {Name: "paid", Data: json.RawMessage(`"` + strings.Repeat("x", 32767) + `"`)},
		"has disabled eve":           {Name: "paid", By: "eve"},
		"cannot check the proof of ": {Name: "paid", Proof: "x"},
	} {
		require.Contains(t, o.arrives(t, e), reason)
	}
	for range 2 {
		require.Empty(t, o.arrives(t, protocol.Event{Name: "paid", ID: "p1", By: "ana"}))
	}
	list, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 0)
	require.NoError(t, err)
	sent, refused := 0, 0
	for _, e := range list {
		if e.Type == jig.EventDecisionRefused {
			refused++
			require.Regexp(t, "missing|bytes|disabled eve|cannot check", string(e.Data), "the log says why")
		}
		if e.Type == "custom.paid" {
			sent++
			require.JSONEq(t, `{"by":"ana","claimed":true}`, string(e.Data))
		}
	}
	require.Equal(t, []int{1, 6}, []int{sent, refused})
}

// An event for which a server vouches is the principal's of its statement. Without one, or with another's, it is refused, and the log says so.
func TestEvent_Vouched(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.settings.Starts = jig.ProofClaimed
	f.begins(t, onePayment, `{}`)
	f.settings.Starts = jig.ProofVouched
	e := protocol.Event{Name: "paid", ID: "p1", Data: json.RawMessage(`{"n":1}`), By: "carol"}
	require.Contains(t, f.arrives(t, e), "only requests that come through its server")
	st := protocol.Statement{Kind: protocol.StateEvent, Session: f.session, Content: e.Content(), ID: e.ID}
	e.Proof = f.state(t, st, time.Now())
	e.Data = json.RawMessage(`{"n":1000}`)
	require.Contains(t, f.arrives(t, e), "another content")
	e.Data = json.RawMessage(`{"n":1}`)
	require.Empty(t, f.arrives(t, e))
	list, err := f.db.Events(t.Context(), f.tenant, f.session, 0, 0)
	require.NoError(t, err)
	var said []string
	for _, e := range list {
		if e.Type == jig.EventDecisionRefused || e.Type == "custom.paid" {
			said = append(said, string(e.Type)+" "+string(e.Data))
		}
	}
	require.Len(t, said, 3)
	require.Contains(t, said[0], "only requests that come through its server")
	require.Contains(t, said[1], "another content")
	require.Contains(t, said[2], `"by":"ana"`, "whoever the server vouches for, not whom the event names")
	require.NotContains(t, said[2], "claimed")
}
