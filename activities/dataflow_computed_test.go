package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// A call with a computed number runs without approval, unless a rule about computed arguments requires one.
func TestDataFlow_RulesSeeComputedArguments(t *testing.T) {
	t.Parallel()
	o := newOffice(t, correspondents)
	o.letsWritesRun(t, "  - {name: computed, when: 'call.computed_arguments == [\"/limit\"]', verdict: ask}")
	o.does(t, 1, "crm.find", `{"name":"bo"}`)
	o.does(t, 2, "page.read", `{"url":"https://offers.example"}`)
	require.Equal(t, jig.CallReserved, o.asks(t, 3, "mail.send", `{"to":"bo@acme.example"}`).Status)
	stopped := o.asks(t, 4, "mail.send", `{"to":"bo@acme.example","limit":4242}`)
	require.Equal(t, jig.CallWaiting, stopped.Status)
	require.Equal(t, []string{"/limit"}, stopped.Flow.ComputedArguments)
	require.Empty(t, stopped.Flow.UntrustedArguments)
}
