package activities_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// review returns what applies now to call 1.1 for somebody.
func (o *office) review(t *testing.T, who string, signs bool) protocol.Review {
	t.Helper()
	page, err := o.Review(t.Context(), protocol.ReviewRequest{
		Tenant: o.tenant, For: who, Signs: signs, Calls: []protocol.WaitingCall{{SessionID: o.session, Call: "1.1"}, {SessionID: o.session, Call: "9.9"}},
	})
	require.NoError(t, err)
	require.Len(t, page.Reviews, 1, "a call that does not wait is left out")
	require.Equal(t, []string{o.session, "1.1"}, []string{page.Reviews[0].SessionID, page.Reviews[0].Call})
	return page.Reviews[0]
}

func TestReview_SaysWhoMayNotDecide(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	rule("approvers: {groups: [finance]}, quorum: 2, not_requester: true")(t, o)
	o.asks(t, 1, refundTool, small)
	require.Empty(t, o.review(t, "fay", false).Refusal)
	require.Equal(t, "ana asked for this call and may not decide it", o.review(t, "ana", false).Refusal)
	require.Equal(t, "eve may not decide this call: it is for group finance", o.review(t, "eve", false).Refusal)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: "1.1", By: "fay"}).Outcome)
	require.Contains(t, o.review(t, "fay", false).Refusal, "fay approved this call already")

	signed(o)
	unsigned := o.review(t, "fay", false)
	require.True(t, unsigned.Unsigned)
	require.Contains(t, unsigned.Refusal, "only signed decisions")
	require.Empty(t, o.review(t, "fay", true).Refusal, "an earlier vote without proof does not count any more")
}

func TestReview_SaysWhatPolicyDemandsToday(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.asks(t, 1, refundTool, small)
	require.Empty(t, o.review(t, "fay", false).Today)
	o.govern(t, "  - {name: other, when: 'true', verdict: ask, remind: 1h}\n")
	require.Empty(t, o.review(t, "fay", false).Today, "another policy that demands the same")

	rule("approvers: {groups: [finance]}, quorum: 2")(t, o)
	now := o.review(t, "fay", false)
	require.Equal(t, jig.VerdictAsk, now.Today)
	require.Equal(t, 2, now.Terms.Requirements[0].Quorum)
	require.Equal(t, []string{"finance"}, now.Terms.Requirements[0].Approvers.Groups)

	o.govern(t, "  - {name: no, when: 'true', verdict: deny, reason: never}\n")
	require.Equal(t, jig.VerdictDeny, o.review(t, "fay", false).Today)
	o.govern(t, "  - {name: yes, when: 'true', verdict: run}\n")
	require.Equal(t, jig.VerdictRun, o.review(t, "fay", false).Today)
	o.lose()
	require.Empty(t, o.review(t, "fay", false).Today, "it cannot be judged now")
}

// A call that waits under stricter terms than today's says so too.
func TestReview_ComparesWithTheTermsOfTheCall(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	rule("approvers: {groups: [finance]}")(t, o)
	o.asks(t, 1, refundTool, small)
	require.Empty(t, o.review(t, "fay", false).Today)
	o.govern(t, "  - {name: ask, when: 'true', verdict: ask}\n")
	now := o.review(t, "fay", false)
	require.Equal(t, jig.VerdictAsk, now.Today)
	require.Empty(t, now.Terms.Requirements, "anybody else")
}

func TestReview_RefusesTooManyCalls(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	calls := slices.Repeat([]protocol.WaitingCall{{SessionID: o.session, Call: "1.1"}}, protocol.MaxReviewed+1)
	_, err := o.Review(t.Context(), protocol.ReviewRequest{Tenant: o.tenant, For: "fay", Calls: calls})
	require.ErrorContains(t, err, "51 calls are too many")
}
