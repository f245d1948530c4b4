package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/strictjson"
)

// step is one step of a conversation, independent of the provider: either user texts, or a turn of the model with the results of its calls.
type step struct {
	// user are the user texts, without blank ones.
	user []string
	turn *chat.Turn
	// ids has one entry for each call of the turn, in order. No other call of the conversation has the same one.
	ids []string
	// results has one entry for each call of the turn, in order.
	results []callResult
}

type callResult struct {
	id, text string
	failed   bool
}

// Placeholder texts for the user messages that providers require when a transcript begins or ends with a turn of the model.
const (
	opening = "Begin."
	goingOn = "Continue."
)

// conversation converts the transcript into steps. The first step is always a user's, and every call has an id of its own and a result.
func conversation(exchanges []chat.Exchange) []step {
	var out []step
	add := func(s step) {
		if len(out) == 0 && s.turn != nil {
			out = append(out, step{user: []string{opening}})
		}
		out = append(out, s)
	}
	used := map[string]bool{}
	for _, e := range exchanges {
		var user []string
		for _, m := range e.Messages {
			if strings.TrimSpace(m.Text) != "" {
				user = append(user, m.Text)
			}
		}
		if len(user) > 0 {
			add(step{user: user})
		}
		if e.Turn != nil && (len(e.Turn.Calls) > 0 || strings.TrimSpace(e.Turn.Text) != "") {
			ids := make([]string, len(e.Turn.Calls))
			for i, c := range e.Turn.Calls {
				ids[i] = unusedID(c.ProviderID, used, i+1)
			}
			add(step{turn: e.Turn, ids: ids, results: resultsOf(e, ids)})
		}
	}
	if len(out) == 0 {
		return []step{{user: []string{opening}}}
	}
	if last := out[len(out)-1]; last.turn != nil && len(last.results) == 0 {
		out = append(out, step{user: []string{goingOn}})
	}
	return out
}

// unusedID returns id or, if it is empty or used already, the first unused one of call_n, call_n+1 and so on, and marks it as used.
func unusedID(id string, used map[string]bool, n int) string {
	for ; id == "" || used[anthropicID(id)]; n++ {
		id = "call_" + strconv.Itoa(n)
	}
	used[anthropicID(id)] = true
	return id
}

// idsOf returns the ids of the calls in a conversation, as Anthropic accepts them.
func idsOf(steps []step) map[string]bool {
	used := map[string]bool{}
	for _, s := range steps {
		for _, id := range s.ids {
			used[anthropicID(id)] = true
		}
	}
	return used
}

func resultsOf(e chat.Exchange, ids []string) []callResult {
	out := make([]callResult, len(ids))
	for i, asked := range e.Turn.Calls {
		out[i] = callResult{id: ids[i], failed: true, text: `{"code":"INTERNAL","message":"the call has no result"}`}
		if call := callFor(e.Calls, asked, i); call != nil && call.Result != nil {
			out[i].text, out[i].failed = resultText(*call.Result), !call.Result.Success
		}
	}
	return out
}

// callFor finds the ledger's call for a requested one: by position if the provider ids agree, else by provider id.
func callFor(calls []jig.Call, asked jig.ToolCall, i int) *jig.Call {
	if i < len(calls) && (calls[i].ProviderID == asked.ProviderID || calls[i].ProviderID == "") {
		return &calls[i]
	}
	for j := range calls {
		if asked.ProviderID != "" && calls[j].ProviderID == asked.ProviderID {
			return &calls[j]
		}
	}
	return nil
}

// resultText returns the text of a result for the model: the Markdown if there is any, else the error with any data if the call failed,
// else the data. Warnings are appended.
func resultText(r jig.ToolResult) string {
	text := bareText(r)
	for _, warning := range r.Warnings {
		text += "\n(warning: " + warning + ")"
	}
	return text
}

func bareText(r jig.ToolResult) string {
	if r.Markdown != "" {
		return r.Markdown
	}
	if !r.Success {
		return failureText(r)
	}
	if len(r.Data) > 0 {
		return string(r.Data)
	}
	if r.Summary != "" {
		return r.Summary
	}
	return "done"
}

func failureText(r jig.ToolResult) string {
	failure := struct {
		*jig.Error
		Data json.RawMessage `json:"data,omitempty"`
	}{Error: r.Error, Data: r.Data}
	if failure.Error == nil {
		failure.Error = &jig.Error{Code: jig.CodeInternal, Message: r.Summary}
	}
	raw, err := json.Marshal(failure)
	if err != nil { // data that is not JSON
		return failure.Message
	}
	return string(raw)
}

// inputObject returns the input of a call as an object, as providers expect it when it is sent back. What cannot be read becomes {}.
func inputObject(c jig.ToolCall) json.RawMessage {
	trimmed := strings.TrimSpace(string(c.Input))
	switch {
	case c.Malformed != "" || trimmed == "" || trimmed == "null" || !sendable(c.Input):
		return json.RawMessage(`{}`)
	case strings.HasPrefix(trimmed, "{"):
		return c.Input
	}
	return json.RawMessage(`{"arguments":` + trimmed + `}`)
}

// sendable reports whether every reader of a JSON text sees the same value in it. Providers refuse others, such as half a surrogate pair, or a
// number like 1e400 that no double can hold.
func sendable(raw json.RawMessage) bool {
	var v any
	return strictjson.Check(raw) == nil && json.Unmarshal(raw, &v) == nil
}

// schemaOf returns the input schema of a tool; an object without properties if the tool has none.
func schemaOf(t jig.Tool) json.RawMessage {
	if len(t.InputSchema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.InputSchema
}

// maxWireName is the maximum length of a tool name that providers accept.
const maxWireName = 64

var wireForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// wireName converts a tool's name for providers that do not allow dots: data.searchRecords becomes data__searchRecords. If the result would
// be too long, or ambiguous because the name itself contains "__", it ends with a hash of the name instead. The result depends only on the
// name, so names in a transcript stay the same whatever tools are offered later.
func wireName(name string) string {
	wire := strings.ReplaceAll(name, ".", "__")
	if !strings.Contains(name, "__") && wireForm.MatchString(wire) {
		return wire
	}
	sum := sha256.Sum256([]byte(name))
	clean := strings.Map(func(r rune) rune {
		if wireForm.MatchString(string(r)) {
			return r
		}
		return '_'
	}, wire)
	return clean[:min(len(clean), maxWireName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// namesOf maps wire names back to the names of the offered tools.
func namesOf(tools []jig.Tool) map[string]string {
	names := make(map[string]string, len(tools))
	for _, t := range tools {
		names[wireName(t.Name)] = t.Name
	}
	return names
}

// toolName returns the name of the tool with this wire name. A name that was not offered is converted to the usual form of tool names, so
// that the error can suggest the nearest one.
func toolName(names map[string]string, wire string) string {
	if name, ok := names[wire]; ok {
		return name
	}
	return strings.ReplaceAll(wire, "__", ".")
}
