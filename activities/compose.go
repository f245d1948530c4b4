package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/undoing"
	"github.com/jig-run/jig/internal/protocol"
)

// ComposeInput asks to advance a composition as far as possible.
type ComposeInput struct {
	protocol.SessionRef
	// Call is the call that the composition answers.
	Call string `json:"call"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
	// Known are the open calls that the workflow knows.
	Known []string `json:"known,omitempty"`
	// Cancel is set once the run was canceled. Open calls are ended and finished work is undone.
	Cancel bool `json:"cancel,omitempty"`
	// noCalls prevents moves that ask for calls, because there is no workflow to run the calls.
	noCalls bool
}

// Composed is the state of a composition after Compose.
type Composed struct {
	// Calls are open calls that the workflow does not know yet.
	Calls []CallRef `json:"calls,omitempty"`
	// Cancel are calls that are no longer needed: the workflow cancels those that are running. Stop are calls whose outcome still
	// matters: the workflow cancels them if they are running, and starts them otherwise to learn how they ended.
	Cancel []string `json:"cancel,omitempty"`
	Stop   []string `json:"stop,omitempty"`
	// Wake is when to call Compose again even if nothing has happened.
	Wake time.Time `json:"wake,omitzero"`
	// Waits are the steps that wait for events or times, by their call ids.
	Waits []jig.Wait `json:"waits,omitempty"`
	// Stuck reports that the composition has not begun and does so only when a person acts.
	Stuck bool `json:"stuck,omitempty"`
	// Steps are the paths of the running steps, for display. Progress is the progress of an extraction.
	Steps    []string           `json:"steps,omitempty"`
	Progress *protocol.Progress `json:"progress,omitempty"`
	// Done reports whether the composition has ended. If so, Ran is the final state of its call.
	Done bool `json:"done,omitempty"`
	Ran  Ran  `json:"ran,omitzero"`
}

const (
	// movesAtOnce and timeAtOnce limit what one run of Compose does. The next run does the rest.
	movesAtOnce = 500
	timeAtOnce  = 5 * time.Second
)

// Compose advances a composition as far as possible without waiting. It works out the next move, admits the calls that the move
// asks for, stores both in one transaction, and repeats this until calls are open or nothing is left to do. A second run, even one
// on another worker at the same time, continues from what was stored.
func (a *Activities) Compose(ctx context.Context, in ComposeInput) (Composed, error) {
	taint := &entity.Taint{}
	ctx = entity.WithTaint(ctx, taint)
	c, ended, err := a.composition(ctx, in, taint)
	if err == nil && ended == nil {
		ended, err = c.prepare(ctx)
	}
	if err == nil && ended == nil {
		err = c.distrust(ctx)
	}
	if err != nil {
		return Composed{}, temporalError(err)
	}
	if ended != nil && ended.Paused && in.Cancel { // nothing has begun, and nothing will
		return Composed{Done: true, Ran: Ran{State: jig.CallCanceled}}, nil
	}
	if ended != nil && ended.Paused {
		return Composed{Wake: in.Now.Add(max(time.Second, ended.retryDelay())), Stuck: ended.Stuck}, nil
	}
	if ended != nil {
		return Composed{Done: true, Ran: *ended}, nil
	}
	out, err := c.advance(ctx, in)
	return out, temporalError(err)
}

// composition is the state of one run of Compose: a frame and the data for its moves.
type composition struct {
	*Activities
	session jig.Session
	root    jig.Call
	spec    contract
	// extracts reports whether the call fills entities, and fills whether it fills exactly one. begun describes an extraction that has
	// not stored anything yet.
	extracts, fills bool
	begun           *plan.Extraction
	// undoes reports whether the call undoes a session.
	undoes bool
	frame  plan.Frame
	at     plan.Situation
	// matcher finds the grants that cover the composition's calls.
	matcher *grantMatcher
	// taint records whether the entity that it fills can be trusted.
	taint *entity.Taint
	// canceled lists the calls that this run of Compose canceled. A call that is executing stays open until its worker ends it.
	canceled []string
	// fresh are the open calls that this run of Compose admitted, with their approvals.
	fresh ledger.Window
}

// composition loads the frame, or begins it. ended is set if there is nothing to compose: the call has its result, waits for a
// person again, or is held back.
func (a *Activities) composition(ctx context.Context, in ComposeInput, taint *entity.Taint) (c *composition, ended *Ran, err error) {
	session, call, err := a.callOf(ctx, in.SessionRef, in.Call)
	if err != nil {
		return nil, nil, err
	}
	if call.Status.Final() {
		ran := result(call)
		return nil, &ran, nil
	}
	if in.Cancel {
		call.Paused = "" // a pause must not keep a canceled call from ending
	}
	taint.Session = session.ReadUntrusted
	c = &composition{Activities: a, session: session, root: call, matcher: a.newGrantMatcher(session), taint: taint}
	if tool, ok := a.Catalog.Tool(call.Tool); ok && (childOf(tool) == ChildExtraction || tool.Implementation == implementationUndo) {
		c.extracts, c.undoes, c.spec.tool = childOf(tool) == ChildExtraction, tool.Implementation == implementationUndo, tool
	} else if c.spec, err = a.specAt(ctx, in.Tenant, call.Tool, call.Version); err != nil {
		return nil, nil, err
	}
	if call.Fence > 0 { // without an attempt there is no frame
		c.frame, err = a.Store.Frame(ctx, in.Tenant, in.SessionID, in.Call)
	}
	if call.Fence == 0 || jig.CodeOf(err) == jig.CodeNotFound {
		ended, err = c.begin(ctx)
	}
	if err != nil || ended != nil {
		return nil, ended, err
	}
	if c.frame.Untrusted {
		entity.MarkRead(ctx)
	}
	c.fills = c.extracts && c.frame.Kind == DocumentEntityType
	c.at, err = situation(session, call)
	c.at.Now, c.at.Events, c.at.Canceled = in.Now, c.frame.Received, in.Cancel
	return c, nil, err
}

// begin reserves the call, as one attempt that lasts as long as the composition, and stores the frame.
func (c *composition) begin(ctx context.Context) (ended *Ran, err error) {
	reservation, ended, err := c.claimWhole(ctx, c.session, c.root, c.spec.tool)
	if ended != nil || err != nil {
		return ended, err
	}
	frame := plan.Frame{
		Tenant: c.root.Tenant, SessionID: c.root.SessionID, CallID: c.root.ID,
		Kind: DocumentSpec, Name: c.root.Tool, Version: c.root.Version, Fence: reservation.Fence,
	}
	if c.extracts {
		if ended, err := c.beginExtraction(ctx, reservation.Fence); ended != nil || err != nil {
			return ended, err
		}
		if c.begun.Type != "" { // an extraction of many entities runs no document
			frame.Kind, frame.Name, frame.Version, frame.Entity = DocumentEntityType, c.begun.Type, c.begun.Version, c.begun.Entity
		}
	}
	c.frame, err = c.Store.BeginFrame(ctx, frame)
	return nil, err
}

// advance makes moves until calls are open, the composition waits for a time or an event, or it has ended.
func (c *composition) advance(ctx context.Context, in ComposeInput) (Composed, error) {
	var out Composed
	started := c.Now()
	for moves := 0; !c.frame.Done; moves++ {
		if moves >= movesAtOnce || c.Now().Sub(started) > timeAtOnce {
			out.Wake = in.Now
			break
		}
		move, err := c.move(ctx)
		if err == nil {
			err = c.distrust(ctx) // the move may have read sources
		}
		if err != nil {
			return out, err
		}
		if in.noCalls && !move.Done && len(move.Calls) > 0 {
			return out, nil
		}
		final, err := c.keep(ctx, move)
		if jig.CodeOf(err) == jig.CodeConflict { // another run stored a move first: continue from there
			stale := c.frame.Revision
			frame, again := c.Store.Frame(ctx, in.Tenant, in.SessionID, in.Call)
			if again != nil {
				return out, again
			}
			if frame.Revision == stale && !frame.Done {
				return out, err // no other run stored a move: the session has ended
			}
			c.frame, c.at.Events, c.matcher.origins = frame, frame.Received, &origins{Activities: c.Activities}
			if _, again = c.prepare(ctx); again != nil {
				return out, again
			}
			continue
		}
		if c.fills && jig.CodeOf(err) == jig.CodeInvalidInput { // taken together, the values are not valid for the entity
			if err = c.abandon(ctx, nil, jig.Failure(err)); err == nil {
				break
			}
		}
		if err != nil {
			return out, err
		}
		out.Wake, out.Steps, out.Progress, out.Waits = move.Wake, move.Steps, move.Progress, c.waits(move)
		out.Cancel, out.Stop = append(out.Cancel, c.ids(move.Cancel)...), c.ids(move.Stop)
		if !final && !move.Done {
			out.Calls, err = c.unknown(ctx, in, move)
			return out, err
		}
	}
	if !c.frame.Done {
		return out, nil
	}
	ran, err := c.finish(ctx)
	out.Done, out.Ran, out.Calls = true, ran, nil
	return out, err
}

// move works out the next move. If that fails permanently, the composition ends as failed, because no retry would help.
func (c *composition) move(ctx context.Context) (plan.Move, error) {
	facts := &facts{store: c.Store, ref: c.ref(), root: c.root.ID, engine: c.Activities}
	defer c.note(facts)
	var move plan.Move
	var err error
	switch {
	case c.fills:
		facts.sources = func(ctx context.Context) (entity.Sources, error) {
			return c.Extractor.Sources(ctx, c.asCall(), c.spec.body, c.frame.Entity)
		}
		move, err = c.Extractor.Advance(ctx, c.frame.Version, c.spec.body, c.frame.State, facts, c.at)
	case c.extracts:
		facts.brief = c.isExtraction
		move, err = c.Extractor.Advance(ctx, "", nil, c.frame.State, facts, c.at)
	case c.undoes:
		facts.brief = func(string) bool { return true }
		c.session.ReadPrivate = true // the inputs of the calls come from what the other session was given
		move, err = undoing.Advance(ctx, c.frame.State, facts, c.at, c.undoable)
	default:
		move, err = c.Composer.Advance(ctx, c.root.Version, c.spec.body, c.frame.State, facts, c.at)
	}
	if err == nil {
		return move, nil
	}
	if ctx.Err() != nil || jig.CodeOf(err) == jig.CodeUnavailable {
		return plan.Move{}, err
	}
	return plan.Move{State: c.frame.State, Done: true, Result: jig.Failure(err)}, nil
}

// note takes over what the calls have read whose results a move used. The session may have been loaded before they ended.
func (c *composition) note(used *facts) {
	c.session.ReadPrivate = c.session.ReadPrivate || used.private
	c.session.ReadUntrusted = c.session.ReadUntrusted || used.untrusted || len(c.at.Events) > 0
	c.taint.Session = c.session.ReadUntrusted
	c.matcher.session, c.matcher.origins.stale = c.session, true
}

// distrust records at once that an extraction has read an entity that is not trusted, because later runs of Compose do not read it again. The
// call is marked even if its session has read untrusted data before: otherwise its result would be trusted.
func (c *composition) distrust(ctx context.Context) error {
	if !c.taint.Read() || c.root.ReadsUntrusted && c.session.ReadUntrusted {
		return nil
	}
	if err := c.Store.MarkUntrusted(ctx, c.root.Tenant, c.root.SessionID, c.root.ID); err != nil {
		return err
	}
	c.session.ReadUntrusted, c.root.ReadsUntrusted = true, true
	c.note(&facts{})
	return nil
}
