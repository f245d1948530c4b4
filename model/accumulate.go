package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
)

// callDelta is a piece of a streamed tool call.
type callDelta struct {
	index    int64
	id, name string
	args     string
}

// callList assembles streamed calls from their pieces. Most servers number the calls by index; Ollama gives them all index 0 but different
// ids, and some servers send neither.
type callList struct{ calls []*partialCall }

type partialCall struct {
	index    int64
	id, name string
	args     strings.Builder
}

func (l *callList) add(d callDelta) {
	c := l.find(d)
	if c == nil {
		c = &partialCall{index: d.index, id: d.id}
		l.calls = append(l.calls, c)
	}
	if c.name == "" {
		c.name = d.name
	}
	c.args.WriteString(d.args)
}

func (l *callList) find(d callDelta) *partialCall {
	for i := len(l.calls) - 1; i >= 0; i-- {
		c := l.calls[i]
		switch {
		case d.id != "" && c.id == d.id:
			return c
		case d.id == "" && c.index == d.index:
			if d.name != "" && c.name != "" && json.Valid([]byte(c.args.String())) {
				return nil // the call is complete and another name follows: a server that sends no ids
			}
			return c
		}
	}
	return nil
}

// list returns the calls with their tool names mapped back. Calls without an id, or with an id that is already used, get a new one. asked
// is the number of calls in the transcript so far.
func (l *callList) list(names map[string]string, asked int) []jig.ToolCall {
	var out []jig.ToolCall
	seen := map[string]bool{}
	for i, c := range l.calls {
		id := c.id
		if id == "" || seen[id] {
			id = fmt.Sprintf("call_%d", asked+i+1)
		}
		seen[id] = true
		call := jig.ToolCall{ProviderID: id, Name: toolName(names, c.name)}
		call.Input, call.Malformed = arguments(c.args.String())
		out = append(out, call)
	}
	return out
}

// arguments parses the text that a model wrote as the input of a call. An empty text gives {}; a text that is not JSON is returned as
// malformed.
func arguments(text string) (input json.RawMessage, malformed string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == "null" {
		return json.RawMessage(`{}`), ""
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(trimmed)); err != nil {
		return nil, text
	}
	return compact.Bytes(), ""
}
