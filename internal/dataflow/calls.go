package dataflow

import "encoding/json"

// Call is an earlier call with its result.
type Call struct {
	Result

	// Untrusted reports that an outsider may have written the result.
	Untrusted bool
	// Tainted reports that the session had read untrusted texts when the call was made, so that Input may repeat them, and the result with it.
	Tainted bool
	// Input is the call's input, and Schema its JSON Schema.
	Input, Schema json.RawMessage
}

// maxRounds is how often NewKnowledge looks for further results that can be trusted. What it does not find in that many rounds is untrusted.
const maxRounds = 4

// NewKnowledge decides which results can be trusted: those that no outsider has written, unless the call may have repeated untrusted texts of
// its input. Such a call is trusted if all arguments that it had can be traced themselves. calls are in the order in which they were made.
func NewKnowledge(typed []string, calls []Call) Knowledge {
	k := Knowledge{Typed: typed}
	var doubtful []Call
	for _, c := range calls {
		switch {
		case c.Untrusted:
			k.Untrusted = append(k.Untrusted, c.Result)
		case c.Tainted:
			doubtful = append(doubtful, c)
		default:
			k.Trusted = append(k.Trusted, c.Result)
		}
	}
	for range maxRounds {
		if len(doubtful) == 0 {
			break
		}
		tracer, rest := NewTracer(k), doubtful[:0:0]
		for _, c := range doubtful {
			found := tracer.Trace(c.Input, c.Schema)
			if len(found.Untrusted) == 0 {
				k.Trusted = append(k.Trusted, c.Result)
			} else {
				rest = append(rest, c)
			}
		}
		if len(rest) == len(doubtful) {
			break
		}
		doubtful = rest
	}
	for _, c := range doubtful {
		k.Untrusted = append(k.Untrusted, c.Result)
	}
	return k
}
