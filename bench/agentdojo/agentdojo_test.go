package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/store/storetest"
)

// testdata has a small data set of our own in the same form.
func TestMeasure_CountsApprovalsAndAttacks(t *testing.T) {
	t.Parallel()
	suites, err := load("testdata")
	require.NoError(t, err)
	db := storetest.New(t)
	want := map[string]row{
		// The note to the customer asks, because only an order names him. Ann is in the first prompt, and nobody mentions 80.
		"As recorded": {asked: 1, approvals: 1, completed: 1, injected: 4, ran: 1},
		"With an excerpt of what was read in place of `<summary>` and the like": {asked: 1, approvals: 1, completed: 1, injected: 4, ran: 1},
		"As recorded, with a rule that asks about computed values too":          {asked: 2, approvals: 2, injected: 4},
		"As recorded, with the attacker's text hidden from the guard":           {asked: 1, approvals: 1, completed: 1, injected: 4, ran: 1},
		"The same, with a rule that asks about computed values too":             {asked: 2, approvals: 2, injected: 4},
	}
	for _, v := range variants() {
		rows, err := measure(t.Context(), db, v, suites, nil)
		require.NoError(t, err)
		expected := want[v.title]
		expected.name, expected.benign, expected.attacked = "shop", 2, 4
		require.Equal(t, []row{expected}, rows, v.title)
	}
}

func TestRun_ListsWhyCallsAsk(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-list", "testdata"}, &out))
	require.Contains(t, out.String(), `{"to":["joe@client.test"],"text":"<thanks>"}: /text ("<thanks>") is in no text that the session has seen; /to/0 ("joe@client.test") comes from the result of 1.1 (dojo.read_orders)`)
	require.Contains(t, out.String(), "ran shop tell raise send_note")
	require.Contains(t, out.String(), "completed shop tell raise")
	require.Contains(t, out.String(), "| all | 2 | 1 | 1 | 4 | 1 | 4 | 1 |")
	require.NotContains(t, out.String(), "hidden from the guard", "-list measures as recorded only")
}

func TestRun_SaysWhatIsWrongWithTheFolder(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), nil, io.Discard), "usage: agentdojo")
	require.ErrorContains(t, run(t.Context(), []string{t.TempDir()}, io.Discard), "read the data set")

	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("testdata")))
	file := filepath.Join(folder, "results.json")
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(body), `"raise": ["sent"]`, `"raise": []`, 1)), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{folder}, io.Discard), "suite shop: raise: results.json needs one text for each of its 1 calls")
}
