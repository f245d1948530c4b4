package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/undoing"
)

// implementationUndo is the implementation of the tool that undoes sessions. Its calls run like compositions, without a document.
const implementationUndo = "undo"

// maxUndone bounds the calls of a session that can be undone together.
const maxUndone = 1_000

// undoInput is the input of the tool that undoes sessions.
type undoInput struct {
	SessionID string   `json:"session_id"`
	Calls     []string `json:"calls"`
}

// undoable finds the calls that the composition's call undoes.
func (c *composition) undoable(ctx context.Context) ([]undoing.Item, error) {
	var in undoInput
	if err := json.Unmarshal(c.root.Input, &in); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", c.root.ID, err)
	}
	u := undoList{Activities: c.Activities, tenant: c.root.Tenant, only: in.Calls, taken: map[string]bool{}}
	known, err := c.tools(ctx, u.tenant)
	if err != nil {
		return nil, err
	}
	for _, tool := range known {
		if tool.Undo != "" {
			u.undoing = append(u.undoing, tool.Name)
		}
	}
	session := jig.SessionID(u.tenant, in.SessionID)
	if err := u.add(ctx, session, ""); err != nil {
		return nil, err
	}
	for _, id := range in.Calls {
		if !slices.ContainsFunc(u.items, func(i undoing.Item) bool { return within(i.Of.Call, id) || i.Of.SessionID != session }) {
			return nil, jig.Errorf(jig.CodeNotFound, "call %s of session %s has changed nothing that could be undone", id, session).WithField("/calls").
				WithHint("`jig status " + session + "` lists the calls")
		}
	}
	for _, other := range u.sessions {
		if err := c.Store.Repeats(ctx, u.tenant, c.root.SessionID, other); err != nil {
			return nil, err
		}
	}
	return u.items, nil
}

// within reports whether a call is the given one, or was made inside it.
func within(call, of string) bool { return call == of || strings.HasPrefix(call, of+"/") }

// undoList collects the calls to undo, the newest first.
type undoList struct {
	*Activities
	tenant string
	// only limits the list to these calls of the first session; none means all.
	only []string
	// undoing names the tools that declare an undo.
	undoing []string
	taken   map[string]bool
	items   []undoing.Item
	// sessions are those whose calls are looked at. Whoever has asked for a call of one has asked for the call that undoes it.
	sessions []string
}

// add adds the calls of a session that has ended, and of the sessions that answer its calls. prefix begins the paths of the calls that undo them.
// Compositions whose contract names no undo tool are undone call by call.
func (u *undoList) add(ctx context.Context, session, prefix string) error {
	s, err := u.Store.Session(ctx, u.tenant, session)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return jig.Errorf(jig.CodeNotFound, "there is no session %q", session).WithField("/session_id")
	}
	if err != nil {
		return err
	}
	if !s.Status.Final() {
		return jig.Errorf(jig.CodeConflict, "session %s has not ended (%s)", session, s.Status).WithField("/session_id").
			WithHint("wait until it ends, or cancel it")
	}
	u.sessions = append(u.sessions, session)
	if s.ReadUntrusted {
		entity.MarkRead(ctx)
	}
	written, err := u.Store.Written(ctx, u.tenant, session, u.undoing, maxUndone+1)
	if err != nil {
		return err
	}
	if len(written) > maxUndone {
		return jig.Errorf(jig.CodeInvalidInput, "session %s has more than %d calls that changed something", session, maxUndone).WithField("/calls").
			WithHint("undo some of them at a time")
	}
	notes, err := u.notes(ctx, written)
	if err != nil {
		return err
	}
	if written, err = u.withNoted(ctx, session, written, notes); err != nil {
		return err
	}
	var whole []string
	for _, w := range written {
		if slices.ContainsFunc(written, func(other ledger.Written) bool { return undoOf(other.Call.ID) == w.Call.ID }) {
			continue // the composition has undone a step
		}
		if slices.ContainsFunc(whole, func(id string) bool { return within(w.Call.ID, id) }) || prefix == "" && !u.near(w.Call.ID) {
			continue
		}
		covers, err := u.addCall(ctx, w, notes[w.Call.ID], prefix)
		if err != nil {
			return err
		}
		if covers {
			whole = append(whole, w.Call.ID)
		}
	}
	return nil
}

// near reports whether a call of the first session is chosen, or was made inside a chosen call, or the other way round.
func (u *undoList) near(id string) bool {
	return u.chosen(id) || slices.ContainsFunc(u.only, func(only string) bool { return within(only, id) })
}

// chosen reports whether a call of the first session is to be undone.
func (u *undoList) chosen(id string) bool {
	return len(u.only) == 0 || slices.ContainsFunc(u.only, func(only string) bool { return within(id, only) })
}

// addCall adds a call, unless it changed nothing by itself. covers reports that its undo tool reverts the calls inside it, too.
func (u *undoList) addCall(ctx context.Context, w ledger.Written, note plan.UndoNote, prefix string) (covers bool, err error) {
	call := w.Call
	tool, known, err := u.tool(ctx, u.tenant, call.Tool, call.Version)
	if err != nil {
		return false, err
	}
	chosen := prefix != "" || u.chosen(call.ID)
	whole := known && childOf(tool) != ""
	switch {
	case whole && call.Child != "" && childOf(tool) == ChildAgent:
		if chosen {
			err = u.add(ctx, call.Child, prefix+call.ID+"_")
		}
		return false, err
	case !chosen, w.Undone, note.Call == "" && tool.Undo == "" && (whole || !call.Write):
		return false, nil
	}
	item := undoing.Item{Of: ledger.CallName{SessionID: call.SessionID, Call: call.ID}, Tool: call.Tool, Before: w.Before}
	item.Path = strings.ReplaceAll(prefix+call.ID, "/", "_") + ".undo"
	for n := 2; u.taken[item.Path]; n++ {
		item.Path = fmt.Sprintf("%s-%d.undo", strings.TrimSuffix(item.Path, ".undo"), n)
	}
	u.taken[item.Path] = true
	if item.Before == nil {
		err = u.how(ctx, &item, call, tool, note)
	}
	u.items = append(u.items, item)
	return whole && item.By != "", err
}

