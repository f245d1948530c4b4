package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

const (
	// callsPerRun is how many calls a run starts before it continues as new within the pass.
	callsPerRun = 100
	// eventsPerRun is the history length, in events, beyond which a run starts no more calls, so that it soon continues as new.
	eventsPerRun = 600
	// eventsAtMost is the same limit for a run that cannot continue as new because one of its compositions or child sessions waits for
	// people.
	eventsAtMost = 4 * eventsPerRun
)

// runCalls runs the calls of the pass until each has its result, or until the history of the run has grown too long. In the second case
// it waits until no call is in flight and returns more = true. Each call is decided and run on its own. If admitted is nil, the calls are
// admitted first.
func (s *session) runCalls(ctx workflow.Context, admitted *activities.Admitted) (more bool, err error) {
	if admitted == nil {
		var a *activities.Activities
		err = workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Admit, activities.AdmitInput{
			PassRef: s.passRef(), Limit: callsPerRun,
		}).Get(ctx, &admitted)
		if err != nil {
			return false, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
	}
	s.take(*admitted)

	expiry := &alarm{}
	started := 0
	for {
		full := s.full(ctx, started)
		if !full {
			started += s.startReady(ctx, s.limits.MaxParallelCalls)
		}
		if s.ending.Strictness() > 0 {
			s.show(ctx)
			s.finishEarly(s.ending)
			return false, s.abandon(ctx)
		}
		over := func() bool { return s.inFlight() == 0 && !s.timerDue(ctx) && (full || s.done()) }
		if over() {
			return full && !s.done() || s.more, nil
		}
		s.show(ctx)
		s.finishEarly(s.ending)
		s.arm(ctx, expiry)
		before := s.progress()
		outgrown := func() bool { return !full && s.inFlight() == 0 && !s.timerDue(ctx) && grown(ctx) }
		if err := workflow.Await(ctx, func() bool { return s.progress() != before || outgrown() || over() }); err != nil {
			return false, s.abandon(ctx)
		}
	}
}

// grown reports whether the history of the run is so long that the next run should take over.
func grown(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetCurrentHistoryLength() > eventsPerRun
}

// take adds the admitted calls in the order in which they were requested.
func (s *session) take(admitted activities.Admitted) {
	s.more = admitted.More
	for _, ref := range admitted.Calls {
		if s.find(ref.ID) == nil {
			s.add(s.decided(ref))
		}
	}
}

func (s *session) add(ref activities.CallRef) {
	s.calls = append(s.calls, &call{ref: ref})
	if i, found := slices.BinarySearch(s.tools, ref.Tool); !found {
		s.tools = slices.Insert(s.tools, i, ref.Tool)
	}
}

// apply records how a decision changed the calls of the pass. An approved call that is not in memory yet is added at once.
func (s *session) apply(heard activities.Handled) {
	s.note(heard.Decisions)
	for _, ref := range heard.Calls {
		if pass, _, path, err := jig.ParseCallID(ref.ID); err != nil || path != "" || pass != s.pass || !s.begun {
			continue
		}
		if c := s.find(ref.ID); c == nil {
			s.add(ref)
		} else if !c.running && !c.ref.State.Final() {
			s.replace(c, ref)
		}
	}
}
