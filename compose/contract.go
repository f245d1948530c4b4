package compose

import "github.com/jig-run/jig"

// The contract with those who keep what comes of a move stands in the vocabulary; here it has its short names.
type (
	// Facts is what Advance may read.
	Facts = jig.Facts
	// Call is where a step's call stands.
	Call = jig.StepCall
	// Situation is what a run is in, beside its state.
	Situation = jig.Situation
	// Event is a signal `event` that the session was sent.
	Event = jig.ReceivedEvent
	// Move is what comes of Advance: the caller stores all of it in one transaction, or none.
	Move = jig.Move
	// Ask is a call to be admitted. A prompt is a call of ToolPrompt, ToolSkill or ToolAgent, a composition one of its name,
	// a task one of ToolTask.
	Ask = jig.Ask
)

// The tools that steps other than `tool` call.
const (
	// ToolPrompt takes {model, system?, prompt, schema?, max_tokens?} and gives {text} or, with a schema, {output}.
	ToolPrompt = "prompt.direct"
	// ToolSkill takes {skill, model, system?, prompt, schema?, max_tokens?} and gives the same.
	ToolSkill = "prompt.skill"
	// ToolAgent takes {agent, task?, input?, model?} and gives {session_id, answer}. The schema of a step is told to the agent
	// with its task, and the step's data then has the answer parsed.
	ToolAgent = "agent.run"
	// ToolTask takes {task, entity?, values?, wait}.
	ToolTask = "task.run"
)
