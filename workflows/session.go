package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// session is what a run keeps in memory: references and states, never data.
type session struct {
	board
	agent    string
	limits   jig.Limits
	deadline time.Time
	// pass is the number of the pass under way, or of the one about to begin; begun says that its prompt may have been
	// built, so that a message that arrives now is for the pass after it.
	pass  int
	begun bool
	// spoken says that a message was added since the session was last settled.
	spoken  bool
	status  jig.Status
	settled activities.Settled
	// settlesWithCall says that a single call is told of when it is settled; closed is what it came to, once that is known.
	settlesWithCall bool
	closed          *CallResult

	tools []string
	// more says that the pass has open calls beyond those in hand.
	more bool
	// opened is set once the store knows the session; letters wait for it.
	opened bool

	inbox   []Envelope
	hearing bool
	// copies counts the signals of a run that are alike to the byte, so that each has a key of its own.
	copies map[string]int
	// shown is what the search attributes say.
	shown attributes
	// frames are what the compositions and sessions that answer calls under way wait for people with.
	frames []Waiting
	// reported is the sequence number of the latest word about each of these calls.
	reported map[string]int64
	// parent is told what this session waits for; nil when no call of another session waits for this one.
	parent *parent
	// heardAt is the length of the history when the latest update was heard.
	heardAt int
	// stopPass ends the pass under way.
	stopPass workflow.CancelFunc
}

type attributes struct {
	status  jig.Status
	pending int
	pass    int
	tools   int
}

// letters are the signals that jig knows; others are refused by name.
func letters() []string {
	return []string{SignalApprove, SignalDeny, SignalReconcile, SignalMessage, SignalEvent, SignalDelegate, SignalAnswer}
}

// listen registers everything that can reach the session from outside: the query, the updates, and the signals.
func (s *session) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, QueryStatus, s.view); err != nil {
		return fmt.Errorf("registering the query %s: %w", QueryStatus, err)
	}
	for _, name := range []string{UpdateDecide, UpdateReconcile, UpdateAnswer} {
		handler := func(ctx workflow.Context, payload converter.RawValue) (DecideResult, error) {
			return s.update(ctx, name, payload.Payload().GetData())
		}
		if err := workflow.SetUpdateHandler(ctx, name, handler); err != nil {
			return fmt.Errorf("registering the update %s: %w", name, err)
		}
	}
	workflow.GoNamed(ctx, "signals", s.receive)
	workflow.GoNamed(ctx, "mailroom", s.mailroom)
	workflow.GoNamed(ctx, "settled", s.listenSettled)
	return nil
}

// receive takes the signals that jig knows as they arrive.
func (s *session) receive(ctx workflow.Context) {
	selector := workflow.NewSelector(ctx)
	for _, name := range letters() {
		selector.AddReceive(workflow.GetSignalChannel(ctx, name), func(channel workflow.ReceiveChannel, _ bool) {
			var payload converter.RawValue
			channel.Receive(ctx, &payload)
			s.post(ctx, name, payload.Payload().GetData())
		})
	}
	selector.AddReceive(workflow.GetSignalChannel(ctx, signalWaiting), func(channel workflow.ReceiveChannel, _ bool) {
		var waiting Waiting
		channel.Receive(ctx, &waiting)
		s.frameWaits(ctx, waiting)
	})
	for {
		selector.Select(ctx)
	}
}

// frameWaits notes what a composition, or a session that answers a call, waits for. Word from one whose call is over came too late.
func (s *session) frameWaits(ctx workflow.Context, waiting Waiting) {
	if !s.underWay(waiting.Call) || s.outdated(ctx, waiting) {
		return
	}
	s.frames = slices.DeleteFunc(s.frames, func(f Waiting) bool { return f.Call == waiting.Call || !s.underWay(f.Call) })
	if len(waiting.Calls) > 0 {
		s.frames = append(s.frames, waiting)
	}
	s.finishEarly(waiting.Ending)
	s.asks++ // one that waits for people makes room for other calls
	s.show(ctx)
}

// outdated reports whether later word about a call came first, and otherwise remembers this one.
func (s *session) outdated(ctx workflow.Context, waiting Waiting) bool {
	if waiting.Seq != 0 && waiting.Seq <= s.reported[waiting.Call] &&
		workflow.GetVersion(ctx, changeTellParent, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return true
	}
	if s.reported == nil {
		s.reported = map[string]int64{}
	}
	s.reported[waiting.Call] = waiting.Seq
	return false
}

// finishEarly ends the session because an approval expired that says so.
func (s *session) finishEarly(ending jig.ExpiryOutcome) {
	if ending.Strictness() == 0 || s.stopPass == nil {
		return
	}
	s.ending = ending
	s.stopPass()
}

// underWay reports whether the call that a composition belongs to, be it through others, is running.
func (s *session) underWay(call string) bool {
	root, _, _ := strings.Cut(call, "/")
	c := s.find(root)
	return c != nil && c.running
}

// composing reports whether a composition is under way.
func (s *session) composing() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.running && frames(c.ref.Child) != "" })
}

