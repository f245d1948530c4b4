// Package undoing reverts what a session has changed: it calls the undo tools of the session's calls, one after another, the newest call first. It
// must not know where the calls are stored, nor which tool undoes which.
package undoing

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

// Item is a call to undo.
type Item struct {
	Of ledger.CallName `json:"of"`
	// Tool is the tool of the call, and Path the path of the call that undoes it.
	Tool string `json:"tool"`
	Path string `json:"path"`
	// By is the tool that undoes it, with its input. Named is that of [plan.Ask].
	By    string          `json:"by,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Named bool            `json:"named,omitempty"`
	// Before is the call that has undone it already. Error says why it cannot be undone.
	Before *ledger.CallName `json:"before,omitempty"`
	Error  *jig.Error       `json:"error,omitempty"`
}

// Report is the data of the result.
type Report struct {
	// Undone and NotUndone list the calls in the order in which they were looked at, the newest first. Before lists those that had been undone
	// before.
	Undone    []Line `json:"undone"`
	NotUndone []Line `json:"not_undone"`
	Before    []Line `json:"undone_before"`
}

// Line is a call in a report.
type Line struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	Tool      string `json:"tool"`
	// By is the call that has undone it, "<session>/<call>" if another session has.
	By    string     `json:"by,omitempty"`
	Error *jig.Error `json:"error,omitempty"`
}

// state is what a run keeps between its moves. The items are kept as values.
type state struct {
	plan.Head

	// Items counts the items, and Next is the number of the first that is not settled. Asked reports that its call was requested.
	Items int  `json:"items"`
	Next  int  `json:"next"`
	Asked bool `json:"asked,omitempty"`
}

func itemPath(n int) string { return "#" + strconv.Itoa(n) }

// Advance works out the next move. items finds what is to be undone, once, for the first move. An error means that it cannot be found, that the
// state cannot be read, or that ctx has ended.
func Advance(
	ctx context.Context, raw json.RawMessage, facts plan.Facts, at plan.Situation, items func(context.Context) ([]Item, error),
) (plan.Move, error) {
	r := plan.NewRun("the undoing of a session", facts, at)
	st := state{Head: plan.NewHead("")}
	if err := plan.ReadState(r.Name, raw, &st, func() error { return st.Check("") }); err != nil {
		return plan.Move{}, err
	}
	if len(raw) == 0 {
		found, err := items(ctx)
		if err != nil {
			return plan.Move{}, err
		}
		for i, item := range found {
			kept, err := jsontext.Encode(item)
			if err != nil {
				return plan.Move{}, err
			}
			r.Keep(itemPath(i), kept)
		}
		st.Items = len(found)
	}
	over, err := st.next(ctx, &r)
	if err == nil && over {
		err = st.finish(ctx, &r)
	}
	if err != nil {
		return plan.Move{}, err
	}
	r.Move.State, err = jsontext.Encode(st)
	return r.Move, err
}

// next requests the next call, or waits for the one that was requested. over reports that no item is left, or that the run was canceled.
func (st *state) next(ctx context.Context, r *plan.Run) (over bool, err error) {
	for ; st.Next < st.Items; st.Next, st.Asked = st.Next+1, false {
		item, err := itemAt(ctx, r, st.Next)
		if err != nil {
			return false, err
		}
		switch {
		case item.By == "":
			continue
		case !st.Asked && r.At.Canceled:
			return true, nil
		case !st.Asked:
			st.Asked = true
			r.Ask(plan.Ask{Path: item.Path, Tool: item.By, Input: item.Input, Named: item.Named, Reverts: &item.Of})
			r.Show(item.Path)
			return false, nil
		}
		if err := r.LoadRequested(ctx, []string{item.Path}); err != nil {
			return false, err
		}
		if call := r.Calls[item.Path]; !call.Status.Final() {
			r.AwaitCall(item.Path)
			r.Show(item.Path)
			if r.At.Canceled {
				r.Move.Stop = append(r.Move.Stop, item.Path)
			}
			return false, nil
		} else if call.Outcome().Success {
			r.Move.Events = append(r.Move.Events, jig.Event{Type: jig.EventToolUndone, CallID: item.Path, Tool: item.Tool})
		}
	}
	return true, nil
}

func itemAt(ctx context.Context, r *plan.Run, n int) (item Item, err error) {
	if err := r.LoadValues(ctx, []string{itemPath(n)}); err != nil {
		return item, err
	}
	if err := json.Unmarshal(r.Values[itemPath(n)], &item); err != nil {
		return item, jig.Errorf(jig.CodeInternal, "the call number %d to undo is gone: %w", n, err)
	}
	return item, nil
}

// finish ends the run with a report. The result is a failure unless everything is undone.
func (st *state) finish(ctx context.Context, r *plan.Run) error {
	report := Report{Undone: []Line{}, NotUndone: []Line{}, Before: []Line{}}
	for n := range st.Items {
		item, err := itemAt(ctx, r, n)
		if err != nil {
			return err
		}
		line := Line{SessionID: item.Of.SessionID, Call: item.Of.Call, Tool: item.Tool, By: item.Path, Error: item.Error}
		switch {
		case item.Before != nil:
			line.By = item.Before.String()
			report.Before = append(report.Before, line)
			continue
		case item.By == "":
			line.By = ""
		case n >= st.Next:
			line.By, line.Error = "", jig.Errorf(jig.CodeCanceled, "the undoing was canceled before")
		default:
			if err := r.LoadRequested(ctx, []string{item.Path}); err != nil {
				return err
			}
			line.Error = r.Calls[item.Path].Outcome().Error
		}
		if line.Error == nil {
			report.Undone = append(report.Undone, line)
			continue
		}
		line.Error = plan.Brief(line.Error)
		report.NotUndone = append(report.NotUndone, line)
	}
	data, err := jsontext.Encode(report)
	r.Move.Done, r.Move.Result = true, report.result(r.At.Canceled)
	r.Move.Result.Data = data
	return err
}

// result returns the result without its data.
func (rep Report) result(canceled bool) jig.ToolResult {
	whole := len(rep.Undone) + len(rep.NotUndone)
	summary := fmt.Sprintf("%d of %d calls undone", len(rep.Undone), whole)
	switch {
	case whole == 0 && len(rep.Before) > 0:
		summary = "everything was undone before"
	case whole == 0:
		summary = "there is nothing to undo"
	}
	if len(rep.NotUndone) == 0 && !canceled {
		return jig.ToolResult{Success: true, Summary: summary, Markdown: rep.text()}
	}
	code := jig.CodeConflict
	if canceled {
		code = jig.CodeCanceled
	}
	failed := jig.Failure(jig.Errorf(code, "%s; %s", summary, jig.Cut(rep.text(), plan.MaxMessage)).WithReason(ReasonNotUndone))
	failed.Summary = summary
	return failed
}

// ReasonNotUndone is the reason of the failure if some calls are not undone.
const ReasonNotUndone = "not_undone"

// text lists the calls for people.
func (rep Report) text() string {
	var lines []string
	for _, l := range rep.NotUndone {
		lines = append(lines, fmt.Sprintf("not undone: %s %s: %s", l.Call, l.Tool, l.Error.Message))
	}
	for _, l := range rep.Undone {
		lines = append(lines, fmt.Sprintf("undone: %s %s", l.Call, l.Tool))
	}
	for _, l := range rep.Before {
		lines = append(lines, fmt.Sprintf("undone before: %s %s by %s", l.Call, l.Tool, l.By))
	}
	return strings.Join(lines, "\n")
}
