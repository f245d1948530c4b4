package extraction

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// asBefore keeps the earlier outcome of a task if the mode says so, and reports whether it did.
func (r *run) asBefore(ctx context.Context, t *task) (bool, error) {
	before, ok := r.given.Earlier[t.ID]
	if !ok || r.given.Mode == ModeRun || r.given.single == t.number {
		return false, nil
	}
	r.evaluated++
	had := (before.Status == TaskCompleted || before.Status == TaskKept) && before.Provenance != nil && r.fits(t, plan.OrNull(before.Value)) == nil
	if r.given.Mode == ModeRetry {
		if had {
			r.st.marks[t.number] = markKept
		}
		return had, nil
	}
	hash, stays := before.InputHash, before.Status == TaskFailed && before.InputHash != ""
	var known []string
	if had {
		hash, stays, known = before.Provenance.InputHash, true, before.Provenance.Sources
	}
	if !stays {
		return false, nil
	}
	if !t.resultSources {
		ids, problem, err := r.sourcesBefore(ctx, t)
		if problem != nil || err != nil {
			return false, err
		}
		known = ids
	}
	now, err := r.hash(ctx, t, known)
	if err != nil || now != hash {
		return false, err
	}
	if had {
		r.st.marks[t.number] = markKept
		return true, nil
	}
	if before.Error == nil {
		before.Error = jig.Errorf(jig.CodeInternal, "the task failed before")
	}
	r.st.marks[t.number] = markFailed
	return true, r.keepRecord(t, before.Record)
}

// sourcesBefore returns the sources of a task that are known before its call has a result.
func (r *run) sourcesBefore(ctx context.Context, t *task) ([]string, *jig.Error, error) {
	if t.resultSources {
		return nil, nil, nil
	}
	return r.sources(ctx, t, nil, nil, nil)
}

// failed fails a task if there is a problem.
func (r *run) failed(ctx context.Context, t *task, o *openState, problem *jig.Error, err error) error {
	if problem == nil || err != nil {
		return err
	}
	return r.fail(ctx, t, o, problem)
}

// fail ends a task without a value. o is nil if the task made no call.
func (r *run) fail(ctx context.Context, t *task, o *openState, problem *jig.Error) error {
	record := Record{Error: whole(problem)}
	if o != nil {
		record.Attempts = o.Calls
	}
	known, unknown, err := r.sourcesBefore(ctx, t)
	if err != nil {
		return err
	}
	if unknown == nil {
		if record.InputHash, err = r.hash(ctx, t, known); err != nil {
			return err
		}
	}
	r.st.marks[t.number] = markFailed
	r.event(jig.EventTaskFailed, t, o, TaskEvent{Attempts: record.Attempts, Error: plan.Brief(problem)})
	if err := r.ended(t, Earlier{Status: TaskFailed, Record: record}); err != nil {
		return err
	}
	return r.keepRecord(t, record)
}

// whole shortens an error for the task's record and the result. Its limits are higher than those of brief.
func whole(err *jig.Error) *jig.Error {
	e := *err
	e.Message, e.Hint, e.Cause = jig.Cut(e.Message, plan.MaxMessage*4), jig.Cut(e.Hint, plan.MaxMessage*4), nil
	return &e
}

// skip ends a task that does not run.
func (r *run) skip(t *task, m mark, because string) error {
	r.st.marks[t.number] = m
	r.event(jig.EventTaskSkipped, t, nil, TaskEvent{Because: because})
	return r.ended(t, Earlier{Status: TaskSkipped})
}

func (r *run) keepRecord(t *task, record Record) error {
	raw, err := jsontext.Encode(record)
	if err != nil {
		return err
	}
	if record.Error != nil && r.st.Bytes+len(raw) > maxTotal {
		record.Error = plan.Brief(record.Error)
		if raw, err = jsontext.Encode(record); err != nil {
			return err
		}
	}
	r.st.Bytes += len(raw)
	r.Keep(recordPath(t.ID), raw)
	return nil
}

// event writes an event about a task.
func (r *run) event(kind jig.EventType, t *task, o *openState, about TaskEvent) {
	about.EntityID, about.Task, about.Kind = r.given.EntityID, t.ID, t.Kind
	e := jig.Event{Type: kind}
	if o != nil && o.Calls > 0 {
		e.CallID, e.Tool = o.path(t), t.tool
	}
	e.Data, _ = json.Marshal(about) //nolint:errcheck // only texts and numbers
	r.Move.Events = append(r.Move.Events, e)
}

// updated writes an event with the fields that have a new value.
func (r *run) updated(t *task) {
	if len(t.fields) == 0 {
		return
	}
	about := EntityEvent{EntityID: r.given.EntityID, Task: t.ID, Fields: t.fieldNames()}
	e := jig.Event{Type: jig.EventEntityUpdated}
	e.Data, _ = json.Marshal(about) //nolint:errcheck // only texts
	r.Move.Events = append(r.Move.Events, e)
}

func (t *task) fieldNames() []string {
	var out []string
	for _, f := range t.fields {
		out = append(out, f.Name)
	}
	return out
}

