package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// session is the state that a run keeps in memory. It holds the references and states of calls, but never their data.
type session struct {
	callTable
	agent string
	// task is the beginning of what the session was asked to do. It is only shown.
	task string
	// quick reports whether the model is known to answer quickly.
	quick    bool
	limits   jig.Limits
	deadline time.Time
	// wait is how long a rate limit holds the start of the session back; 0 when it does not.
	wait time.Duration
	// pass is the number of the current pass, or of the next one between passes. begun reports whether the prompt of the pass may
	// already have been built; a message that arrives from then on belongs to the next pass.
	pass  int
	begun bool
	// continues reports that another pass follows once the calls of the current one have their results.
	continues bool
	// spoken reports whether a message was added since the session was last settled or ended.
	spoken  bool
	status  jig.Status
	settled activities.Settled
	// closed is the result of a single call once SettleCall has returned.
	closed *protocol.CallResult
	// paused reports that a pause holds back the next pass.
	paused bool
	// leaving is set when the run of a single call continues as new.
	leaving bool

	tools []string
	// more reports whether the pass has open calls besides those in memory.
	more bool
	// opened is set once the store knows the session. Signals are not processed before that.
	opened bool

	inbox   []protocol.Envelope
	hearing bool
	// copies counts the byte-identical signals of a run, so that each gets a key of its own.
	copies map[string]int
	// said counts the byte-identical messages and events of the whole session.
	said map[string]int
	// shown holds the current values of the search attributes.
	shown protocol.Shown
	// showing reports that a timer runs after which shown is brought up to date.
	showing bool
	// frames holds, for each running call that a composition or child session answers, the latest report of the calls that wait for a
	// person there.
	frames []Waiting
	// parent is told which calls of this session wait for people. It is nil if this session does not answer another session's call.
	parent *parent
	// heardAt is the length of the history when the latest update was processed.
	heardAt int
	// stopPass cancels the current pass.
	stopPass workflow.CancelFunc
}

// signalNames returns the names of the signals that jig knows. Signals with other names are refused.
func signalNames() []string {
	return []string{protocol.SignalApprove, protocol.SignalDeny, protocol.SignalReconcile, protocol.SignalMessage, protocol.SignalEvent, protocol.SignalDelegate, protocol.SignalAnswer}
}

// listen registers the handlers for everything that reaches the session from outside: the query, the updates and the signals.
func (s *session) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(ctx, protocol.QueryStatus, s.view, workflow.QueryHandlerOptions{
		Description: "The status of the session, its calls, and the calls that wait for people. It takes no input.",
	}); err != nil {
		return fmt.Errorf("registering the query %s: %w", protocol.QueryStatus, err)
	}
	for _, name := range []string{protocol.UpdateDecide, protocol.UpdateReconcile, protocol.UpdateAnswer} {
		handler := func(ctx workflow.Context, payload converter.RawValue) (protocol.DecideResult, error) {
			return s.update(ctx, name, payload.Payload().GetData())
		}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, name, handler, updateOptions(name)); err != nil {
			return fmt.Errorf("registering the update %s: %w", name, err)
		}
	}
	workflow.GoNamed(ctx, "signals", s.receive)
	workflow.GoNamed(ctx, "handle signals", s.handleSignals)
	workflow.GoNamed(ctx, "settled", s.listenSettled)
	return nil
}

// receive reads the known signals as they arrive.
func (s *session) receive(ctx workflow.Context) {
	selector := workflow.NewSelector(ctx)
	for _, name := range signalNames() {
		selector.AddReceive(signals(ctx, name), func(channel workflow.ReceiveChannel, _ bool) {
			var payload converter.RawValue
			channel.Receive(ctx, &payload)
			s.enqueue(ctx, name, payload.Payload().GetData())
		})
	}
	selector.AddReceive(signals(ctx, signalWaiting), func(channel workflow.ReceiveChannel, _ bool) {
		var waiting Waiting
		channel.Receive(ctx, &waiting)
		s.frameWaits(ctx, waiting)
	})
	for {
		selector.Select(ctx)
	}
}

