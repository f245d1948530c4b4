package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
)

// callDelta is a piece of a tool call as it streams in.
type callDelta struct {
	index    int64
	id, name string
	args     string
}

// callList puts the pieces of streamed calls together. Most servers number calls by index; Ollama gives index 0 to all of
// them with different ids, and some give neither.
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
				return nil // a call is complete and another is named: servers that give no ids
			}
			return c
		}
	}
	return nil
}

// list gives the calls with their names mapped back and ids made for those that have none, or share one; asked is the
// number of calls in the transcript so far.
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

// arguments reads what a model wrote as a call's input: {} when it wrote nothing, malformed when it is not JSON.
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
