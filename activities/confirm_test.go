package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/tenancy"
)

const (
	unconfirmed = `{"order":"a"}`
	confirmed   = `{"order":"a","confirmed":true}`
)

// says adds a person's message to a pass.
func (o *office) says(t *testing.T, pass int, text string) {
	t.Helper()
	_, err := o.db.AddMessage(t.Context(), o.tenant, o.session, jig.NewSessionID(), chat.Message{Role: chat.RoleUser, Text: text, By: "ana", Pass: pass})
	require.NoError(t, err)
}

// first makes the call without its flag, in pass 1.
func (o *office) first(t *testing.T, tool string) {
	t.Helper()
	c := o.asks(t, 1, tool, unconfirmed)
	require.Equal(t, jig.CallSucceeded, c.Status)
	require.Contains(t, string(c.Result.Data), `"requiresConfirmation":true`)
	require.False(t, c.Write, "it did nothing")
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Empty(t, o.ran)
}

func TestConfirmation_ConfirmedCallRuns(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.first(t, closeTool)
	o.asks(t, 2, ordersTool, small)
	o.says(t, 2, "yes, close it")
	c := o.asks(t, 3, closeTool, confirmed)
	require.Equal(t, jig.CallReserved, c.Status)
	require.Contains(t, c.Reasons, "a person confirmed it in a message")
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"3.1 a true"}, o.ran)
}

func TestConfirmation_InvalidOnesAreIgnored(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*office)
		rules  string
		tool   string
		play   func(t *testing.T, o *office)
		input  string
	}{
		"no vote": {tool: closeTool, play: func(t *testing.T, o *office) { t.Helper(); o.first(t, closeTool) }},
		"spoken in the same pass, before the answer was seen": {tool: closeTool, play: func(t *testing.T, o *office) {
			t.Helper()
			o.first(t, closeTool)
			o.says(t, 1, "and skip the archived ones")
		}},
		"without the first call": {tool: closeTool, play: func(t *testing.T, o *office) {
			t.Helper()
			o.asks(t, 1, ordersTool, small)
			o.says(t, 1, "yes")
		}},
		"of another order": {tool: closeTool, input: `{"order":"b","confirmed":true}`, play: spoken(closeTool)},
		"of another tool":  {tool: closeTool, play: spoken(archiveTool)},
		"destructive":      {tool: archiveTool, play: spoken(archiveTool)},
		"a rule asks":      {tool: closeTool, play: spoken(closeTool), rules: "  - {name: ask, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n"},
		"signed decisions": {tool: closeTool, play: spoken(closeTool), change: signed},
		"signals are off":  {tool: closeTool, play: spoken(closeTool), change: func(o *office) { o.settings.SetSignals(tenancy.SignalsOff) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			if row.change != nil {
				row.change(o)
			}
			if row.rules != "" {
				o.govern(t, row.rules)
			}
			row.play(t, o)
			if row.input == "" {
				row.input = confirmed
			}
			c := o.asks(t, 3, row.tool, row.input)
			require.Equal(t, jig.CallWaiting, c.Status)
			require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
			require.Empty(t, o.ran)
		})
	}
}

// spoken makes the call without its flag, and then adds a person's message.
func spoken(tool string) func(*testing.T, *office) {
	return func(t *testing.T, o *office) {
		t.Helper()
		o.first(t, tool)
		o.asks(t, 2, ordersTool, small)
		o.says(t, 2, "yes")
	}
}

func TestConfirmation_DeniedCallIsNotConfirmed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: no, when: 'tool.name == \"shop.close\"', verdict: deny}\n")
	require.Equal(t, jig.CallDenied, o.asks(t, 1, closeTool, unconfirmed).Status, "nobody is asked about a call that policy denies")
	o.says(t, 1, "yes")
	require.Equal(t, jig.CallDenied, o.asks(t, 2, closeTool, confirmed).Status)
}

// A confirmation in a message is checked again when the call runs. It no longer counts if the tenant requires proof by then.
func TestConfirmation_IsRecomputed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.first(t, closeTool)
	o.asks(t, 2, ordersTool, small)
	o.says(t, 2, "yes")
	c := o.asks(t, 3, closeTool, confirmed)
	require.Equal(t, jig.CallReserved, c.Status)
	o.settings.SetSignals(tenancy.SignalsSigned) // a claim in a message no longer counts
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Empty(t, o.ran)
}
