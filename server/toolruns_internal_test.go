package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

// Each call that has run becomes one flat object, whether it succeeded or failed. Calls that still run or were refused are left out.
func TestRuns_OfARecordedSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tenant := storetest.Tenant(t)
	session := storetest.Session(t, r.worker, tenant)
	_, err := r.worker.BeginPass(t.Context(), tenant, session.ID, 1)
	require.NoError(t, err)
	call := func(n int, tool, input string, verdict jig.Verdict, status jig.CallStatus) jig.Call {
		return jig.Call{
			Tenant: tenant, SessionID: session.ID, ID: jig.CallID(1, n), Pass: 1, Ordinal: n, Tool: tool, Version: "v1", Idempotent: true,
			Input: []byte(input), Digest: "d", PolicyVersion: "p1", Verdict: verdict, Status: status,
		}
	}
	calls := []jig.Call{
		call(1, "file.read", `{"path":"a"}`, jig.VerdictRun, jig.CallReserved),
		call(2, "file.list", `{"path":"."}`, jig.VerdictRun, jig.CallReserved),
		call(3, "file.read", `{"path":"../b"}`, jig.VerdictRun, jig.CallReserved),
		call(4, "file.write", `{"path":"c"}`, jig.VerdictRefuse, jig.CallFailed),
		call(5, "file.read", `{"path":"d"}`, jig.VerdictRun, jig.CallReserved),
	}
	require.NoError(t, r.worker.Admit(t.Context(), ledger.Admission{Tenant: tenant, SessionID: session.ID, Pass: 1, Calls: calls}))
	for i, result := range []jig.ToolResult{
		{Success: true, Summary: "read a", Data: json.RawMessage(`{"text":"hello"}`)},
		{Success: true, Summary: "2 files", Data: json.RawMessage(`["a","c"]`)},
		jig.Failure(jig.Errorf(jig.CodeNotPermitted, "the path is outside of the working directory")),
	} {
		begun, err := r.worker.Reserve(t.Context(), ledger.ReserveRequest{
			Tenant: tenant, SessionID: session.ID, CallID: calls[i].ID, Version: "v1", Digest: "d", MaxAttempts: 3,
		})
		require.NoError(t, err)
		status := jig.CallSucceeded
		if !result.Success {
			status = jig.CallFailed
		}
		_, err = r.worker.Complete(t.Context(), ledger.Completion{
			Tenant: tenant, SessionID: session.ID, CallID: calls[i].ID, Fence: begun.Fence, Digest: "d", Status: status, Result: result,
		})
		require.NoError(t, err)
	}
	_, err = r.worker.Reserve(t.Context(), ledger.ReserveRequest{
		Tenant: tenant, SessionID: session.ID, CallID: calls[4].ID, Version: "v1", Digest: "d", MaxAttempts: 3,
	})
	require.NoError(t, err)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL()+"/v1/sessions/"+session.ID+"/runs", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+r.key(t, tenant, 0, credential.ScopeRead).Name)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var page struct{ Runs []map[string]any }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&page))
	require.Len(t, page.Runs, 3)
	for i, want := range []map[string]any{
		{"input": map[string]any{"path": "a"}, "output": map[string]any{"text": "hello"}, "status": "success", "error": nil, "tool_slug": "file.read"},
		{"input": map[string]any{"path": "."}, "output": map[string]any{"value": []any{"a", "c"}}, "status": "success", "error": nil, "tool_slug": "file.list"},
		{"input": map[string]any{"path": "../b"}, "output": nil, "status": "error", "error": "the path is outside of the working directory", "tool_slug": "file.read"},
	} {
		want["id"], want["tenant_id"], want["session_id"] = session.ID+"/"+calls[i].ID, tenant, session.ID
		want["user_id"], want["chat_id"], want["source"] = session.Principal.ID, session.ID, "agent"
		require.GreaterOrEqual(t, page.Runs[i]["duration_ms"], 0.0)
		delete(page.Runs[i], "duration_ms")
		require.Equal(t, want, page.Runs[i])
	}
}
