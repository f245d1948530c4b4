package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// A session that a rate limit holds back asks again when it should, and asks the model only then. If its turn does not come, an activity goes on
// asking. Its deadline ends the wait.
func TestSession_WaitsToBegin(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]struct {
		deadline time.Duration
		answers  []time.Duration
		want     []string
	}{
		"it begins":              {want: []string{"StartsIn after 1m0s", "Think after 1m0s"}},
		"others begin before it": {answers: []time.Duration{time.Second, time.Minute}, want: []string{"StartsIn after 1m0s", "StartsIn after 1m1s", "StartsIn after 2m1s", "Think after 2m1s"}},
		"it waits for long": {answers: slices.Repeat([]time.Duration{time.Minute}, 20), want: []string{
			"StartsIn after 1m0s", "StartsIn after 2m0s", "StartsIn after 3m0s", "StartsIn after 4m0s", "StartsIn after 5m0s", "StartsIn after 6m0s",
			"StartsIn after 7m0s", "StartsIn after 8m0s", "StartsIn after 9m0s", "StartsIn after 10m0s", "AwaitStart after 10m0s", "Think after 10m0s",
		}},
		"its deadline is later": {deadline: time.Hour, want: []string{"StartsIn after 1m0s", "Think after 1m0s"}},
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
			opened := activities.Opened{Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults(), Wait: time.Minute}
			if play.deadline > 0 {
				opened.Deadline = began.Add(play.deadline)
			}
			answers := play.answers
			s.OnActivity("Open", mock.Anything, mock.Anything).Return(opened, nil)
			s.OnActivity("StartsIn", mock.Anything, mock.Anything).Run(note("StartsIn")).Return(func(context.Context, protocol.SessionRef) (time.Duration, error) {
				if len(answers) == 0 {
					return 0, nil
				}
				wait := answers[0]
				answers = answers[1:]
				return wait, nil
			})
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
