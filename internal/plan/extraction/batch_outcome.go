package extraction

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// The values of BatchFailure.Outcome: how the extraction of an entity ended.
const (
	outcomeCompleted = "completed"
	outcomePartial   = "partial"
	outcomeFailed    = "failed"
	outcomeDenied    = "denied"
	outcomeCanceled  = "canceled"
)

// maxReason is the length limit of the message of one failure.
const maxReason = 300

func (c *BatchCounts) add(outcome string, n int) {
	switch outcome {
	case outcomeCompleted:
		c.Completed += n
	case outcomePartial:
		c.Partial += n
	case outcomeDenied:
		c.Denied += n
	case outcomeCanceled:
		c.Canceled += n
	default:
		c.Failed += n
	}
}

func (c *BatchCounts) total() int { return c.Completed + c.Partial + c.Failed + c.Denied + c.Canceled }

// summary returns the counts as one line for people.
func (r BatchResult) summary() string {
	word := "entities"
	if r.Matched == 1 {
		word = "entity"
	}
	parts := []string{fmt.Sprintf("%d %s of type %s: %d completed", r.Matched, word, r.Type, r.Completed)}
	for _, part := range []struct {
		count int
		word  string
	}{{r.Partial, "in part"}, {r.Failed, "failed"}, {r.Denied, "denied"}, {r.Canceled, "canceled"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	return strings.Join(parts, ", ")
}

// outcomeOf returns how the extraction of an entity ended, and the reason if it did not complete. It uses the counts in the result, because
// for a large result the ledger has only these and the summary. A result without counts does not count as complete.
func outcomeOf(call plan.StepCall) (string, *jig.Error) {
	result := call.Outcome()
	if !result.Success {
		problem := short(result.Cause())
		switch call.Status { //nolint:exhaustive // other statuses are failures
		case jig.CallDenied, jig.CallExpired:
			return outcomeDenied, problem
		case jig.CallCanceled:
			return outcomeCanceled, problem
		}
		return outcomeFailed, problem
	}
	var extracted Result
	if json.Unmarshal(result.Data, &extracted) != nil {
		extracted = Result{}
	}
	if c := extracted.Counts; c.Total > 0 && c.Failed+c.Canceled == 0 {
		return outcomeCompleted, nil
	}
	for _, id := range slices.Sorted(maps.Keys(extracted.Tasks)) {
		if e := extracted.Tasks[id].Error; e != nil {
			e = short(e)
			e.Message = "task " + id + ": " + e.Message
			return outcomePartial, e
		}
	}
	return outcomePartial, jig.Errorf(jig.CodeInternal, "%s", jig.Cut(result.Summary, maxReason)).WithHint("tasks.getStatus says why")
}

// short shortens an error for the list of failures in a result.
func short(err *jig.Error) *jig.Error {
	e := *plan.Brief(err)
	e.Message, e.Hint, e.Violations = jig.Cut(e.Message, maxReason), jig.Cut(e.Hint, maxReason), nil
	return &e
}
