// Package person contains the tool person.ask, which lets an agent ask a person a question. The engine keeps such calls waiting until
// somebody answers; the tool itself never runs.
package person

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// AskTool is the name of the tool.
const AskTool = toolname.PersonAsk

// Ask is a question to a person.
type Ask struct {
	Question string `json:"question" jsonschema:"the question, whole sentences: the person sees nothing else of the conversation" minLength:"1" maxLength:"4000"`
	// Schema and Options restrict the answer; without them it is a text.
	Schema  map[string]any    `json:"schema,omitempty" jsonschema:"JSON Schema that the answer must fit; a text when it is left out"`
	Options []json.RawMessage `json:"options,omitempty" jsonschema:"answers to choose from"                                        maxItems:"50"`
	Expires string            `json:"expires,omitempty" jsonschema:"how long to wait, e.g. 90m, 48h or 7d"                         maxLength:"20"`
}

// Answer is a person's answer.
type Answer struct {
	Answer json.RawMessage `json:"answer" jsonschema:"what the person answered"`
	By     string          `json:"by"     jsonschema:"who answered"`
}

// Tools returns the tools of this package.
func Tools() []tools.Tool {
	return []tools.Tool{tools.New(jig.Tool{
		Name: AskTool,
		Description: "Asks a person and waits, for days if need be, until somebody answers; gives back the answer and who gave it. " +
			"Use it when only a person knows or may decide, and ask one thing at a time.",
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Implementation: jig.ImplementationPerson,
		Labels: &jig.Labels{},
	}, func(context.Context, jig.Invocation, Ask) (Answer, error) {
		return Answer{}, jig.Errorf(jig.CodeInternal, "a question is answered by a person, never run")
	})}
}
