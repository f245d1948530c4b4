package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

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

// failedEnd reports whether an answer that ends with this reason is not the whole of it.
func failedEnd(reason string) bool {
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
	case failedEnd(reason), !known && silent:
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
