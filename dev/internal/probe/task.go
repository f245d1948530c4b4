package probe

import (
	"context"
	"net/http"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// taskTools returns the effects of extraction tasks, which succeed or fail as the receiver decides.
func taskTools() []tools.Tool {
	return []tools.Tool{
		tools.New(draft("test.task", "Changes something outside under a key, and fails when the receiver says so. Only for tests.", true), task),
	}
}

type taskIn struct {
	URL    string `json:"url" jsonschema:"the receiver"`
	Task   string `json:"task" jsonschema:"tells tasks apart"`
	N      int64  `json:"n" jsonschema:"a number"`
	Before int    `json:"before,omitempty" jsonschema:"milliseconds to wait before the effect"`
	After  int    `json:"after,omitempty" jsonschema:"milliseconds to wait after the effect"`
}

type taskOut struct {
	Value int64 `json:"value"`
}

// TaskValue returns the value that test.task computes from a number.
func TaskValue(n int64) int64 { return (n*17 + 3) % 1_000_003 }

// task posts its name and its number. A conflict fails the task. Any other refusal may be retried with a new call, but not with another
// attempt of the same call.
func task(ctx context.Context, inv jig.Invocation, in taskIn) (taskOut, error) {
	out, err := effect(ctx, inv, effectIn{URL: in.URL, Name: in.Task + " " + strconv.FormatInt(in.N, 10), Before: in.Before, After: in.After})
	switch {
	case err != nil:
		return taskOut{}, err
	case out.Status == http.StatusConflict:
		return taskOut{}, jig.Errorf(jig.CodeConflict, "the receiver refuses it")
	case out.Status >= http.StatusBadRequest:
		return taskOut{}, jig.Errorf(jig.CodeInternal, "the receiver answered %d", out.Status)
	}
	return taskOut{Value: TaskValue(in.N)}, nil
}
