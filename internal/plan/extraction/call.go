package extraction

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/toolname"
)

// ask makes the next call of a task: the first one, or one that asks for another answer.
func (r *run) ask(ctx context.Context, t *task, o *openState) (*jig.Error, error) {
	rendered := expr.Rendered{}
	input, problem, err := r.callInput(expr.WithRendered(ctx, rendered), t, o)
	if problem != nil || err != nil {
		return problem, err
	}
	o.Calls++
	r.Ask(plan.Ask{Path: o.path(t), Tool: t.tool, Input: input, Named: t.Kind == entity.TaskAgent, Rendered: rendered})
	return nil, nil // no problem and no error
}

// retry makes the latest call of a task again, with the same input.
func (r *run) retry(t *task, o *openState) {
	failed := o.path(t)
	o.Calls++
	r.Ask(plan.Ask{Path: o.path(t), Tool: t.tool, Named: t.Kind == entity.TaskAgent, RetryOf: failed})
}

// callInput returns the input of the next call, an object of at most 256 KiB.
func (r *run) callInput(ctx context.Context, t *task, o *openState) (json.RawMessage, *jig.Error, error) {
	members := map[string]json.RawMessage{}
	if t.input != nil {
		raw, problem, err := evaluate(ctx, r, t, "input", t.reads.input, plan.Time(o.Since), nil, t.input.Render)
		if problem != nil || err != nil {
			return nil, problem, err
		}
		if json.Unmarshal(raw, &members) != nil || members == nil {
			return nil, r.plan.Fault(t.at("input"), "the input of a call must be an object"), nil
		}
	}
	var err error
	switch {
	case t.Kind == entity.TaskAgent:
		if members, err = toAgent(t, members); err == nil {
			err = r.repair(ctx, t, o, members)
		}
	case t.mends():
		if _, given := members["schema"]; !given && t.asksModel() && t.Value == "" && len(t.OutputSchema) > 0 {
			members["schema"] = t.OutputSchema
		}
		err = r.repair(ctx, t, o, members)
	}
	if err != nil {
		return nil, nil, err
	}
	raw, err := jsontext.Encode(members)
	return raw, r.plan.CheckInput(t.at("input"), raw), err
}

// asksModel reports whether the task puts its prompt to a model directly, rather than calling a document that contains the prompt.
func (t *task) asksModel() bool {
	return t.tool == toolname.PromptDirect || t.tool == toolname.PromptSkill
}

// mends reports whether the task asks once more if an answer does not fit.
func (t *task) mends() bool { return t.Kind == entity.TaskPrompt || t.asksModel() || t.wantsJSON() }

// wantsJSON reports whether an agent's answer must be JSON.
func (t *task) wantsJSON() bool {
	return t.Kind == entity.TaskAgent && t.Value == "" && len(t.OutputSchema) > 0
}

// toAgent makes the input of agent.run. If the task's input has only the members task, input and model, it is already that input; otherwise
// it becomes the agent's own input. The prompt tells the agent which schema its answer must fit.
func toAgent(t *task, members map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	own := false
	for name := range members {
		own = own || name != "task" && name != "input" && name != "model"
	}
	if own {
		raw, err := jsontext.Encode(members)
		if err != nil {
			return nil, err
		}
		members = map[string]json.RawMessage{"input": raw}
	}
	var err error
	if members["agent"], err = jsontext.Encode(t.Use); err != nil || !t.wantsJSON() {
		return members, err
	}
	return members, extend(members, "task", plan.InJSON(t.OutputSchema))
}

// maxQuoted is the number of bytes of a rejected answer that are shown to the model again.
const maxQuoted = 16 << 10

// repair tells a model what was wrong with its answer. A document with its own prompt receives this as `repair`. An agent starts over in a
// new session without the history of the first one, so it is told not to repeat the changes that the first one made.
func (r *run) repair(ctx context.Context, t *task, o *openState, members map[string]json.RawMessage) error {
	if o.Repairs == 0 {
		return nil
	}
	path := plan.AttemptPath(t.ID, o.Repairs)
	if err := r.LoadRequested(ctx, []string{path}); err != nil {
		return err
	}
	answer, wrong := jig.Cut(string(answerOf(r.Calls[path].Outcome().Data)), maxQuoted), describe(o.Problem)
	again := "Your answer before was:\n" + answer + "\n\nIt was not accepted: " + wrong + "\nAnswer again, and correct this."
	switch {
	case t.Kind == entity.TaskAgent:
		return extend(members, "task", again+" What was changed on the way to that answer stays: do not change it a second time.")
	case t.asksModel():
		return extend(members, "prompt", again)
	}
	raw, err := jsontext.Encode(map[string]string{"answer": answer, "problem": wrong})
	members["repair"] = raw
	return err
}

// describe renders an error as text, including all of its violations.
func describe(e *jig.Error) string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, v := range e.Violations {
		b.WriteString("\n- " + v.Pointer + ": " + v.Message)
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	return b.String()
}

// extend appends a paragraph to a text member of the input. It does not change a member that is not a text; the tool refuses it.
func extend(members map[string]json.RawMessage, name, paragraph string) error {
	if raw, ok := members[name]; ok {
		text, is := textOf(raw)
		if !is {
			return nil
		}
		paragraph = text + "\n\n" + paragraph
	}
	raw, err := jsontext.Encode(paragraph)
	members[name] = raw
	return err
}

// answered handles a call that has ended: the task gets its value, is tried again, or fails.
func (r *run) answered(ctx context.Context, t *task, o *openState, result jig.ToolResult) (over bool, err error) {
	about := usageOf(result.Data)
	o.Tokens += about.tokens
	if !result.Success {
		return r.broke(ctx, t, o, result.Cause())
	}
	value, problem, err := r.valueOf(ctx, t, o, result.Data)
	if err != nil {
		return false, err
	}
	if problem == nil {
		if problem, err = r.accept(ctx, t, o, value, &answer{data: result.Data, model: about.model}); err != nil || problem == nil {
			return problem == nil, err
		}
	}
	if !t.mends() || o.Repairs > 0 || r.At.Canceled {
		return true, r.fail(ctx, t, o, problem)
	}
	o.Repairs, o.Problem = o.Calls, plan.Brief(problem)
	return r.again(ctx, t, o)
}

// broke handles a failed call: the task waits for its next attempt, fails, or is canceled.
func (r *run) broke(ctx context.Context, t *task, o *openState, failure *jig.Error) (over bool, err error) {
	if r.At.Canceled && failure.Code == jig.CodeCanceled {
		r.st.marks[t.number] = markCanceled
		return true, r.keepRecord(t, Record{Attempts: o.Calls})
	}
	o.Failed++
	if failure.Code.Retryable() && r.Calls[o.path(t)].MayRetry() && o.Failed < t.Attempts && !r.At.Canceled {
		pause := plan.Backoff(t.Backoff, max(maxBackoff, t.Backoff), o.Failed)
		o.Until = r.After(max(pause, failure.RetryAfter))
		return false, nil
	}
	if o.Problem != nil {
		e := *o.Problem
		e.Message += "; the answer could not be corrected: " + failure.Message
		failure = &e
	}
	return true, r.fail(ctx, t, o, failure)
}
