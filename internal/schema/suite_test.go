package schema_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/schema"
)

// required is the number of cases for draft 2020-12 that the official suite requires of every implementation.
const required = 1099

// suite returns the folder of the official test suite, which ships with a module that this one depends on.
func suite(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
}

func TestOfficialSuite_Passes(t *testing.T) {
	t.Parallel()
	dir := suite(t)
	compiler := schema.NewCompiler(schema.Options{Load: func(url string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, "remotes", strings.TrimPrefix(url, "http://localhost:1234/")))
	}})
	files, err := filepath.Glob(filepath.Join(dir, "draft2020-12", "*.json"))
	require.NoError(t, err)
	cases := 0
	for _, file := range files {
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &groups))
		for _, group := range groups {
			compiled, err := compiler.Compile(group.Schema)
			require.NoError(t, err, "%s: %s", filepath.Base(file), group.Description)
			for _, test := range group.Tests {
				err := compiled.Validate(test.Data)
				require.Equal(t, test.Valid, err == nil, "%s: %s: %s: %v", filepath.Base(file), group.Description, test.Description, err)
				cases++
			}
		}
	}
	require.Equal(t, required, cases)
}
