package policy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

const page = "../../docs/policy.md"

// Every example of the page about data flow holds, too.
func TestDataFlowPage_ExamplesHold(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/data-flow.md")
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, examples)
	for _, example := range examples {
		rules := load(t, example[1])
		for _, r := range policy.Test(t.Context(), rules, nil) {
			require.True(t, r.OK, "%s: %s: %s\n%s", rules.Name(), r.Name, r.Problem, strings.Join(r.Reasons, "\n"))
		}
	}
}

// Every example on the page loads without problems, and each of its cases gives the expected verdict.
func TestPolicyPage_ExamplesHold(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	require.GreaterOrEqual(t, len(examples), 5)
	tenants := 0
	for _, example := range examples {
		if spec.KindOf("example.yaml", []byte(example[1])) == spec.KindTenant {
			doc, problems := spec.Load("example.yaml", []byte(example[1]))
			require.Empty(t, problems)
			require.NotEmpty(t, doc.Tenant().People)
			tenants++
			continue
		}
		rules := load(t, example[1])
		results := policy.Test(t.Context(), rules, nil)
		spoke := map[string]bool{}
		for _, r := range results {
			require.True(t, r.OK, "%s: %s: %s\n%s", rules.Name(), r.Name, r.Problem, strings.Join(r.Reasons, "\n"))
			for _, name := range r.Rules {
				spoke[name] = true
			}
		}
		p, err := spec.LoadPolicy("p.yaml", []byte(example[1]))
		require.NoError(t, err)
		for _, rule := range p.Rules {
			require.True(t, spoke[rule.Name], "%s: no case shows the rule %s", rules.Name(), rule.Name)
		}
	}
	require.Equal(t, 1, tenants)
}

// The page names every key of a policy, a tenant's document and a request for a grant, and everything that rules can read.
func TestPolicyPage_IsComplete(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	var members []json.RawMessage
	for _, kind := range []spec.Kind{spec.KindPolicy, spec.KindTenant} {
		schema, err := os.ReadFile("../../spec/schema/" + string(kind) + ".schema.json")
		require.NoError(t, err)
		members = append(members, schema)
	}
	for i := range reflect.TypeFor[jig.GrantRequest]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[jig.GrantRequest]().Field(i).Tag.Get("json"), ",")
		require.Contains(t, string(raw), "`"+name+"`")
	}
	for name, shape := range spec.PolicyShapes() {
		require.Contains(t, string(raw), "| `"+name+"` |")
		members = append(members, shape)
	}
	seen := 0
	for _, one := range members {
		var value any
		require.NoError(t, json.Unmarshal(one, &value))
		for _, key := range propertiesOf(value) {
			seen++
			require.Contains(t, string(raw), "`"+key+"`")
		}
	}
	require.Greater(t, seen, 90)
}

func propertiesOf(schema any) []string {
	var names []string
	switch s := schema.(type) {
	case []any:
		for _, one := range s {
			names = append(names, propertiesOf(one)...)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				names = append(names, name)
			}
		}
		for _, inner := range s {
			names = append(names, propertiesOf(inner)...)
		}
	}
	return names
}

// The page's table of which rule wins matches what happens.
func TestPolicyPage_TableHolds(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	table, _ := decisions(t)
	sets := []string{"none", "run", "ask", "deny", "run+ask", "fails-run", "fails-ask", "fails-deny"}
	for class, begins := range map[string]string{"free": "reads or drafts", "gated": "writes, or high risk", "fixed": "destructive, always asks, not known"} {
		line := "| " + begins
		for _, set := range sets {
			require.Contains(t, []jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny}, table[class][set])
			line += " | " + string(table[class][set])
		}
		require.Contains(t, string(raw), line+" |\n")
	}
}
