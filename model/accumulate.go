package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// callDelta is a piece of a streamed tool call.
type callDelta struct {
	index    count
	id, name string
	args     wireText
}

// callList assembles calls. Most servers number streamed calls by index; Ollama gives them all index 0 but different ids, vLLM gives every
// piece of a call another id, and some servers send neither.
type callList struct{ calls []*partialCall }

type partialCall struct {
	index    count
	id, name string
	args     pieces
	// repeated reports that a piece repeated the name after the arguments were complete. If more arguments follow, it began another call.
	repeated bool
}

// begin adds a call of its own.
func (l *callList) begin(d callDelta) {
	c := &partialCall{index: d.index, id: d.id, name: d.name, args: pieces{escape: true}}
	l.calls = append(l.calls, c)
	c.args.add(d.args)
}

// whole reports whether the arguments are a complete JSON text.
func (c *partialCall) whole() bool {
	return bytes.HasSuffix(c.args.text, []byte("}")) && json.Valid(c.args.text)
}

// add adds a piece of a stream to the call that it continues, or begins another one.
func (l *callList) add(d callDelta) {
	c := l.continued(d)
	if c != nil && c.repeated && len(d.args) > 0 {
		d.name, c.repeated, c = c.name, false, nil
	}
	if c == nil {
		l.begin(d)
		return
	}
	c.repeated = c.repeated || d.name != "" && len(d.args) == 0 && c.whole()
	if c.id == "" {
		c.id = d.id
	}
	if c.name == "" {
		c.name = d.name
	}
	c.args.add(d.args)
}

// continued returns the call that a piece continues; nil if the piece begins one. A piece without a name always continues the call of its
// index, whatever its id. A piece with a name begins a call if it has another id or another name, or if the call is complete.
func (l *callList) continued(d callDelta) *partialCall {
	c := l.latest(d)
	switch {
	case c == nil || d.name == "" || c.name == "":
		return c
	case d.name != c.name, d.id != "" && c.id != "" && d.id != c.id, len(d.args) > 0 && c.whole():
		return nil
	}
	return c
}

// latest returns the latest call with the piece's index and, if there is one, the piece's id. For a piece without an index, or one that has
// neither an index nor a name that is known, it is the latest call with the id or, without an id, the latest call. An id does not lead a
// piece back to a call that is complete: servers that send another id with each piece may repeat one.
func (l *callList) latest(d callDelta) *partialCall {
	var same *partialCall
	for i := len(l.calls) - 1; i >= 0; i-- {
		c := l.calls[i]
		if d.index.n != nil && c.index.n != nil && *d.index.n != *c.index.n {
			continue
		}
		if same == nil {
			same = c
		}
		if d.id != "" && c.id == d.id && (c == same || !c.whole()) {
			return c
		}
	}
	if same == nil && d.name == "" && d.id != "" { // a call whose index changes between its pieces
		for _, c := range l.calls {
			if c.id == d.id {
				return c
			}
		}
	}
	return same
}

// list returns the calls with their tool names mapped back. A call whose id is missing or used already gets another one.
func (l *callList) list(names map[string]string, used map[string]bool) []jig.ToolCall {
	if len(l.calls) == 0 {
		return nil
	}
	out := make([]jig.ToolCall, len(l.calls))
	asked := len(used)
	for i, c := range l.calls {
		out[i] = jig.ToolCall{ProviderID: unusedID(c.id, used, asked+i+1), Name: toolName(names, c.name)}
		out[i].Input, out[i].Malformed = arguments(c.args.end())
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
	if err := json.Compact(&compact, []byte(trimmed)); err != nil || !utf8.ValidString(trimmed) {
		return nil, strings.ToValidUTF8(text, "\uFFFD")
	}
	return compact.Bytes(), ""
}

// brokenAnswer returns the error for an answer that its provider broke. Asking again may help; see [chat.AskedAgain].
func brokenAnswer(format string, args ...any) *jig.Error {
	return jig.Errorf(jig.CodeUnavailable, format, args...).WithReason(jig.ReasonBrokenAnswer)
}

// unreadable returns the error for an answer in a form that is not the provider's. Asking again would not help.
func unreadable(cause error) *jig.Error {
	return jig.Errorf(jig.CodeInvalidOutput, "the model's provider sent an answer that cannot be read: %w", cause).WithReason("unreadable_answer").
		WithHint("check that the address is that of the API, and that its answers have the form of its wire format")
}

// parse reads the JSON text of an answer. A text that breaks off was cut by the provider; another form than that of v is unreadable.
func parse(data []byte, v any) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, v)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return brokenAnswer("the model's provider sent an answer that is not whole: %w", err)
	}
	return unreadable(err)
}

// stopOf returns why an answer ended; false for a reason that is not known. Gateways pass on the words of the providers behind them, so both
// wires share one table.
func stopOf(reason string) (chat.StopReason, bool) {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "pause_turn":
		return chat.StopEnd, true
	case "tool_calls", "function_call", "tool_use":
		return chat.StopCalls, true
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return chat.StopLength, true
	case "content_filter", "refusal", "safety":
		return chat.StopRefusal, true
	}
	return chat.StopEnd, false
}

// failedReason reports whether an answer that ends with this reason is not the whole of it.
func failedReason(reason string) bool {
	reason = strings.ToLower(reason)
	return strings.Contains(reason, "error") || strings.Contains(reason, "malformed")
}

// finish sets why a turn ended. It returns an error for a turn that is no answer: one that its provider broke, or one that says nothing.
func finish(t *chat.Turn, reason string) error {
	for _, c := range t.Calls {
		if c.Name == "" {
			return brokenAnswer("the model's provider sent a call without the name of a tool")
		}
	}
	stop, known := stopOf(reason)
	natural := stop == chat.StopEnd || stop == chat.StopCalls
	silent := strings.TrimSpace(t.Text) == "" && len(t.Calls) == 0
	switch {
	case failedReason(reason), !known && silent:
		return brokenAnswer("the model's provider ended its answer with %q", jig.Cut(reason, 100))
	case natural && silent:
		return brokenAnswer("the model answered with neither a text nor a call (%s)", reason).WithReason(jig.ReasonNoAnswer)
	case !known:
		t.Warning = fmt.Sprintf("the provider ended the answer with %q, which is not known; the answer may not be complete", jig.Cut(reason, 100))
	}
	switch {
	case !natural:
		t.Stop = stop
	case len(t.Calls) > 0:
		t.Stop = chat.StopCalls
	default:
		t.Stop = chat.StopEnd
	}
	return nil
}
