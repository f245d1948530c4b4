package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// reader is a tool that answers who asked for what.
func reader(name string, permission jig.Permission) tools.Tool {
	return tools.Raw(jig.Tool{
		Name: name, Description: "Reads.", Permission: permission, Risk: jig.RiskSafe, Idempotent: true, RequiredPermission: "look", Labels: &jig.Labels{},
		InputSchema:  json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer","default":7}},"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`),
	}, func(_ context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		var in struct{ ID string }
		if err := json.Unmarshal(input, &in); err != nil || in.ID == "none" {
			return jig.Failure(jig.Errorf(jig.CodeNotFound, "there is no such thing").WithField("/id"))
		}
		if in.ID == "large" {
			return jig.ToolResult{Success: true, Summary: "read", Data: json.RawMessage(`{"text":"` + strings.Repeat("a", 200<<10) + `"}`)}
		}
		return jig.ToolResult{Success: true, Summary: "read", Data: json.RawMessage(`{"by":"` + inv.Principal.ID + `","tenant":"` + inv.Tenant + `","input":` + string(input) + `}`)}
	})
}

// A read without a session obeys the same rules as a call of the tool.
func TestReadWithTool_ReadsOnlyWhatMayBeRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) {
		o.extra = []tools.Tool{
			reader(toolname.EntitiesGet, jig.PermissionRead), reader(toolname.EntitiesCreate, jig.PermissionWrite), reader("crm.read", jig.PermissionRead),
		}
		o.settings.People[0].Permissions = []string{"look"}
	})
	allowed, other := o.settings.People[0], o.settings.People[1]
	read := func(who jig.Principal, tool, input string) (protocol.ToolReading, error) {
		return o.ReadWithTool(t.Context(), protocol.ToolReadRequest{Tenant: o.tenant, Principal: who, Tool: tool, Input: json.RawMessage(input)})
	}
	got, err := read(jig.Principal{ID: allowed.ID, Claimed: true}, toolname.EntitiesGet, `{"id":"a"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"by":"`+allowed.ID+`","tenant":"`+o.tenant+`","input":{"id":"a","n":7}}`, string(got.Data), "with defaults, as the principal")
	refused := func(code jig.Code, who jig.Principal, tool, input string) {
		t.Helper()
		_, err := read(who, tool, input)
		require.Equal(t, code, jig.AsError(activities.ErrorFrom(err)).Code, "%v", err)
	}
	refused(jig.CodeNotFound, allowed, toolname.EntitiesGet, `{"id":"none"}`)
	refused(jig.CodeInvalidInput, allowed, toolname.EntitiesGet, `{"id":"large"}`)
	refused(jig.CodeMissingParam, allowed, toolname.EntitiesGet, `{}`)
	refused(jig.CodeInvalidInput, allowed, toolname.EntitiesGet, `{"id":"a","x":1}`)
	refused(jig.CodeNotPermitted, other, toolname.EntitiesGet, `{"id":"a"}`)
	refused(jig.CodeToolNotFound, allowed, toolname.EntitiesCreate, `{"id":"a"}`)
	refused(jig.CodeToolNotFound, allowed, toolname.EntitiesFilter, `{"id":"a"}`)
	refused(jig.CodeToolNotFound, allowed, "crm.read", `{"id":"a"}`)
	refused(jig.CodeToolNotFound, allowed, refundTool, small)

	o.govern(t, `  - {name: some, when: "tool.name == 'entities.get' && input.id == 'b'", verdict: ask, reason: "b is private"}
  - {name: other, when: "tool.name == 'entities.get' && input.id == 'c'", verdict: deny, reason: "c is secret"}
`)
	_, err = read(allowed, toolname.EntitiesGet, `{"id":"a"}`)
	require.NoError(t, err)
	refused(jig.CodeNotPermitted, allowed, toolname.EntitiesGet, `{"id":"b"}`)
	refused(jig.CodeNotPermitted, allowed, toolname.EntitiesGet, `{"id":"c"}`)
	o.lose()
	refused(jig.CodeNotPermitted, allowed, toolname.EntitiesGet, `{"id":"a"}`)
}