// frameWaits records which calls wait in a composition or a child session. It ignores reports that are outdated or whose call has already
// finished.
func (s *session) frameWaits(ctx workflow.Context, waiting Waiting) {
	if !s.underWay(waiting.Call) || !s.hears(waiting) {
		return
	}
	waiting.Calls = slices.DeleteFunc(waiting.Calls, forged)
	waiting.Waits = slices.DeleteFunc(waiting.Waits, forgedWait)
	s.frames = slices.DeleteFunc(s.frames, func(f Waiting) bool { return f.Call == waiting.Call || !s.underWay(f.Call) })
	if len(waiting.Calls)+len(waiting.Waits) > 0 {
		s.frames = append(s.frames, waiting)
	}
	s.finishEarly(waiting.Ending)
	s.asks++ // a composition or session that waits for people frees its slot for other calls
	s.show(ctx)
}

// forged reports whether a call in a report names a malformed session id, so that it cannot come from a child session. Anybody who can
// reach Temporal can send a report, and people paste commands that contain the session's id into a shell.
func forged(ref activities.CallRef) bool {
	return ref.Ask != nil && ref.Ask.SessionID != "" && jig.CheckSessionID(ref.Ask.SessionID) != nil
}

// forgedWait reports whether a wait in a report names an event that no document can wait for. The name is part of commands, too.
func forgedWait(w jig.Wait) bool {
	return strings.ContainsFunc(w.Event, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

// finishEarly ends the pass if an approval expired whose terms end the session, that is, if ending is set.
func (s *session) finishEarly(ending jig.ExpiryOutcome) {
	if ending.Strictness() == 0 || s.stopPass == nil {
		return
	}
	s.ending = ending
	s.stopPass()
}

// underWay reports whether the session's own call at the root of the given call id is running. For a call of a nested composition, the
// root is the call that started the outermost composition.
func (s *session) underWay(call string) bool {
	root, _, _ := strings.Cut(call, "/")
	c := s.find(root)
	return c != nil && c.running
}

// composing reports whether anything in the session may wait for an event: a composition that has not ended or, if the session was started
// with a call, that call.
func (s *session) composing() bool {
	open := func(c *call) bool {
		return !c.ref.State.Final() && (s.agent == jig.CallAgent || frames(c.ref.Child) != "")
	}
	return s.agent == jig.CallAgent && len(s.calls) == 0 && !s.status.Final() || slices.ContainsFunc(s.calls, open)
}

// update processes an update and answers it once the decision has taken effect.
func (s *session) update(ctx workflow.Context, name string, payload []byte) (protocol.DecideResult, error) {
	if err := workflow.Await(ctx, func() bool { return s.opened }); err != nil {
		return protocol.DecideResult{}, err //nolint:wrapcheck // a canceled workflow answers with Temporal's own error
	}
	key := protocol.UpdateKey(workflow.GetCurrentUpdateInfo(ctx).ID)
	free, _ := workflow.NewDisconnectedContext(ctx) // like a signal, an update counts even while the session is being canceled
	heard, err := s.handle(free, protocol.Envelope{Name: name, Key: key, Payload: payload})
	s.heardAt = workflow.GetInfo(ctx).GetCurrentHistoryLength()
	return protocol.DecideResult{SessionID: s.ref.SessionID, Decisions: heard.Decisions}, err
}

// countsOf returns the counts with which a run begins.
func countsOf(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return maps.Clone(counts)
}

// maxSaid limits how many different messages and events a session counts across its runs.
const maxSaid = 200

// enqueue puts a signal into the inbox under a key. The key stays the same if the signal is seen again: after a crash, after a reset, or in
// a retried workflow task. A reset of an earlier run delivers the messages and events of later runs to the new run, so those are counted
// across all runs of the session. Other signals are counted per run, because a decision takes effect only once anyway.
func (s *session) enqueue(ctx workflow.Context, name string, payload []byte) {
	sum := sha256.Sum256(payload)
	same := name + ":" + hex.EncodeToString(sum[:12])
	info, kind, copies := workflow.GetInfo(ctx), "signal:", s.copies
	scope := info.OriginalRunID
	if _, counted := s.said[same]; (name == protocol.SignalMessage || name == protocol.SignalEvent) && (counted || len(s.said) < maxSaid) {
		kind, scope, copies = "signal:session:", info.FirstRunID, s.said
	}
	copies[same]++
	key := fmt.Sprintf("%s%s:%s:%d", kind, scope, same, copies[same])
	s.inbox = append(s.inbox, protocol.Envelope{Name: name, Key: key, Payload: activities.AsJSON(payload)})
}

// handleSignals processes the signals of the inbox one at a time, in the order in which they arrived.
func (s *session) handleSignals(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // an accepted decision counts even while the session is being canceled
	for {
		if workflow.Await(ctx, func() bool { return s.opened && len(s.inbox) > 0 }) != nil {
			return
		}
		signal := s.inbox[0]
		s.hearing = true
		if _, err := s.handle(ctx, signal); err != nil {
			workflow.GetLogger(ctx).Error("a signal could not be processed", "name", signal.Name, "error", err.Error())
		}
		s.inbox = s.inbox[1:]
		s.hearing = false
	}
}

// handle applies a signal or an update and wakes the compositions that it affects.
func (s *session) handle(ctx workflow.Context, signal protocol.Envelope) (activities.Handled, error) {
	pass := s.pass
	if !s.begun {
		pass--
	}
	var a *activities.Activities
	var heard activities.Handled
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx, heardWords(signal.Name)), a.Hear, activities.Signal{
		SessionRef: s.ref, Name: signal.Name, Key: signal.Key, Payload: signal.Payload, Pass: pass,
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
		s.forwardEvent(ctx, activities.Handled{Event: true})
	}
	return heard, nil
}

// quiet reports whether no signal or update is being processed or waiting to be.
func (s *session) quiet(ctx workflow.Context) bool {
	return len(s.inbox) == 0 && !s.hearing && workflow.AllHandlersFinished(ctx)
}

// record makes sure that the effects of updates are in the history before the run ends. If an event arrives while the run ends, Temporal
// rejects the end and replays the run from its history. An update that was processed in that same workflow task is not in the history
// yet. It would be lost, although the store has already applied it and the session may have ended because of it.
func (s *session) record(ctx workflow.Context) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	for s.heardAt > 0 && s.heardAt == workflow.GetInfo(ctx).GetCurrentHistoryLength() {
		options := workflow.TimerOptions{Summary: "record the latest decisions before the run ends"}
		_ = workflow.NewTimerWithOptions(free, time.Millisecond, options).Get(free, nil) //nolint:errcheck // a disconnected wait cannot be canceled
		s.settleInbox(ctx)
	}
}

