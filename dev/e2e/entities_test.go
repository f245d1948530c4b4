package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const moduleType = `kind: entity_type
name: module
fields:
  - {name: path, type: text, required: true}
  - {name: age_days, type: number, integer: true}
  - {name: risk, type: enum, options: [low, high]}
`

// Tools create, find and read entities on behalf of people with the permissions in the tenant's document. Other tenants do not see the entities.
func TestEntities_AreSharedByAgentsAndPeople(t *testing.T) {
	t.Parallel()
	o := joinTenantEnv(t)
	o.install("tenant.yaml", `kind: tenant
name: `+o.tenant+`
people:
  - {id: tester, permissions: ["entities.*.read", "entities.module.write"]}
  - {id: operator}
`, o.trusting)
	o.install("module.yaml", moduleType, o.trusting)
	var created protocol.CallResult
	create := func(content map[string]any) string {
		created = o.trigger("entities.create", map[string]any{"type": "module", "title": "a module", "content": content})
		if created.Status == jig.CallWaiting {
			require.Equal(t, jig.CallReserved, o.decided(created.SessionID, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status)
			var err error
			created, err = o.WaitCall(t.Context(), o.tenant, created.SessionID)
			require.NoError(t, err)
		}
		var out struct {
			ID string `json:"entity_id"`
		}
		if created.Status == jig.CallSucceeded {
			require.NoError(t, json.Unmarshal(created.Result.Data, &out))
		}
		return out.ID
	}
	require.True(t, eventually(t.Context(), patience, func() bool { // settings are read within a second
		return o.trigger("entities.filter", map[string]any{"type": "module"}).Status == jig.CallSucceeded
	}))
	require.True(t, eventually(t.Context(), patience, func() bool {
		return create(map[string]any{"path": "example.com/a", "age_days": 400, "risk": "high"}) != ""
	}), "%+v", created.Result)
	id := create(map[string]any{"path": "example.com/b", "age_days": 10})
	require.NotEmpty(t, id, "%+v", created.Result)

	old := o.trigger("entities.filter", map[string]any{
		"type": "module", "fields": []string{"path"},
		"where": []map[string]any{{"field": "age_days", "op": "gt", "value": 365}, {"field": "risk", "op": "in", "value": []string{"high"}}},
	})
	require.Equal(t, jig.CallSucceeded, old.Status, "%+v", old.Result)
	require.Contains(t, string(old.Result.Data), "example.com/a")
	require.NotContains(t, string(old.Result.Data), "example.com/b")
	got := o.trigger("entities.get", map[string]any{"id": id})
	require.Equal(t, jig.CallSucceeded, got.Status, "%+v", got.Result)
	require.Contains(t, string(got.Result.Data), "example.com/b")

	other := tenantEnv{testEnv: o.testEnv, tenant: o.tenant + "x"}
	stolen := other.trigger("entities.get", map[string]any{"id": id})
	require.Equal(t, jig.CallFailed, stolen.Status)
	require.Equal(t, jig.CodeNotFound, stolen.Result.Error.Code)
	wrong := o.trigger("entities.filter", map[string]any{"type": "module", "where": []map[string]any{{"field": "age_days", "op": "gt", "value": "old"}}})
	require.Equal(t, jig.CodeInvalidInput, wrong.Result.Error.Code)
}
