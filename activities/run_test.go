package activities_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
)

func fails(code jig.Code) jig.ToolResult {
	return jig.Failure(&jig.Error{Code: code, Message: "x"})
}

func hadNoEffect(code jig.Code) jig.ToolResult {
	return jig.Failure(&jig.Error{Code: code, Message: "x", NotExecuted: true})
}

// promises are the codes with which a tool says that nothing happened.
var promises = []jig.Code{jig.CodeInvalidInput, jig.CodeNotFound, jig.CodeConflict, jig.CodeNotPermitted, jig.CodeRateLimited}

func TestOutcome_FailedWriteIsUnknownUnlessNothingHappened(t *testing.T) {
	t.Parallel()
	for _, permission := range []jig.Permission{jig.PermissionWrite, jig.PermissionDestructive, "", "new"} {
		write := jig.Tool{Permission: permission, MaxAttempts: 3}
		for _, code := range jig.Codes() {
			status, doubt := activities.VerdictOn(t.Context(), write, fails(code), 1, false)
			if slices.Contains(promises, code) {
				require.Equal(t, jig.CallFailed, status, "%q: %s promises that nothing happened", permission, code)
				require.False(t, doubt)
			} else {
				require.Equal(t, jig.CallUnknown, status, "%q: %s", permission, code)
			}
			status, _ = activities.VerdictOn(t.Context(), write, fails(code), 2, true)
			require.Equal(t, jig.CallUnknown, status, "%q: %s says nothing about an earlier attempt", permission, code)
		}
		status, _ := activities.VerdictOn(t.Context(), write, jig.ToolResult{}, 1, false)
		require.Equal(t, jig.CallUnknown, status, "it did not say why it failed")
	}
}

func TestOutcome_WriteIsRepeatedOnlyIfSafe(t *testing.T) {
	t.Parallel()
	once := jig.Tool{Permission: jig.PermissionWrite, MaxAttempts: 3}
	keyed := jig.Tool{Permission: jig.PermissionWrite, MaxAttempts: 3, Idempotent: true}
	for name, row := range map[string]struct {
		tool    jig.Tool
		outcome jig.ToolResult
		number  int
		before  bool
		want    jig.CallStatus
		doubt   bool
	}{
		"nothing happened":                                     {once, hadNoEffect(jig.CodeUnavailable), 1, false, jig.CallReserved, false},
		"nothing happened, the last attempt":                   {once, hadNoEffect(jig.CodeUnavailable), 3, false, jig.CallFailed, false},
		"nothing happened, and never will":                     {once, hadNoEffect(jig.CodeNotFound), 1, false, jig.CallFailed, false},
		"nothing happened, a bug":                              {once, hadNoEffect(jig.CodeInternal), 1, false, jig.CallFailed, false},
		"a rate limit is a promise, not a permission to retry": {once, fails(jig.CodeRateLimited), 1, false, jig.CallFailed, false},
		"keyed: a rate limit":                                  {keyed, fails(jig.CodeRateLimited), 1, false, jig.CallReserved, false},
		"keyed: a timeout":                                     {keyed, fails(jig.CodeTimeout), 1, false, jig.CallReserved, true},
		"keyed: a plain error":                                 {keyed, fails(jig.CodeInternal), 1, false, jig.CallReserved, true},
		"keyed: the last timeout":                              {keyed, fails(jig.CodeTimeout), 3, true, jig.CallUnknown, true},
		"keyed: a timeout, then a promise":                     {keyed, fails(jig.CodeConflict), 2, true, jig.CallUnknown, true},
		"keyed: a timeout, then not executed":                  {keyed, hadNoEffect(jig.CodeUnavailable), 2, true, jig.CallReserved, true},
		"keyed: not executed the last time":                    {keyed, hadNoEffect(jig.CodeUnavailable), 3, true, jig.CallUnknown, true},
		"keyed: a promise":                                     {keyed, fails(jig.CodeConflict), 1, false, jig.CallFailed, false},
		"keyed: the tool asks for a person":                    {keyed, fails(jig.CodeOutcomeUnknown), 1, false, jig.CallUnknown, true},
		"success after an unknown outcome":                     {keyed, jig.ToolResult{Success: true}, 2, true, jig.CallSucceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, doubt := activities.VerdictOn(t.Context(), row.tool, row.outcome, row.number, row.before)
			require.Equal(t, row.want, status)
			require.Equal(t, row.doubt, doubt)
		})
	}
}