// update answers a decision when it has been taken.
func (s *session) update(ctx workflow.Context, name string, payload []byte) (DecideResult, error) {
	if err := workflow.Await(ctx, func() bool { return s.opened }); err != nil {
		return DecideResult{}, err //nolint:wrapcheck // a cancelled workflow answers with Temporal's own error
	}
	key := "update:" + workflow.GetCurrentUpdateInfo(ctx).ID
	free, _ := workflow.NewDisconnectedContext(ctx) // as a signal's, it counts even while the session is being cancelled
	heard, err := s.hear(free, Envelope{Name: name, Key: key, Payload: payload})
	s.heardAt = workflow.GetInfo(ctx).GetCurrentHistoryLength()
	return DecideResult{SessionID: s.ref.SessionID, Decisions: heard.Decisions}, err
}

// post puts a signal into the inbox under a key that is the same whenever this signal is seen again: after a crash, a
// reset, a retried task.
func (s *session) post(ctx workflow.Context, name string, payload []byte) {
	sum := sha256.Sum256(payload)
	same := name + ":" + hex.EncodeToString(sum[:12])
	s.copies[same]++
	key := fmt.Sprintf("signal:%s:%s:%d", workflow.GetInfo(ctx).OriginalRunID, same, s.copies[same])
	s.inbox = append(s.inbox, Envelope{Name: name, Key: key, Payload: activities.AsJSON(payload)})
}

// mailroom takes the letters one after another, in the order in which they came.
func (s *session) mailroom(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // an accepted decision counts even while the session is being cancelled
	for {
		if workflow.Await(ctx, func() bool { return s.opened && len(s.inbox) > 0 }) != nil {
			return
		}
		letter := s.inbox[0]
		s.hearing = true
		if _, err := s.hear(ctx, letter); err != nil {
			workflow.GetLogger(ctx).Error("a signal could not be processed", "name", letter.Name, "error", err.Error())
		}
		s.inbox = s.inbox[1:]
		s.hearing = false
	}
}

// hear lets a letter take effect, and wakes the calls that it concerns.
func (s *session) hear(ctx workflow.Context, letter Envelope) (activities.Heard, error) {
	pass := s.pass
	if !s.begun {
		pass--
	}
	var a *activities.Activities
	var heard activities.Heard
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Hear, activities.Letter{
		SessionRef: s.ref, Name: letter.Name, Key: letter.Key, Payload: letter.Payload, Pass: pass,
		Composing: s.composing(),
	}).Get(ctx, &heard)
	if err != nil {
		return heard, failure(err)
	}
	s.spoken = s.spoken || heard.Message
	s.apply(heard)
	for _, call := range heard.Frames {
		wake(ctx, s.ref.SessionID, call, heard)
	}
	if heard.Event {
		s.passOn(ctx, activities.Heard{Event: true})
	}
	return heard, nil
}

// quiet reports whether nothing from outside is being processed.
func (s *session) quiet(ctx workflow.Context) bool {
	return len(s.inbox) == 0 && !s.hearing && workflow.AllHandlersFinished(ctx)
}

// record makes sure that what updates did is in the history before the run ends. A run that cannot end, because something
// arrived at that moment, is worked out anew from its history: an update that was heard in the same workflow task would be
// lost, with the end of the session that it had brought about in the store.
func (s *session) record(ctx workflow.Context) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	for s.heardAt > 0 && s.heardAt == workflow.GetInfo(ctx).GetCurrentHistoryLength() {
		options := workflow.TimerOptions{Summary: "what was decided is written down before the run ends"}
		_ = workflow.NewTimerWithOptions(free, time.Millisecond, options).Get(free, nil) //nolint:errcheck // a disconnected wait cannot be cancelled
		s.settleMail(ctx)
	}
}

// letOthersRun lets every other coroutine take what came with the event that woke this one. A signal that a coroutine waits for is
// handed to it at once and is in no channel any more: who ends the run before that coroutine ran would lose the signal.
func letOthersRun(ctx workflow.Context) {
	ran := false
	workflow.GoNamed(ctx, "after the others", func(workflow.Context) { ran = true }) // the latest coroutine runs last
	_ = workflow.Await(ctx, func() bool { return ran })                              //nolint:errcheck // as below
}

// settleMail waits until everything that has arrived is processed.
func (s *session) settleMail(ctx workflow.Context) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	letOthersRun(free)
	_ = workflow.Await(free, func() bool { return s.quiet(ctx) }) //nolint:errcheck // a disconnected wait cannot be cancelled
}

// drain takes the signals that arrived meanwhile, known and unknown names. Nothing may block between it and the end of the run.
func (s *session) drain(ctx workflow.Context) {
	var stale converter.RawValue
	for workflow.GetSignalChannel(ctx, signalWaiting).ReceiveAsync(&stale) { // what was waited for is of this run alone
	}
	for workflow.GetSignalChannel(ctx, SignalSettled).ReceiveAsync(&stale) { // the next run reads how its calls stand
	}
	names := letters()
	unknown := workflow.GetUnhandledSignalNames(ctx)
	slices.Sort(unknown)
	for _, name := range unknown {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		channel := workflow.GetSignalChannel(ctx, name)
		for {
			var payload converter.RawValue
			if !channel.ReceiveAsync(&payload) {
				break
			}
			s.post(ctx, name, payload.Payload().GetData())
		}
	}
}

// failure is the jig.Error of an activity's failure, as a workflow error that nobody retries.
func failure(err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	e := activities.ErrorFrom(err)
	return temporal.NewNonRetryableApplicationError(e.Message, string(e.Code), nil, e)
}
