package activities_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

func (o *office) compares(t *testing.T, id string) protocol.Comparison {
	t.Helper()
	found, err := o.Compare(t.Context(), protocol.CompareRequest{Tenant: o.tenant, SessionID: o.session, Call: id})
	require.NoError(t, err)
	return found
}

func (o *office) showsComparison(t *testing.T, id string) *protocol.Comparison {
	t.Helper()
	page, err := o.Show(t.Context(), protocol.ShowRequest{Tenant: o.tenant, SessionID: o.session, Call: id})
	require.NoError(t, err)
	return page.Comparison
}

func TestCompare_SaysWhatHasChanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(t *testing.T, o *office, b *bank)
		status protocol.ComparisonStatus
		detail string
	}{
		"nothing": {func(*testing.T, *office, *bank) {}, protocol.ComparisonSame, ""},
		"the contract": {func(t *testing.T, o *office, b *bank) {
			t.Helper()
			o.extra = []tools.Tool{b.paying(func(c *jig.Tool) { c.Revision++ })}
			o.deploy(t)
		}, protocol.ComparisonContract, "the contract of ledger.pay has changed"},
		"the preview": {func(_ *testing.T, _ *office, b *bank) { b.deposit(500) }, protocol.ComparisonPreview, "\n-1000 - 120\n"},
		"an outage":   {func(_ *testing.T, _ *office, b *bank) { b.fails(refused()) }, protocol.ComparisonUnknown, "connection refused"},
		"a time-out": {
			func(_ *testing.T, _ *office, b *bank) { b.fails(context.DeadlineExceeded) }, protocol.ComparisonUnknown, "not finished",
		},
		"a worker without the tool": {func(t *testing.T, o *office, _ *bank) {
			t.Helper()
			o.extra = nil
			o.deploy(t)
		}, protocol.ComparisonUnknown, "does not know the tool ledger.pay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, b := treasury(t)
			c := o.pays(t, 120)
			before := o.pending(t, c.ID)
			row.change(t, o, b)
			found := o.compares(t, c.ID)
			require.Equal(t, row.status, found.Status)
			require.Contains(t, found.Detail, row.detail)
			require.Equal(t, row.detail == "", found.Detail == "")
			require.False(t, found.At.IsZero())
			require.Equal(t, before, o.pending(t, c.ID), "a comparison changes nothing that people decide about")
			require.Equal(t, c, o.call(t, c.ID))
			require.Equal(t, &found, o.showsComparison(t, c.ID), "the card carries what was found")
		})
	}
}

// However many people open a card, the tool is asked for its preview once a minute.
func TestCompare_OnceAMinute(t *testing.T) {
	t.Parallel()
	var computed atomic.Int32
	counted := tools.New(jig.Tool{Name: "shop.count", Description: "Counts.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}},
		func(_ context.Context, _ jig.Invocation, in payment) (payment, error) { return in, nil },
		tools.WithPreview(func(context.Context, jig.Invocation, payment) (jig.Preview, error) {
			computed.Add(1)
			return jig.Preview{Title: "Counts " + strings.Repeat("more ", int(computed.Load()))}, nil
		}))
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{counted} })
	o.govern(t, "  - {name: ask, when: 'true', verdict: ask}\n")
	c := o.asks(t, 1, "shop.count", `{"cents":1}`)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Nil(t, o.showsComparison(t, c.ID), "nobody has compared it yet")
	computed.Store(1)
	first := o.compares(t, c.ID)
	require.Equal(t, protocol.ComparisonPreview, first.Status)
	for range 3 {
		require.Equal(t, first, o.compares(t, c.ID))
	}
	require.EqualValues(t, 2, computed.Load())

	o.clock += protocol.ComparedFor + time.Second
	require.Nil(t, o.showsComparison(t, c.ID), "it is too old to be shown")
	second := o.compares(t, c.ID)
	require.NotEqual(t, first, second)
	require.EqualValues(t, 3, computed.Load())

	o.clock += protocol.ComparedFor + time.Second
	require.Len(t, together(t, 8, func() protocol.ComparisonStatus { return o.compares(t, c.ID).Status }), 8)
	require.EqualValues(t, 4, computed.Load(), "readers at the same time share one comparison")
}

// together runs do at the same time as often as n says, and returns the results.
func together[T any](t *testing.T, n int, do func() T) []T {
	t.Helper()
	results := make(chan T, n)
	for range n {
		go func() { results <- do() }()
	}
	all := make([]T, n)
	for i := range all {
		all[i] = <-results
	}
	return all
}

func TestCompare_IsOfOneApproval(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	b.deposit(500)
	require.Equal(t, protocol.ComparisonPreview, o.compares(t, c.ID).Status)
	require.Equal(t, jig.DecisionRefused, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Outcome)
	require.Nil(t, o.showsComparison(t, c.ID), "the call asks with what it is now")
	require.Equal(t, protocol.ComparisonSame, o.compares(t, c.ID).Status)

	_, err := o.Compare(t.Context(), protocol.CompareRequest{Tenant: o.tenant, SessionID: o.session, Call: "1.99"})
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(activities.ErrorFrom(err)))
}
