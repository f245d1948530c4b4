package probe

import (
	"context"
	"syscall"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// cutTools returns tools that kill their worker before they can report their effect, as a power failure would.
func cutTools() []tools.Tool {
	return []tools.Tool{
		tools.New(draft("test.cut", "Changes something outside under a key and ends its worker the first time. Only for tests.", true), cut),
		tools.New(draft("test.cut_once", "Changes something outside, must not run twice, and ends its worker the first time. Only for tests.", false), cut),
	}
}

type cutIn struct {
	effectIn
	Cut string `json:"cut,omitempty" enum:"before,after" jsonschema:"end the worker before its first effect, or after it"`
}

// firstTime is the receiver's status for the first request of a key.
const firstTime = 201

// cut has an effect and kills its own process: either between the effect and the report, if the receiver says that it was the first request
// of its key, or before the effect on the first attempt.
func cut(ctx context.Context, inv jig.Invocation, in cutIn) (effectOut, error) {
	if in.Cut == "before" && inv.Attempt == 1 {
		return effectOut{}, powerCut()
	}
	out, err := effect(ctx, inv, in.effectIn)
	if err == nil && in.Cut == "after" && out.Status == firstTime {
		return effectOut{}, powerCut()
	}
	return out, err
}

// powerCut kills the process. It returns only if the process cannot be killed.
func powerCut() error {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		return jig.Errorf(jig.CodeInternal, "the worker could not be killed: %w", err)
	}
	select {}
}
