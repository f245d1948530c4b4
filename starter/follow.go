package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// errWaiting ends following because the session waits for a person and --no-wait was given.
var errWaiting = errors.New("the session waits for a person")

// answerMode determines what to do with a call that asks for approval.
type answerMode int

const (
	// answerTell shows the commands that answer the call.
	answerTell answerMode = iota
	// answerAsk asks on the terminal.
	answerAsk
	// answerYes approves the call.
	answerYes
)

func (a *app) answerMode(follow, yes bool) answerMode {
	switch {
	case yes:
		return answerYes
	case follow && a.interactive && !a.json():
		return answerAsk
	default:
		return answerTell
	}
}

// follower follows one session and answers, or shows, the calls that wait in it.
type follower struct {
	*app
	engine engine
	id     string
	mode   answerMode
	noWait bool
	// quiet means that waiting calls are neither answered nor shown.
	quiet bool
	// show is called for each event; nil shows no events. text prints what a model is writing; nil prints nothing of it.
	show func(jig.Event) error
	text *liveText
	// out is held while something is printed or asked. children has a channel for each child whose texts are followed, by its id and by
	// the place and id of its call. It is closed when following has ended; below counts the children.
	out      sync.Mutex
	children map[string]chan struct{}
	below    sync.WaitGroup
	// dealt holds the keys of the waiting calls that were already answered or shown.
	handled []string
	// view is the session's status as it was last read.
	view jig.SessionView
	// stale reports that view may lack calls that wait now.
	stale bool
	// worried is the last message that trouble printed; it is empty once the engine has answered.
	lastTrouble string
}

// holding lists the events after which a session may wait for something else than a person.
var holding = []jig.EventType{
	jig.EventStepWaiting, jig.EventToolPaused, jig.EventToolHeld, jig.EventSessionPaused, jig.EventSessionHeld, jig.EventToolCompleted, jig.EventToolFailed,
}

// asking lists the events after which a new call may be waiting.
var asking = []jig.EventType{jig.EventToolNeedsApproval, jig.EventToolOutcomeUnknown, jig.EventToolAsked, jig.EventToolEdited}

// noWaitPoll is the interval at which --no-wait checks whether the session waits for a person.
const noWaitPoll = 2 * time.Second

// follow follows the session until it has ended.
func (f *follower) follow(ctx context.Context, after int64) error {
	o := client.FollowOptions{Tenant: f.flags.tenant, SessionID: f.id, After: after, Text: f.text != nil}
	o.Trouble = func(err error) error {
		f.out.Lock()
		defer f.out.Unlock()
		return f.trouble(err)
	}
	if f.noWait {
		o.Wait = noWaitPoll
	}
	defer f.closeText()
	ctx, cancel := context.WithCancel(ctx)
	f.children = map[string]chan struct{}{}
	defer f.below.Wait()
	defer cancel()
	return f.engine.Follow(ctx, o, func(page client.EventsPage) error {
		f.out.Lock()
		f.lastTrouble = ""
		events := f.live(page)
		f.out.Unlock()
		for _, event := range events {
			f.awaitChild(ctx, "", event)
			if err := f.printLocked(event); err != nil {
				return err
			}
			f.stale = f.stale || slices.Contains(asking, event.Type) || f.noWait && slices.Contains(holding, event.Type)
			f.beginChild(ctx, "", event)
		}
		f.out.Lock()
		defer f.out.Unlock()
		idles := f.noWait && len(page.Events) == 0
		if f.quiet || page.Status.Final() || !f.stale && !idles && page.Status != jig.StatusInputRequired {
			return nil
		}
		return f.handleWaiting(ctx)
	})
}

// live prints the text on a page and returns the events that remain to be printed.
func (f *follower) live(page client.EventsPage) []jig.Event {
	if f.text == nil {
		return page.Events
	}
	if page.Draft != nil {
		f.text.draft(page.Draft)
	}
	return f.text.settle(page.Events)
}

// closeText ends the line of text that is being printed, so that something else can be printed.
func (f *follower) closeText() {
	if f.text != nil {
		f.text.close()
	}
}

func (f *follower) printLocked(event jig.Event) error {
	f.out.Lock()
	defer f.out.Unlock()
	return f.print(event)
}

// print shows an event. Without --follow it shows only pauses, because a person would otherwise wait without knowing for what.
func (f *follower) print(event jig.Event) error {
	f.closeText()
	if f.show != nil {
		return f.show(event)
	}
	if !f.quiet && (event.Type == jig.EventToolPaused || event.Type == jig.EventSessionPaused) {
		f.say("%s", f.eventLine(f.err, event))
	}
	return nil
}

// trouble prints that the engine does not answer, unless it has just printed the same message. It returns nil, because the session is
// durable and following can continue; with --no-wait it returns the error if there is no worker.
func (f *follower) trouble(err error) error {
	e := jig.AsError(err)
	if f.noWait && e.Reason == client.ReasonNoWorker {
		return err
	}
	if f.lastTrouble != e.Message {
		f.lastTrouble = e.Message
		f.closeText()
		f.say("%s %s; %s", f.err.yellow("waiting:"), safeText(e.Message), safeText(cmp.Or(e.Hint, "trying again")))
	}
	return nil
}

// handleWaiting reads the waiting calls and handles the new ones.
func (f *follower) handleWaiting(ctx context.Context) error {
	view, err := f.engine.Status(ctx, f.flags.tenant, f.id)
	if err != nil {
		f.stale = true
		if jig.CodeOf(err).Retryable() {
			return f.trouble(err)
		}
		return err
	}
	f.stale, f.view = false, view
	left := 0
	if len(view.Pending) > 0 {
		f.closeText()
	}
	for _, p := range view.Pending {
		p.SessionID = cmp.Or(p.SessionID, f.id) // it may wait in a child session
		answered, err := f.handle(ctx, p)
		if err != nil {
			return err
		}
		if !answered {
			left++
		}
	}
	if f.noWait && (left > 0 && view.Status == jig.StatusInputRequired || left == len(view.Pending) && view.Idle) {
		f.sayHeld(view)
		return errWaiting
	}
	return nil
}

