package composition

import (
	"github.com/jig-run/jig/internal/plan"
)

// These are short names for the types that this package shares with the callers that store its moves. Package plan declares them.
type (
	// Facts gives Advance access to the calls and values of the run.
	Facts = plan.Facts
	// Call is the state of a step's call.
	Call = plan.StepCall
	// Situation is the context of a run, besides its state.
	Situation = plan.Situation
	// Event is an `event` signal that the session received.
	Event = plan.ReceivedEvent
	// Move is the result of [Plan.Advance]. The caller stores it in one transaction, as a whole or not at all.
	Move = plan.Move
	// Ask is a call to admit. A prompt step calls prompt.direct, prompt.skill or agent.run, a composition step calls the composition by name,
	// and a task step calls tasks.run or tasks.start. If a prompt step that calls agent.run has a schema, the agent is sent the schema with its task, and the
	// answer in the step's data is parsed JSON.
	Ask = plan.Ask
)
