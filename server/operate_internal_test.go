package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/store/storetest"
)

// keyOf makes an API key of a principal and returns its text and its id.
func (r *rig) keyOf(t *testing.T, tenant, principal string, scopes ...string) (text, id string) {
	t.Helper()
	text, id, hash := credential.KeyForm.New()
	_, err := r.store.CreateCredential(t.Context(), credential.New{Credential: credential.Credential{
		Tenant: tenant, ID: id, Kind: identity.KindAPIKey, Principal: principal, Scopes: scopes,
	}, Hash: hash})
	require.NoError(t, err)
	return text, id
}

// does sends a request with a key and returns its status and its body.
func (r *rig) does(t *testing.T, key, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// done returns what the audit says about a schedule: who, and what they did.
func (r *rig) done(t *testing.T, tenant string) (all []string) {
	t.Helper()
	rows, err := r.worker.AuditRows(t.Context(), tenant, 0, 1000)
	require.NoError(t, err)
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		if strings.HasPrefix(e.Subject, "schedule:") {
			all = append(all, string(e.Kind)+" "+e.By+" "+e.Reason)
		}
	}
	return all
}

// Nobody fires, pauses or deletes somebody else's schedule without the scope operate, and the audit names everybody who does, and their keys.
func TestSchedules_AreOperatedByTheirPrincipalOrWithOperate(t *testing.T) {
	t.Parallel()
	r, tenant := newRig(t), storetest.Tenant(t)
	carol, carolID := r.keyOf(t, tenant, "carol", credential.ScopeRun, credential.ScopeRead)
	dan, danID := r.keyOf(t, tenant, "dan", credential.ScopeRun)
	eve, eveID := r.keyOf(t, tenant, "eve", credential.ScopeRun, credential.ScopeOperate)
	status, body := r.does(t, carol, http.MethodPost, "/v1/schedules", `{"name":"payroll","tool":"todo.write","input":{"items":[]},"every":"24h"}`)
	require.Equal(t, http.StatusCreated, status, body)
	require.Contains(t, body, `"credential":"api_key:`+carolID+`"`)
	for method, path := range map[string]string{"pause": "/pause", "resume": "/resume"} {
		status, body = r.does(t, dan, http.MethodPost, "/v1/schedules/payroll"+path, `{}`)
		require.Equal(t, http.StatusForbidden, status, method)
		require.Contains(t, body, `"reason":"scope"`)
	}
	status, _ = r.does(t, dan, http.MethodDelete, "/v1/schedules/payroll", "")
	require.Equal(t, http.StatusForbidden, status)
	status, body = r.does(t, dan, http.MethodPost, "/v1/schedules/payroll/trigger", "")
	require.Equal(t, http.StatusAccepted, status, body)
	require.NotContains(t, body, "payroll-", "it is a session of dan's own")
	for _, key := range []string{carol, eve} {
		status, body = r.does(t, key, http.MethodPost, "/v1/schedules/payroll/trigger", "")
		require.Equal(t, http.StatusAccepted, status, body)
		require.Contains(t, body, ":payroll-")
	}
	status, body = r.does(t, eve, http.MethodPost, "/v1/schedules/payroll/pause", `{"note":"a freeze"}`)
	require.Equal(t, http.StatusOK, status, body)
	flo, floID := r.keyOf(t, tenant, "flo", credential.ScopeRun, credential.ScopeManage)
	status, body = r.does(t, eve, http.MethodPost, "/v1/schedules/payroll/take-over", "")
	require.Equal(t, http.StatusForbidden, status, body)
	status, body = r.does(t, flo, http.MethodPost, "/v1/schedules/payroll/take-over", "")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"principal":"flo"`)
	require.Contains(t, body, `"credential":"api_key:`+floID+`"`)
	require.Contains(t, body, `"paused":true`)
	status, _ = r.does(t, carol, http.MethodDelete, "/v1/schedules/payroll", "")
	require.Equal(t, http.StatusForbidden, status, "it is flo's now")
	status, body = r.does(t, flo, http.MethodDelete, "/v1/schedules/payroll", "")
	require.Equal(t, http.StatusNoContent, status, body)
	for _, want := range []string{
		"schedule carol create with api_key:" + carolID, "refused dan pause with api_key:" + danID + ": schedule payroll acts for somebody else, so you cannot pause it",
		"schedule dan trigger with api_key:" + danID + ", in their own name", "schedule eve trigger with api_key:" + eveID, "schedule flo delete with api_key:" + floID,
		"schedule flo take_over with api_key:" + floID, "refused eve take_over with api_key:" + eveID + ": only owners take over schedules",
	} {
		require.Contains(t, r.done(t, tenant), want)
	}
}

// Who may pause and resume what does not depend on the operation that they use.
func TestPause_OneRuleForBothOperations(t *testing.T) {
	t.Parallel()
	r, tenant := newRig(t), storetest.Tenant(t)
	session := storetest.Session(t, r.worker, tenant)
	require.Equal(t, "ana", session.Principal.ID)
	keys := map[string]string{}
	for name, scope := range map[string]string{"ana": credential.ScopeRun, "dan": credential.ScopeRun, "ben": credential.ScopeDecide, "eve": credential.ScopeRead} {
		keys[name], _ = r.keyOf(t, tenant, name, scope)
	}
	target := `{"scope":"session","target":"` + session.ID + `"}`
	doors := []func(key, action string) int{
		func(key, action string) int {
			path := map[string]string{"pause": "/v1/pauses", "resume": "/v1/pauses:resume"}[action]
			status, _ := r.does(t, keys[key], http.MethodPost, path, target)
			return status
		},
		func(key, action string) int {
			status, _ := r.does(t, keys[key], http.MethodPost, "/v1/sessions/"+session.ID+"/"+action, `{}`)
			return status
		},
	}
	const ok, no = http.StatusOK, http.StatusForbidden
	for _, row := range []struct {
		sets, lifts string
		status      int
	}{
		{"ana", "ana", ok},
		{"ana", "ben", ok},
		{"ana", "dan", no},
		{"ana", "eve", no},
		{"dan", "dan", ok},
		{"dan", "ana", no},
		{"dan", "ben", ok},
		{"ben", "ben", ok},
		{"ben", "ana", no},
		{"ben", "dan", no},
		{"ben", "eve", no},
	} {
		for from, set := range doors {
			require.Equal(t, ok, set(row.sets, "pause"), "%+v through %d", row, from)
			for to, lift := range doors {
				require.Equal(t, row.status, lift(row.lifts, "resume"), "%+v through %d, %d", row, from, to)
				require.Equal(t, ok, set(row.sets, "pause"))
			}
			require.Equal(t, no, set("eve", "pause"))
			require.Equal(t, ok, set(row.sets, "resume"))
		}
	}
	for _, wide := range []string{`{"scope":"tenant"}`, `{"scope":"tool","target":"file.write"}`} {
		for _, path := range []string{"/v1/pauses", "/v1/pauses:resume"} {
			for key, status := range map[string]int{"dan": no, "ben": ok} {
				got, body := r.does(t, keys[key], http.MethodPost, path, wide)
				require.Equal(t, status, got, body)
			}
		}
	}
}