func TestOutcome_OfACanceledAttempt(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	once := jig.Tool{Permission: jig.PermissionWrite, MaxAttempts: 3}
	keyed := jig.Tool{Permission: jig.PermissionWrite, MaxAttempts: 3, Idempotent: true}
	read := jig.Tool{Permission: jig.PermissionRead, MaxAttempts: 3, Idempotent: true}
	for name, row := range map[string]struct {
		tool    jig.Tool
		outcome jig.ToolResult
		want    jig.CallStatus
	}{
		"a write":                              {once, fails(jig.CodeCanceled), jig.CallUnknown},
		"a write with a bug":                   {once, fails(jig.CodeInternal), jig.CallUnknown},
		"a write that had not begun":           {once, hadNoEffect(jig.CodeCanceled), jig.CallCanceled},
		"a write that promises":                {once, fails(jig.CodeConflict), jig.CallCanceled},
		"a write that succeeded":               {once, jig.ToolResult{Success: true}, jig.CallSucceeded},
		"keyed write without further attempts": {keyed, fails(jig.CodeTimeout), jig.CallUnknown},
		"an idempotent read":                   {read, fails(jig.CodeCanceled), jig.CallCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _ := activities.VerdictOn(canceled, row.tool, row.outcome, 1, false)
			require.Equal(t, row.want, status)
		})
	}
}

func TestOutcome_OfReads(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Permission: jig.PermissionRead, MaxAttempts: 3, Idempotent: true}
	other := jig.Tool{Permission: jig.PermissionDraft, MaxAttempts: 3}
	for name, row := range map[string]struct {
		tool    jig.Tool
		outcome jig.ToolResult
		number  int
		want    jig.CallStatus
	}{
		"success":                        {read, jig.ToolResult{Success: true}, 1, jig.CallSucceeded},
		"a timeout is tried again":       {read, fails(jig.CodeTimeout), 1, jig.CallReserved},
		"the last attempt fails":         {read, fails(jig.CodeTimeout), 3, jig.CallFailed},
		"a wrong input":                  {read, fails(jig.CodeInvalidInput), 1, jig.CallFailed},
		"a tool's own bug":               {read, fails(jig.CodeInternal), 1, jig.CallFailed},
		"bad output":                     {read, fails(jig.CodeInvalidOutput), 1, jig.CallFailed},
		"a draft's bug":                  {other, fails(jig.CodeInternal), 1, jig.CallFailed},
		"a draft that may have happened": {other, fails(jig.CodeTimeout), 1, jig.CallUnknown},
		"a draft that was rate-limited":  {other, fails(jig.CodeRateLimited), 1, jig.CallReserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, doubt := activities.VerdictOn(t.Context(), row.tool, row.outcome, row.number, false)
			require.Equal(t, row.want, status)
			require.False(t, doubt)
		})
	}
}

func TestShortenedResult_KeepsTheFullValue(t *testing.T) {
	t.Parallel()
	big, err := json.Marshal(strings.Repeat("é", 100_000))
	require.NoError(t, err)
	c := ledger.Completion{CallID: "1.1", Result: jig.ToolResult{Success: true, Data: big, Summary: "much"}}
	require.NoError(t, activities.CutDown(&c))
	require.LessOrEqual(t, len(c.Result.Data), jig.InlineBytes)
	var whole jig.ToolResult
	require.NoError(t, json.Unmarshal(c.Whole, &whole))
	require.JSONEq(t, string(big), string(whole.Data))

	filled, err := json.Marshal(map[string]any{"values": strings.Repeat("x", 100_000), "counts": map[string]int{"total": 3, "failed": 1}})
	require.NoError(t, err)
	c = ledger.Completion{CallID: "1.2", Result: jig.ToolResult{Success: true, Data: filled}}
	require.NoError(t, activities.CutDown(&c))
	var left struct {
		Counts map[string]int `json:"counts"`
	}
	require.NoError(t, json.Unmarshal(c.Result.Data, &left))
	require.Equal(t, map[string]int{"total": 3, "failed": 1}, left.Counts, "the counts of an extraction of many entities")

	small := ledger.Completion{Result: jig.ToolResult{Success: true, Data: json.RawMessage(`{}`)}}
	require.NoError(t, activities.CutDown(&small))
	require.Nil(t, small.Whole)
}
