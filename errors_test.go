package jig_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

// failuresOf returns one error for each code.
func failuresOf() map[jig.Code]*jig.Error {
	all := map[jig.Code]*jig.Error{}
	for _, code := range jig.Codes() {
		all[code] = jig.Errorf(code, "failed")
	}
	return all
}

func TestError_OnlyFiveCodesPromiseThatNothingHappened(t *testing.T) {
	t.Parallel()
	var promises []jig.Code
	for _, code := range jig.Codes() {
		if failuresOf()[code].NoEffect() {
			promises = append(promises, code)
		}
	}
	require.ElementsMatch(t, []jig.Code{
		jig.CodeInvalidInput, jig.CodeNotFound, jig.CodeConflict, jig.CodeNotPermitted, jig.CodeRateLimited,
	}, promises)
	require.True(t, (&jig.Error{Code: jig.CodeUnavailable, NotExecuted: true}).NoEffect())
	require.False(t, (&jig.Error{Code: "TEAPOT"}).NoEffect())
}

func TestMayRetry_WriteOnlyIfSafe(t *testing.T) {
	t.Parallel()
	for code, failure := range failuresOf() {
		require.False(t, ledger.MayRetry(true, false, failure), code)
	}
	require.False(t, ledger.MayRetry(true, false, nil))
	require.True(t, ledger.MayRetry(true, false, &jig.Error{Code: jig.CodeUnavailable, NotExecuted: true}))
	require.True(t, ledger.MayRetry(true, true, jig.Errorf(jig.CodeTimeout, "too slow")))
	require.True(t, ledger.MayRetry(false, false, jig.Errorf(jig.CodeInternal, "failed")))
}

func TestPermission_OnlyReadAndDraftDoNotWrite(t *testing.T) {
	t.Parallel()
	for _, permission := range []jig.Permission{jig.PermissionWrite, jig.PermissionDestructive, "", "new"} {
		require.True(t, permission.Writes(), permission)
	}
	for _, permission := range []jig.Permission{jig.PermissionRead, jig.PermissionDraft} {
		require.False(t, permission.Writes(), permission)
	}
}

func TestStepCall_MayRetryFollowsTheContract(t *testing.T) {
	t.Parallel()
	failed := func(e *jig.Error) *jig.ToolResult { r := jig.Failure(e); return &r }
	require.False(t, plan.StepCall{Writes: true, Status: jig.CallFailed}.MayRetry())
	require.False(t, plan.StepCall{Writes: true, Result: failed(jig.Errorf(jig.CodeUnavailable, "gone"))}.MayRetry())
	require.True(t, plan.StepCall{Writes: true, Idempotent: true, Result: failed(jig.Errorf(jig.CodeUnavailable, "gone"))}.MayRetry())
	require.True(t, plan.StepCall{Writes: true, Result: failed(&jig.Error{Code: jig.CodeUnavailable, NotExecuted: true})}.MayRetry())
	require.True(t, plan.StepCall{Result: failed(jig.Errorf(jig.CodeInternal, "failed"))}.MayRetry())
}
