package prompt

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// AgentTimeout bounds the session of an agent that was called as a tool, including the time it waits for people.
const AgentTimeout = 24 * time.Hour

// agentTask is the input of agent.run.
type agentTask struct {
	Agent string          `json:"agent"           jsonschema:"the agent's name"                                   minLength:"1" maxLength:"128"`
	Task  string          `json:"task,omitempty"  jsonschema:"what to do, with everything that it needs to know; it sees nothing of this conversation"`
	Input json.RawMessage `json:"input,omitempty" jsonschema:"its input, which must fit its own input schema"`
	Model string          `json:"model,omitempty" jsonschema:"provider/model in place of the agent's own"         minLength:"1" maxLength:"256"`
}

// agentAnswer is the output of agent.run.
type agentAnswer struct {
	SessionID string `json:"session_id" jsonschema:"the session in which it worked"`
	Answer    string `json:"answer"     jsonschema:"its whole answer"`
}

// agentTool returns the contract of agent.run. A session of the agent answers its calls: the engine recognizes the tool by its
// implementation and never calls the handler.
func agentTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.AgentRun,
		Description: "Hands a task to another agent, which works on it in a session of its own with its own tools, and gives back its whole answer. Use it for " +
			"a part of the work that another agent is made for; for one question that needs no tools use prompt.direct. Say everything in task: the agent sees " +
			"nothing of this conversation. It may take long, because its calls may wait for people.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: AgentTimeout,
		Implementation: "agent", Tags: []string{"agent"}, Labels: &jig.Labels{},
	}, func(context.Context, jig.Invocation, agentTask) (agentAnswer, error) {
		e := jig.Errorf(jig.CodeInternal, "agent.run is answered by a session of the agent, and was called as a function").
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return agentAnswer{}, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) { s.Properties["input"].Type = "object" }))
}
