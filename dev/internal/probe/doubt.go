package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// doubtTools returns a tool that writes, must not run twice, and fails in every way in which a tool can fail.
func doubtTools() []tools.Tool {
	return []tools.Tool{tools.Raw(jig.Tool{
		Name: "test.doubt", Description: "Changes something outside, must not run twice, and fails as the input says. Only for tests.",
		Permission: jig.PermissionWrite, Risk: jig.RiskModerate, Labels: &jig.Labels{}, Timeout: time.Second, MaxAttempts: 1,
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["url","name","ways"],"properties":{
			"url":{"type":"string"},"name":{"type":"string"},"ways":{"type":"array","minItems":1,"items":{"type":"string"}}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["status"],"properties":{"status":{"type":"integer"}}}`),
	}, doubt)}
}

// The ways in which test.doubt ends. The first four happen before the effect, all others after it. With late, the effect happens only after
// the tool's timeout.
const (
	wayRefused  = "refused"  // was not executed, and says so
	wayPromise  = "promise"  // fails with a code that promises that nothing happened
	wayNothing  = "nothing"  // a plain error, without the effect
	wayCutShort = "cut"      // the worker is killed before the effect
	wayError    = "error"    // a plain error
	wayPanic    = "panic"    // a panic
	wayOutput   = "output"   // success, with an output that breaks its schema
	wayTimeout  = "timeout"  // runs until its timeout
	wayKilled   = "killed"   // the worker is killed
	wayLate     = "late"     // succeeds after its timeout
	waySucceeds = "succeeds" // success
)

// DoubtWays lists the ways in which test.doubt can end.
func DoubtWays() []string {
	return []string{
		wayRefused, wayPromise, wayNothing, wayCutShort, wayError, wayPanic, wayOutput, wayTimeout, wayKilled, wayLate, waySucceeds,
	}
}

// doubt ends the first attempt in the first of the given ways, the second attempt in the second way, and so on. The last way applies to all
// further attempts. The attempts of a call and of its retries count together.
func doubt(ctx context.Context, inv jig.Invocation, raw json.RawMessage) jig.ToolResult {
	var in struct {
		URL  string   `json:"url"`
		Name string   `json:"name"`
		Ways []string `json:"ways"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return jig.Failure(jig.Errorf(jig.CodeInvalidInput, "the input: %w", err))
	}
	way := in.Ways[min(earlier(inv), len(in.Ways)-1)]
	switch way {
	case wayRefused:
		e := jig.Errorf(jig.CodeUnavailable, "the receiver refused the connection")
		e.NotExecuted = true
		return jig.Failure(e)
	case wayPromise:
		return jig.Failure(jig.Errorf(jig.CodeConflict, "the receiver has another version"))
	case wayNothing:
		return jig.Failure(errors.New("connection reset"))
	case wayCutShort:
		return jig.Failure(powerCut())
	case wayLate:
		<-ctx.Done()
		time.Sleep(200 * time.Millisecond)
		ctx = context.WithoutCancel(ctx)
	}
	if _, err := effect(ctx, inv, effectIn{URL: in.URL, Name: in.Name}); err != nil {
		return jig.Failure(err)
	}
	switch way {
	case wayError:
		return jig.Failure(errors.New("connection reset by peer"))
	case wayPanic:
		panic("after the effect")
	case wayOutput:
		return jig.ToolResult{Success: true, Data: json.RawMessage(`{"state":"done"}`), Summary: "done"}
	case wayTimeout:
		<-ctx.Done()
		return jig.Failure(ctx.Err())
	case wayKilled:
		return jig.Failure(powerCut())
	}
	return jig.ToolResult{Success: true, Data: json.RawMessage(`{"status":204}`), Summary: "done"}
}

// earlier returns the number of earlier attempts, of this call and of the calls that it retries.
func earlier(inv jig.Invocation) int {
	n := inv.Attempt - 1
	if _, again, ok := strings.Cut(inv.CallID, "~"); ok {
		if number, err := strconv.Atoi(again); err == nil {
			n += number - 1
		}
	}
	return n
}