// how says how a call is undone, or why it cannot be undone: by the undo of the composition's step that made it, or else by the tool that the
// contract of its tool names.
func (u *undoList) how(ctx context.Context, item *undoing.Item, call jig.Call, tool jig.Tool, note plan.UndoNote) error {
	switch {
	case call.Status != jig.CallSucceeded:
		item.Error = jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows whether it happened")
		return nil
	case strings.HasSuffix(call.ID, ".undo"):
		item.Error = jig.Errorf(jig.CodeNotPermitted, "it undoes another call")
		return nil
	}
	item.By, item.Input, item.Named, item.Error = note.Tool, note.Input, note.Named, note.Error
	switch {
	case item.Error != nil:
		item.By = ""
		return nil //nolint:nilerr // the list says what cannot be undone
	case item.By == "" && tool.Undo == "":
		item.Error = jig.Errorf(jig.CodeToolNotFound, "%s declares no undo", call.Tool)
		return nil
	case item.By != "":
		return nil
	}
	item.By = tool.Undo
	if item.Input != nil {
		return nil
	}
	result, err := u.dataOf(ctx, call)
	if err != nil {
		return err
	}
	input, err := u.Expressions.UndoInput(ctx, tool.UndoInput, call.Input, result)
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the error of the context
	}
	if item.Input = input; err != nil {
		item.By, item.Error = "", jig.AsError(err)
	}
	return nil
}

// dataOf returns the whole data of a call's result; null if there is none.
func (u *undoList) dataOf(ctx context.Context, call jig.Call) (json.RawMessage, error) {
	if call.ResultArtifact != "" {
		raw, err := u.readWhole(ctx, u.tenant, call.ResultArtifact)
		if err != nil {
			return nil, err
		}
		call.Result = &jig.ToolResult{}
		if err := json.Unmarshal(raw, call.Result); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "reading the result of call %s: %w", call.ID, err)
		}
	}
	if call.Result == nil {
		return json.RawMessage("null"), nil
	}
	return plan.OrNull(call.Result.Data), nil
}

// notesAtOnce is the number of notes that are read together.
const notesAtOnce = 100

// notes returns the notes that the compositions among the calls have kept on how to undo their steps, by the id of the step's call.
func (u *undoList) notes(ctx context.Context, calls []ledger.Written) (map[string]plan.UndoNote, error) {
	notes := map[string]plan.UndoNote{}
	for _, w := range calls {
		tool, _, err := u.tool(ctx, u.tenant, w.Call.Tool, w.Call.Version)
		if err != nil {
			return nil, err
		}
		for from := 0; childOf(tool) == ChildComposition; from += notesAtOnce {
			paths := make([]string, notesAtOnce)
			for i := range paths {
				paths[i] = plan.UndoNotePath(from + i)
			}
			values, err := u.Store.FrameValues(ctx, u.tenant, w.Call.SessionID, w.Call.ID, paths)
			if err != nil {
				return nil, err
			}
			for _, raw := range values {
				var note plan.UndoNote
				if json.Unmarshal(raw, &note) == nil && note.Call != "" {
					notes[w.Call.ID+"/"+note.Call] = note
				}
			}
			if len(values) < notesAtOnce {
				break
			}
		}
	}
	return notes, nil
}

// withNoted adds the calls of steps that say how to undo them, although their tools do not write.
func (u *undoList) withNoted(
	ctx context.Context, session string, written []ledger.Written, notes map[string]plan.UndoNote,
) ([]ledger.Written, error) {
	var ids []string
	for id := range notes {
		if !slices.ContainsFunc(written, func(w ledger.Written) bool { return w.Call.ID == id }) {
			ids = append(ids, id, undoOf(id))
		}
	}
	if len(ids) == 0 {
		return written, nil
	}
	_, calls, err := u.Store.CallsOf(ctx, u.tenant, session, ids)
	if err != nil {
		return nil, err
	}
	succeeded := map[string]bool{}
	for _, call := range calls {
		succeeded[call.ID] = call.Status == jig.CallSucceeded
	}
	for _, call := range calls {
		if _, noted := notes[call.ID]; noted && succeeded[call.ID] {
			written = append(written, ledger.Written{Call: call, Undone: succeeded[undoOf(call.ID)]})
		}
	}
	slices.SortStableFunc(written, func(a, b ledger.Written) int { return endOfCall(b).Compare(endOfCall(a)) })
	return written, nil
}

// undoOf returns the id of the call with which a composition undoes the call of a step.
func undoOf(id string) string {
	if at := strings.LastIndexByte(id, '~'); at > strings.LastIndexByte(id, '/') {
		id = id[:at]
	}
	return id + ".undo"
}

func endOfCall(w ledger.Written) time.Time {
	if w.Call.FinishedAt == nil {
		return time.Time{}
	}
	return *w.Call.FinishedAt
}