// finish sets the result of an extraction that has ended.
func (r *run) finish(ctx context.Context) error {
	var paths []string
	for n, t := range r.plan.tasks {
		switch r.st.marks[n] {
		case markDone:
			paths = append(paths, t.ID, recordPath(t.ID))
		case markFailed, markCanceled:
			paths = append(paths, recordPath(t.ID))
		case markPending, markReady, markOpen, markKept, markLeft, markOut:
		}
	}
	if err := r.LoadValues(ctx, paths); err != nil {
		return err
	}
	out := Result{
		EntityID: r.given.EntityID, Values: map[string]json.RawMessage{}, Provenance: map[string]entity.Provenance{}, Tasks: map[string]TaskResult{},
	}
	for n, t := range r.plan.tasks {
		if !r.given.asked[n] {
			continue
		}
		if err := r.report(&out, t); err != nil {
			return err
		}
		if r.st.marks[n] == markCanceled {
			if err := r.ended(t, Earlier{Status: TaskCanceled}); err != nil {
				return err
			}
		}
	}
	var err error
	if r.Move.Result, err = r.result(out); err != nil {
		return err
	}
	r.Move.Done = true
	if r.At.Canceled && out.Counts.Canceled > 0 {
		r.Move.Result.Success, r.Move.Result.Error = false, jig.Errorf(jig.CodeCanceled, "the extraction was canceled")
	}
	return nil
}

// result returns the result of an extraction.
func (r *run) result(out Result) (jig.ToolResult, error) {
	if r.given.single >= 0 {
		return r.resultOfTask(out)
	}
	data, err := jsontext.Encode(out)
	return jig.ToolResult{Success: true, Data: data, Summary: out.Counts.String()}, err
}

// resultOfTask returns the result of an extraction of a single task. It is a failure if the task failed, or could not run because one that
// it depends on failed. A task that was skipped because of a condition has no value, and that is not a failure.
func (r *run) resultOfTask(out Result) (jig.ToolResult, error) {
	t := r.plan.tasks[r.given.single]
	one := out.Tasks[t.ID]
	if failed, cause := out.failureOf(t.ID); cause != nil {
		e := *cause
		if e.Message = "task " + t.ID + " failed: " + cause.Message; failed != t.ID {
			e.Message = "task " + t.ID + " needs task " + failed + ", which failed: " + cause.Message
		}
		return jig.Failure(&e), nil
	}
	about := TaskOutcome{
		EntityID: out.EntityID, Task: t.ID, Status: one.Status, Because: one.Because, Fields: one.Fields, Value: plan.OrNull(one.Value),
		Provenance: one.Provenance,
	}
	if len(t.fields) > 0 && one.Status == TaskCompleted {
		p := out.Provenance[t.fields[0].Name]
		about.Value, about.Provenance = out.Values[t.fields[0].Name], &p
	}
	data, err := jsontext.Encode(about)
	return jig.ToolResult{Success: true, Data: data, Summary: "task " + t.ID + ": " + string(one.Status)}, err
}

// failureOf returns the task because of whose failure a task has no value, which may be the task itself, and the error of that failure. The
// error is nil if there was no failure.
func (out Result) failureOf(id string) (failed string, cause *jig.Error) {
	for range out.Tasks {
		one := out.Tasks[id]
		if one.Status == TaskFailed || one.Status != TaskSkipped || one.Because == "condition" {
			return id, one.Error
		}
		id = one.Because
	}
	return id, nil
}

// report adds the outcome of a task to the result.
func (r *run) report(out *Result, t *task) error {
	m := r.st.marks[t.number]
	one := TaskResult{Status: m.status(), Fields: t.fieldNames()}
	switch m {
	case markKept:
		one.Record = r.given.Earlier[t.ID].Record
	case markOut:
		one.Because = "condition"
	case markLeft:
		one.Because, _ = r.needs(t)
	case markDone, markFailed, markCanceled, markPending, markReady, markOpen:
		raw, ok := r.Values[recordPath(t.ID)]
		if !ok && m != markCanceled {
			return jig.Errorf(jig.CodeInternal, "the record of the task %s is gone", t.ID)
		}
		if err := json.Unmarshal(plan.OrNull(raw), &one.Record); err != nil {
			return jig.Errorf(jig.CodeInternal, "the record of the task %s: %w", t.ID, err)
		}
	}
	out.Counts.add(one.Status)
	if m.hasValue() {
		value, err := r.rawValue(t.number)
		if err != nil {
			return err
		}
		for _, f := range t.fields {
			out.Values[f.Name], out.Provenance[f.Name] = value, *one.Provenance
		}
		if len(t.fields) > 0 {
			one.Provenance = nil
		} else {
			one.Value = value
		}
	}
	out.Tasks[t.ID] = one
	return nil
}

func (c *Counts) add(status TaskStatus) {
	c.Total++
	switch status {
	case TaskCompleted:
		c.Completed++
	case TaskKept:
		c.Kept++
	case TaskFailed:
		c.Failed++
	case TaskSkipped:
		c.Skipped++
	case TaskCanceled:
		c.Canceled++
	case TaskPending: // never the status of a reported task
	}
}

// String returns the counts as one line for people.
func (c Counts) String() string {
	parts := []string{fmt.Sprintf("%d completed", c.Completed)}
	for _, part := range []struct {
		count int
		word  string
	}{{c.Kept, "kept"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}, {c.Canceled, "canceled"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	tasks := "tasks"
	if c.Total == 1 {
		tasks = "task"
	}
	return fmt.Sprintf("%d %s: %s", c.Total, tasks, strings.Join(parts, ", "))
}
