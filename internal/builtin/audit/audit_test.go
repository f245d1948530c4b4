package audittool_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	audittool "github.com/jig-run/jig/internal/builtin/audit"
	"github.com/jig-run/jig/tools/tooltest"
)

// book is a chain in memory. meanwhile is called before each read of rows.
type book struct {
	rows      []audit.Row
	head      audit.Head
	meanwhile func(b *book)
	failed    error
}

func newBook(n int) *book {
	b := &book{meanwhile: func(*book) {}}
	genesis := audit.Genesis("acme")
	b.head.Hash = hex.EncodeToString(genesis[:])
	for range n {
		b.append()
	}
	return b
}

func (b *book) append() {
	prev, err := hex.DecodeString(b.head.Hash)
	if err != nil || len(prev) != 32 {
		panic("the head of a test's chain is no hash")
	}
	n := b.head.N + 1
	entry := fmt.Sprintf(`{"kind":"approved","tenant":"acme","at":"2026-01-02T12:00:00Z","call":"%d.1"}`, n)
	hash := audit.Hash([32]byte(prev), n, entry)
	row := audit.Row{N: n, Prev: b.head.Hash, Hash: hex.EncodeToString(hash[:]), Entry: entry}
	b.rows, b.head = append(b.rows, row), audit.Head{N: n, Hash: row.Hash}
}

func (b *book) kit(t *testing.T) *tooltest.Kit {
	t.Helper()
	kit := tooltest.New(t, audittool.Tools(audittool.Options{
		Rows: func(_ context.Context, tenant string, after int64, limit int) ([]audit.Row, error) {
			require.Equal(t, "acme", tenant)
			b.meanwhile(b)
			var found []audit.Row
			for _, row := range b.rows {
				if row.N > after && len(found) < limit {
					found = append(found, row)
				}
			}
			return found, b.failed
		},
		Head: func(context.Context, string) (int64, string, error) { return b.head.N, b.head.Hash, nil },
	})...)
	kit.Invocation.Tenant = "acme"
	return kit
}

func (b *book) verify(t *testing.T, in audittool.Input) audittool.Result {
	t.Helper()
	var found audittool.Result
	b.kit(t).Succeed(audittool.VerifyTool, in, &found)
	require.Equal(t, found.Broken == nil, found.OK)
	return found
}

func TestVerify_ReadsTheWholeChain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 500, 1234} {
		b := newBook(n)
		require.Equal(t, audittool.Result{OK: true, Rows: int64(n), Head: b.head}, b.verify(t, audittool.Input{}))
	}
	result := newBook(3).kit(t).Succeed(audittool.VerifyTool, struct{}{}, nil)
	require.True(t, strings.HasPrefix(result.Summary, "3 rows in order, head "), result.Summary)
}

// Rows may be appended while the chain is read; that is not an error.
func TestVerify_WorksWhileRowsAreAppended(t *testing.T) {
	t.Parallel()
	b := newBook(700)
	head := b.head
	b.meanwhile = (*book).append
	require.Equal(t, audittool.Result{OK: true, Rows: 700, Head: head}, b.verify(t, audittool.Input{}))
}

func TestVerify_NamesTheFirstBrokenRow(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change  func(b *book)
		broken  string
		inOrder int64
	}{
		"changed": {func(b *book) { b.rows[600].Entry += " " }, "row 601: its entry does not hash to", 600},
		"gone":    {func(b *book) { b.rows = append(b.rows[:500], b.rows[501:]...) }, "row 501: is missing; row 502 is in its place", 500},
		"tail":    {func(b *book) { b.rows = b.rows[:650] }, "row 651: is missing; the chain continues to row 700", 650},
		"head": {
			func(b *book) { b.head = audit.Head{N: 699, Hash: b.rows[698].Hash} },
			"row 700: comes after the chain's end, row 699", 699,
		},
		"head's hash": {func(b *book) { b.head.Hash = b.rows[0].Hash }, "row 700: its hash is", 700},
	} {
		b := newBook(700)
		row.change(b)
		found := b.verify(t, audittool.Input{})
		require.NotNil(t, found.Broken, name)
		require.Contains(t, found.Broken.String(), row.broken, name)
		require.Equal(t, row.inOrder, found.Rows, name)
	}
	b := newBook(2)
	b.rows[1].Entry = "{}"
	result := b.kit(t).Succeed(audittool.VerifyTool, struct{}{}, nil)
	require.True(t, strings.HasPrefix(result.Summary, "broken: row 2: its entry"), result.Summary)
}

func TestVerify_LooksForANotedHead(t *testing.T) {
	t.Parallel()
	b := newBook(20)
	for _, n := range []int{0, 10, 19} {
		require.True(t, b.verify(t, audittool.Input{Head: b.rows[n].Hash}).OK)
	}
	require.True(t, b.verify(t, audittool.Input{Head: b.rows[0].Prev}).OK, "noted before the first row")
	missing := b.verify(t, audittool.Input{Head: strings.Repeat("a", 64)})
	require.Contains(t, missing.Broken.String(), "is not in the chain")
	require.Equal(t, jig.CodeInvalidInput, b.kit(t).Fail(audittool.VerifyTool, audittool.Input{Head: "abc"}).Code)
}

func TestVerify_ReportsErrors(t *testing.T) {
	t.Parallel()
	b := newBook(1)
	b.failed = jig.Errorf(jig.CodeUnavailable, "the database is away")
	require.Equal(t, jig.CodeUnavailable, b.kit(t).Fail(audittool.VerifyTool, struct{}{}).Code)
}

func TestContract_OnlyReads(t *testing.T) {
	t.Parallel()
	tool, ok := newBook(0).kit(t).Registry.Tool(audittool.VerifyTool)
	require.True(t, ok)
	require.Equal(t, jig.PermissionRead, tool.Permission)
	require.Equal(t, jig.RiskSafe, tool.Risk)
	require.True(t, tool.Idempotent)
	require.Equal(t, []string{"operator"}, tool.Tags)
}