// sayHeld prints what a session waits for, unless it waits for people alone.
func (a *app) sayHeld(view jig.SessionView) {
	for _, p := range view.Paused {
		a.say("%s %s", a.err.yellow("paused:"), pauseText(p))
	}
	for _, why := range view.Held {
		a.say("%s %s", a.err.yellow("held back:"), oneLine(why, 0))
	}
	for _, c := range view.Calls {
		if !c.Status.Final() && strings.HasPrefix(c.Summary, "waits: ") {
			a.say("%s %s", a.err.yellow(c.Call), oneLine(c.Summary, 0))
		}
	}
	for _, w := range view.Waits {
		a.say("%s", a.err.yellow(oneLine(w.String(), 0)))
		if w.Event != "" {
			a.say("  %s", a.eventCommandFor(cmp.Or(w.SessionID, view.SessionID), w))
		}
	}
}

// eventCommandFor returns the command that sends the event for which a step waits.
func (a *app) eventCommandFor(session string, w jig.Wait) string {
	return a.command("event", session, oneLine(w.Event, 0), "--data", "{}")
}

// decideFailed lets following continue if the session changed while the answer was on its way, or if the error is transient.
func (f *follower) decideFailed(err error) error {
	switch code := jig.CodeOf(err); {
	case code == jig.CodeConflict:
		return nil
	case code.Retryable():
		f.stale = true
		return f.trouble(err)
	default:
		return err
	}
}

func handledKey(p jig.Pending, answered bool) string {
	key := string(p.Kind) + " " + p.SessionID + " " + p.Call + " " + p.Digest
	if answered {
		key += " answered"
	}
	return key
}

func (f *follower) note(p jig.Pending, answered bool) {
	f.handled = append(f.handled, handledKey(p, answered))
}

func (f *follower) handledBefore(p jig.Pending) (answered, handled bool) {
	if slices.Contains(f.handled, handledKey(p, true)) {
		return true, true
	}
	return false, slices.Contains(f.handled, handledKey(p, false))
}

// lastTexts is how long following waits for the last texts of a child whose call has ended.
const lastTexts = 2 * time.Second

// below returns a printer for the texts of a child. It prints whole lines, each with the place of the child, because several sessions may write
// at the same time.
func (l *liveText) below(place string) *liveText {
	var line strings.Builder
	return &liveText{color: l.color, write: func(text string) {
		for piece := range strings.Lines(text) {
			line.WriteString(piece)
			if strings.HasSuffix(piece, "\n") {
				l.close()
				l.write(l.color.dim(place) + " " + line.String())
				line.Reset()
			}
		}
	}}
}

// beginChild begins to follow the texts of the session that an event names as the child of a call. above is the place of the session that has the
// event; it is empty for the session that is followed.
func (f *follower) beginChild(ctx context.Context, above string, e jig.Event) {
	var d eventData
	if f.text == nil || e.Type != jig.EventToolStarted || json.Unmarshal(e.Data, &d) != nil || d.Child == "" {
		return
	}
	f.out.Lock()
	defer f.out.Unlock()
	key := above + " " + e.CallID
	if f.children[d.Child] != nil { // a session is followed once
		return
	}
	done := make(chan struct{})
	f.children[key], f.children[d.Child] = done, done
	f.below.Go(func() {
		defer close(done)
		f.followChild(ctx, strings.TrimSpace(above+" "+oneLine(e.CallID+" → "+d.Child, 0)), d.Child)
	})
}

// awaitChild waits for the last texts of a child if an event ends its call.
func (f *follower) awaitChild(ctx context.Context, above string, e jig.Event) {
	if f.text == nil || e.Type != jig.EventToolCompleted && e.Type != jig.EventToolFailed {
		return
	}
	f.out.Lock()
	done := f.children[above+" "+e.CallID]
	f.out.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(lastTexts):
	case <-ctx.Done():
	}
}

// followChild prints the texts of a child until it has ended. An error ends that: the log of the parent says what became of the child.
func (f *follower) followChild(ctx context.Context, place, id string) {
	text := f.text.below(place)
	options := client.FollowOptions{Tenant: f.flags.tenant, SessionID: id, Text: true}
	err := f.engine.Follow(ctx, options, func(page client.EventsPage) error {
		f.out.Lock()
		if page.Draft != nil {
			text.draft(page.Draft)
		}
		events := text.settle(page.Events)
		f.out.Unlock()
		for _, event := range events {
			f.awaitChild(ctx, place, event)
			if hasModelText(event) {
				f.out.Lock()
				text.close()
				text.write(f.eventLine(text.color, event) + "\n")
				f.out.Unlock()
			}
			f.beginChild(ctx, place, event)
		}
		return nil
	})
	f.out.Lock()
	defer f.out.Unlock()
	text.close()
	if err != nil && ctx.Err() == nil {
		text.write("its texts cannot be followed: " + oneLine(jig.AsError(err).Message, 200) + "\n")
	}
}

// hasModelText reports whether an event has text of the model, or ends the session.
func hasModelText(e jig.Event) bool {
	var d eventData
	said := e.Type == jig.EventMessageAdded && json.Unmarshal(e.Data, &d) == nil && d.Role == "assistant"
	return said || slices.Contains([]jig.EventType{jig.EventSessionCompleted, jig.EventSessionFailed, jig.EventSessionCanceled}, e.Type)
}
