package composition

import (
	"github.com/jig-run/jig/internal/plan"
)

// The contract with the callers that store moves is declared in package jig. These are short names for it.
type (
	// Facts gives Advance access to the calls and values of the run.
	Facts = plan.Facts
	// Call is the state of a step's call.
	Call = plan.StepCall
	// Situation is the context of a run, besides its state.
	Situation = plan.Situation
	// Event is an `event` signal that the session received.
	Event = plan.ReceivedEvent
	// Move is the result of Advance. The caller stores all of it in one transaction, or nothing.
	Move = plan.Move
	// Ask is a call to admit. A prompt step calls [ToolPrompt], [ToolSkill] or [ToolAgent], a composition step calls the composition by
	// name, and a task step calls [ToolTask].
	Ask = plan.Ask
)

// The tools that steps other than `tool` steps call.
const (
	// ToolPrompt takes {model, system?, prompt, schema?, max_tokens?} and returns {text} or, with a schema, {output}.
	ToolPrompt = "prompt.direct"
	// ToolSkill takes {skill, model, system?, prompt, schema?, max_tokens?} and returns the same.
	ToolSkill = "prompt.skill"
	// ToolAgent takes {agent, task?, input?, model?} and returns {session_id, answer}. A step's schema is sent to the agent with its task,
	// and the answer in the step's data is then parsed JSON.
	ToolAgent = "agent.run"
	// ToolTask takes {task, entity?, values?, wait}.
	ToolTask = "task.run"
)
