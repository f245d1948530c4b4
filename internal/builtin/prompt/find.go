package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// maxStarts bounds the positions in an answer that are tried as the beginning of a JSON value.
const maxStarts = 100

// find returns the JSON value in an answer: the whole answer, or else the content of a code fence, or else a value within the prose. If
// two different values fit, it returns neither, and it never takes a value from inside a broken one: asking again is better than guessing.
// The error says what is wrong and lists the violations.
func find(text string, fits *schema.Schema) (json.RawMessage, *jig.Error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	if json.Valid([]byte(text)) {
		if err := fits.Validate([]byte(text)); err != nil {
			return nil, jig.AsError(err)
		}
		return compacted(text), nil
	}
	var misfit *jig.Error
	longest := 0
	prose, broken := inProse(text)
	for _, candidates := range [][]string{fenced(text), prose} {
		var found json.RawMessage
		for _, candidate := range candidates {
			if err := fits.Validate([]byte(candidate)); err != nil {
				if len(candidate) > longest {
					misfit, longest = jig.AsError(err), len(candidate)
				}
				continue
			}
			value := compacted(candidate)
			if found != nil && !bytes.Equal(found, value) {
				return nil, jig.Errorf(jig.CodeInvalidOutput, "the answer contains several JSON values that fit; it is not clear which one is meant")
			}
			found = value
		}
		if found != nil {
			return found, nil
		}
	}
	if len(broken) > longest {
		if err := fits.Validate([]byte(broken)); err != nil {
			return nil, jig.AsError(err)
		}
	}
	if misfit == nil {
		misfit = jig.Errorf(jig.CodeInvalidOutput, "the answer contains no JSON value")
	}
	return nil, misfit
}

// compacted returns valid JSON without white space.
func compacted(text string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return json.RawMessage(text)
	}
	return b.Bytes()
}

// fenced returns the contents of those code fences that hold JSON. An unclosed fence extends to the end of the text.
func fenced(text string) []string {
	var found []string
	open, from, at := "", 0, 0
	keep := func(block string) {
		if block = strings.TrimSpace(block); json.Valid([]byte(block)) {
			found = append(found, block)
		}
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		marker := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case open == "" && len(marker) >= 3 && !strings.Contains(trimmed[len(marker):], "`"):
			open, from = marker, at+len(line)
		case open != "" && len(marker) >= len(open) && marker == trimmed:
			keep(text[from:at])
			open = ""
		}
		at += len(line)
	}
	if open != "" {
		keep(text[from:])
	}
	return found
}

// inProse returns the objects and arrays within a text. broken is the rest of the text from the first value that does not end properly,
// because what follows could be a part of that value; "" if there is no such value.
func inProse(text string) (found []string, broken string) {
	rest := text
	for range maxStarts {
		start := strings.IndexAny(rest, "{[")
		if start < 0 {
			return found, ""
		}
		rest = rest[start:]
		var value json.RawMessage
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err == nil {
			found = append(found, string(value))
			rest = rest[len(value):]
			continue
		}
		if !aside(rest) {
			return found, rest
		}
		rest = rest[1:]
	}
	return found, ""
}

// aside reports whether an opening bracket belongs to prose, as in {name}, [1, as above] or [a link](…).
func aside(rest string) bool {
	inner := strings.TrimLeft(rest[1:], " \t\r\n")
	if inner == "" {
		return true
	}
	if rest[0] == '[' {
		return !strings.ContainsRune(`{["`, rune(inner[0]))
	}
	next := strings.IndexAny(inner, "{}")
	return inner[0] != '"' && next >= 0 && inner[next] == '}'
}

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

// maxSkillFiles bounds the size of a skill's files in the system text, in bytes.
const maxSkillFiles = 256 << 10

// skillText returns a skill as instructions to a model: first its instructions, then its files in the order of their paths as long as
// there is room, then the names of files that were left out.
func skillText(skill spec.Skill) string {
	texts := []string{skill.Instructions}
	var left []string
	room := maxSkillFiles
	for _, path := range slices.Sorted(maps.Keys(skill.Files)) {
		content := skill.Files[path]
		if len(content) > room {
			left = append(left, path)
			continue
		}
		room -= len(content)
		texts = append(texts, fmt.Sprintf("<file path=%q>\n%s\n</file>", path, strings.TrimSuffix(content, "\n")))
	}
	if len(left) > 0 {
		texts = append(texts, "These files of the skill are left out here, for they are too long: "+strings.Join(left, ", "))
	}
	return paragraphs(texts...)
}
