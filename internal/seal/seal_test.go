package seal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/seal"
)

func sealed(t *testing.T, tool jig.Tool) jig.Tool {
	t.Helper()
	tool, err := seal.Tool(tool)
	require.NoError(t, err)
	return tool
}

// pay returns a contract as an author would write it.
func pay() jig.Tool {
	return jig.Tool{
		Name: "billing.pay", Description: "Pays a bill.", Icon: "coin", Tags: []string{"money"}, Timeout: time.Minute,
		InputSchema: json.RawMessage(`{"type": "object", "properties": {"amount": {"type": "number", "maximum": 1E2, "description": "In euros."}}}`),
	}
}

// Other programs compute the version in this way from the output of `jig tools --output json`.
func TestVersion_IsTheHashOfTheCanonicalContract(t *testing.T) {
	t.Parallel()
	const rest = `"execution":"activity","idempotent":false,"implementation":"go","input_schema":{"properties":{"amount":` +
		`{"description":"In euros.","maximum":100,"type":"number"}},"type":"object"},"name":"billing.pay","permission":"write",` +
		`"risk":"moderate","tags":["money"],"timeout":60000000000}`
	version := sha256.Sum256([]byte(`{"approval":"auto","category":"billing","description":"Pays a bill.",` + `"execution":"activity","icon":"coin",` + rest[len(`"execution":"activity",`):]))
	meaning := sha256.Sum256([]byte(`{"approval":"auto","category":"billing",` + rest))
	tool := sealed(t, pay())
	require.Equal(t, hex.EncodeToString(version[:]), tool.Version)
	require.Equal(t, hex.EncodeToString(meaning[:]), tool.Meaning)
	require.Equal(t, tool, sealed(t, tool), "sealing again changes nothing")
}

func TestVersion_IgnoresSchemaLayout(t *testing.T) {
	t.Parallel()
	other := pay()
	other.InputSchema = json.RawMessage(`{"properties":{"amount":{"maximum":100,"description":"In\u0020euros.","type":"number"}},"type":"object"}`)
	require.Equal(t, sealed(t, pay()).Version, sealed(t, other).Version)
}

func TestDescriptions_ChangeTheVersionButNotTheMeaning(t *testing.T) {
	t.Parallel()
	first := sealed(t, pay())
	for name, change := range map[string]func(*jig.Tool){
		"description": func(tool *jig.Tool) { tool.Description = "Pays a bill, in full." },
		"icon":        func(tool *jig.Tool) { tool.Icon = "" },
	} {
		tool := pay()
		change(&tool)
		tool = sealed(t, tool)
		require.NotEqual(t, first.Version, tool.Version, name)
		require.Equal(t, first.Meaning, tool.Meaning, name)
	}
	for name, change := range map[string]func(*jig.Tool){
		"name":       func(tool *jig.Tool) { tool.Name = "billing.payAll" },
		"permission": func(tool *jig.Tool) { tool.Permission = jig.PermissionRead },
		"revision":   func(tool *jig.Tool) { tool.Revision = 1 },
		"undo":       func(tool *jig.Tool) { tool.Undo = "billing.refund" },
		"undo_input": func(tool *jig.Tool) { tool.UndoInput = "result" },
		"tags":       func(tool *jig.Tool) { tool.Tags = nil },
		"labels":     func(tool *jig.Tool) { tool.Labels = &jig.Labels{} },
		"a field's meaning": func(tool *jig.Tool) {
			tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number","maximum":100,"description":"In cents."}}}`)
		},
		"the output's schema": func(tool *jig.Tool) { tool.OutputSchema = json.RawMessage(`{"type":"object"}`) },
	} {
		tool := pay()
		change(&tool)
		tool = sealed(t, tool)
		require.NotEqual(t, first.Version, tool.Version, name)
		require.NotEqual(t, first.Meaning, tool.Meaning, name)
	}
}

func TestSeal_RefusesContractsWithoutCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":"object","type":"string"}`, `{"maximum":1e400}`} {
		_, err := seal.Tool(jig.Tool{Name: "a.b", InputSchema: json.RawMessage(schema)})
		require.ErrorContains(t, err, "contract of a.b", schema)
	}
}
