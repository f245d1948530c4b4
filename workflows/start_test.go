package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// A session that a rate limit holds back asks again when it should, and asks the model only then. Its deadline ends the wait.
func TestSession_WaitsToBegin(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]struct {
		deadline time.Duration
		want     []string
	}{
		"it begins":             {want: []string{"AwaitStart after 1m0s", "Think after 1m0s"}},
		"its deadline is later": {deadline: time.Hour, want: []string{"AwaitStart after 1m0s", "Think after 1m0s"}},
		"its deadline passes":   {deadline: 30 * time.Second, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSolo(t, soloCall())
			began := s.Now()
			var got []string
			note := func(activity string) func(mock.Arguments) {
				return func(mock.Arguments) {
					got = append(got, activity+" after "+s.Now().Sub(began).Round(time.Second).String())
				}
			}
			opened := activities.Opened{Agent: "solo", Pass: 1, Revision: protocol.Revision, Limits: jig.Limits{}.WithDefaults(), Wait: time.Minute}
			if play.deadline > 0 {
				opened.Deadline = began.Add(play.deadline)
			}
			s.OnActivity("Open", mock.Anything, mock.Anything).Return(opened, nil)
			s.OnActivity("AwaitStart", mock.Anything, mock.Anything).Run(note("AwaitStart")).Return(nil)
			s.OnActivity("Think", mock.Anything, mock.Anything).Run(note("Think")).Return(
				activities.Thought{Ended: &activities.Settled{Status: jig.StatusCompleted}}, nil)
			s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
			require.True(t, s.IsWorkflowCompleted())
			require.Equal(t, play.want == nil, s.GetWorkflowError() != nil)
			require.Equal(t, play.want, got)
		})
	}
}