// letOthersRun lets the other coroutines handle the signals that arrived with the event that woke this one. Temporal hands a signal
// directly to the coroutine that waits for it, so the signal is no longer in any channel. If the run ended before that coroutine ran,
// the signal would be lost.
func letOthersRun(ctx workflow.Context) {
	ran := false
	workflow.GoNamed(ctx, "after the others", func(workflow.Context) { ran = true }) // the coroutine that was started last runs last
	_ = workflow.Await(ctx, func() bool { return ran })                              //nolint:errcheck // a disconnected wait cannot be canceled
}

// settleInbox waits until all signals and updates that have arrived are processed.
func (s *session) settleInbox(ctx workflow.Context) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	letOthersRun(free)
	_ = workflow.Await(free, func() bool { return s.quiet(ctx) }) //nolint:errcheck // a disconnected wait cannot be canceled
}

// drain moves the signals that have arrived, under known and unknown names, into the inbox. Nothing may block between drain and the
// end of the run.
func (s *session) drain(ctx workflow.Context) {
	var stale converter.RawValue
	for workflow.GetSignalChannel(ctx, signalWaiting).ReceiveAsync(&stale) { // reports about waiting calls matter to this run only
	}
	for workflow.GetSignalChannel(ctx, protocol.SignalSettled).ReceiveAsync(&stale) { // the next run reads the state of its calls itself
	}
	names := signalNames()
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
			s.enqueue(ctx, name, payload.Payload().GetData())
		}
	}
}

// failure converts the failure of an activity into a non-retryable workflow error that carries its jig.Error. Cancellation is
// returned unchanged.
func failure(err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	e := activities.ErrorFrom(err)
	return temporal.NewNonRetryableApplicationError(e.Message, string(e.Code), nil, protocol.FailureDetails(e)...)
}
