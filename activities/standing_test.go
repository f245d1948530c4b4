package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// The state of a call that waits includes the open question.
func TestStanding_NamesTheOpenQuestion(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	in := activities.RunInput{SessionRef: o.ref(), Call: c.ID}
	ran, err := o.Standing(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, ran.State)
	require.Equal(t, c.Digest, ran.Ask.Digest)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "deny", jig.Decision{Call: c.ID, By: "fay"}).Outcome)
	ran, err = o.Standing(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, jig.CallDenied, ran.State)
	require.Nil(t, ran.Ask)
}
