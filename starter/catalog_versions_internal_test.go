package starter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// versioned is an engine with three versions of a policy, the second of which is current.
func versioned() *fake {
	at := func(version string, current bool) protocol.DocumentState {
		return protocol.DocumentState{Kind: "policy", Name: "shop", Version: version, Current: current}
	}
	return &fake{
		catalog: client.Catalog{Agents: []string{"review"}},
		versions: map[string][]protocol.DocumentState{
			"policy shop":     {at("cc3", false), at("bb2", true), at("bb1", false)},
			"composition old": {{Kind: "composition", Name: "old", Version: "aa1"}},
		},
		documents: map[string]string{
			"policy shop@cc3": "kind: policy\nname: shop\nrules: []\n", "policy shop@bb2": "kind: policy\nname: shop\n# two\n",
			"policy shop@bb1": "kind: policy\nname: shop\n# one\n", "composition old@aa1": "kind: composition\nname: old\nsteps: []\n",
		},
		trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}},
	}
}

func TestCatalogCompare_ShowsTheDifference(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		want    string
		failure string
	}{
		"the one before":   {[]string{"shop"}, "-# one\n+# two", ""},
		"with the current": {[]string{"shop", "cc3"}, "-rules: []\n+# two", ""},
		"two":              {[]string{"shop", "bb1", "cc3"}, "-# one\n+rules: []", ""},
		"the same":         {[]string{"shop", "bb2"}, "", ""},
		"unknown version":  {[]string{"shop", "dd"}, "", "shop has no version \"dd\""},
		"two versions":     {[]string{"shop", "bb"}, "", "2 versions of shop begin with \"bb\""},
		"nothing earlier":  {[]string{"old"}, "", "old has no earlier version"},
		"not current":      {[]string{"old", "aa1"}, "", "no version of old is current"},
		"unknown name":     {[]string{"gone"}, "", "no document named \"gone\" was ever registered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := jigCLI(t, versioned(), nil, append([]string{"catalog", "compare"}, tt.args...)...)
			require.Equal(t, tt.failure != "", got.code != exitDone, got.stderr)
			require.Contains(t, got.stderr, tt.failure)
			require.Contains(t, got.stdout, tt.want)
		})
	}
	got := jigCLI(t, versioned(), nil, "catalog", "compare", "shop", "--output", "json")
	var found api.Difference
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &found), got.stderr)
	require.Equal(t, []string{"bb1", "bb2"}, []string{found.From.Version, found.To.Version})
}

func TestCatalogVersions_ListsThem(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, versioned(), nil, "catalog", "versions", "shop")
	require.Regexp(t, `(?s)cc3.*bb2 .* current.*bb1`, got.stdout)
}

func TestCatalogRestore_RegistersTheEarlierText(t *testing.T) {
	t.Parallel()
	e := versioned()
	got := jigCLI(t, e, nil, "catalog", "restore", "shop", "bb1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "catalog.put", e.input.Tool)
	require.JSONEq(t, `{"documents": [{"path": "shop.yaml", "body": "kind: policy\nname: shop\n# one\n",
		"replaces": {"kind": "policy", "name": "shop", "version": "bb2"}}]}`, string(e.input.Input))

	e = versioned() // a document that was removed is new again
	got = jigCLI(t, e, nil, "catalog", "restore", "old", "aa")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"documents": [{"path": "old.yaml", "body": "kind: composition\nname: old\nsteps: []\n",
		"replaces": {"kind": "composition", "name": "old"}}]}`, string(e.input.Input))
	require.Equal(t, exitFailed, jigCLI(t, versioned(), nil, "catalog", "restore", "shop", "dd").code)
}
