package audit_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// rowsOf returns a chain of n rows.
func rowsOf(t *testing.T, tenant string, n int) []audit.Row {
	t.Helper()
	prev := audit.Genesis(tenant)
	rows := make([]audit.Row, 0, n)
	for i := 1; i <= n; i++ {
		entry, err := json.Marshal(audit.Entry{
			Kind: audit.AuditApproved, Tenant: tenant, At: noon, By: "ana", SessionID: "ses_1", Call: fmt.Sprintf("1.%d", i),
			Reason: "it is <fine>, \"really\"\n\u2028é", Patch: json.RawMessage(`[{"op":"replace","path":"/a","value":"\u0000"}]`),
		})
		require.NoError(t, err)
		hash := audit.Hash(prev, int64(i), string(entry))
		rows = append(rows, audit.Row{N: int64(i), Prev: hex.EncodeToString(prev[:]), Hash: hex.EncodeToString(hash[:]), Entry: string(entry)})
		prev = hash
	}
	return rows
}

// export writes rows with a header that matches them.
func export(t *testing.T, tenant string, rows []audit.Row) string {
	t.Helper()
	last := rows[len(rows)-1]
	return write(t, audit.Header{Tenant: tenant, From: rows[0].N, Head: audit.Head{N: last.N, Hash: last.Hash}, ExportedAt: noon}, rows)
}

func write(t *testing.T, h audit.Header, rows []audit.Row) string {
	t.Helper()
	var b bytes.Buffer
	w, err := audit.NewWriter(&b, h)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return b.String()
}

func verify(t *testing.T, text string) audit.Report {
	t.Helper()
	report, err := audit.Verify(strings.NewReader(text), audit.Options{})
	require.NoError(t, err)
	require.Equal(t, report.Broken == nil, report.OK)
	return report
}

func TestVerify_IntactChain(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "acme", 50)
	require.Equal(t, audit.Report{
		OK: true, Tenant: "acme", From: 1, Rows: 50, Head: audit.Head{N: 50, Hash: rows[49].Hash},
	}, verify(t, export(t, "acme", rows)))

	require.Equal(t, audit.Report{
		OK: true, Tenant: "acme", From: 11, Rows: 40, Head: audit.Head{N: 50, Hash: rows[49].Hash},
	}, verify(t, export(t, "acme", rows[10:])), "from its middle")

	genesis := audit.Genesis("acme")
	empty := audit.Header{Tenant: "acme", From: 1, Head: audit.Head{Hash: hex.EncodeToString(genesis[:])}, ExportedAt: noon}
	require.Equal(t, audit.Report{OK: true, Tenant: "acme", From: 1, Head: empty.Head}, verify(t, write(t, empty, nil)))

	other := audit.Genesis("other")
	empty.Head.Hash = hex.EncodeToString(other[:])
	require.Contains(t, verify(t, write(t, empty, nil)).Broken.String(), "the chain's head says")
}

func TestExport_Format(t *testing.T) {
	t.Parallel()
	lines := strings.Split(export(t, "acme", rowsOf(t, "acme", 1)), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, `{"jig_audit":1,"tenant":"acme","from":1,"head":{"n":1,"hash":"`+rowsOf(t, "acme", 1)[0].Hash+`"},"exported_at":"2026-01-02T12:00:00Z"}`, lines[0])
	require.True(t, strings.HasPrefix(lines[1], `{"n":1,"prev":"`), lines[1])
}

// If any byte of any row is changed to any other, the check names that row.
func TestVerify_EveryChangedByteIsFound(t *testing.T) {
	t.Parallel()
	text := export(t, "acme", rowsOf(t, "acme", 4))
	first := strings.Index(text, "\n") + 1
	row := int64(1)
	for at := first; at < len(text); at++ {
		for _, b := range []byte{text[at] ^ 1, text[at] ^ 0x20, text[at] ^ 0x80, ' ', '\n', '"', '0', 0} {
			if b == text[at] {
				continue
			}
			changed := []byte(text)
			changed[at] = b
			report, err := audit.Verify(bytes.NewReader(changed), audit.Options{})
			require.NoError(t, err)
			if report.OK || report.Broken.N != row {
				require.Fail(t, "not found", "byte %d of row %d, %q to %q: %+v", at, row, text[at], b, report)
			}
		}
		if text[at] == '\n' {
			row++
		}
	}
	require.Equal(t, int64(5), row)
}

func TestVerify_EveryRemovedByteIsFound(t *testing.T) {
	t.Parallel()
	text := export(t, "acme", rowsOf(t, "acme", 3))
	first := strings.Index(text, "\n") + 1
	for at := first; at < len(text); at++ {
		require.False(t, verify(t, text[:at]).OK, "cut at %d", at)
		require.False(t, verify(t, text[:at]+text[at+1:]).OK, "without byte %d", at)
		require.False(t, verify(t, text[:at]+" "+text[at:]).OK, "with a space at %d", at)
	}
}

// A changed header no longer fits the rows. Only the time of the export can be changed without notice.
func TestVerify_EveryChangedByteOfTheHeaderIsFound(t *testing.T) {
	t.Parallel()
	text := export(t, "acme", rowsOf(t, "acme", 3))
	for at := range strings.Index(text, `"exported_at"`) {
		for _, b := range []byte{text[at] ^ 1, text[at] ^ 0x20, ' ', '2'} {
			if b == text[at] {
				continue
			}
			changed := []byte(text)
			changed[at] = b
			report, err := audit.Verify(bytes.NewReader(changed), audit.Options{})
			require.True(t, err != nil || !report.OK, "byte %d, %q to %q", at, text[at], b)
		}
	}
}

func TestVerify_FindsManipulatedRows(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "acme", 20)
	header := audit.Header{Tenant: "acme", From: 1, Head: audit.Head{N: 20, Hash: rows[19].Hash}, ExportedAt: noon}
	longer := rowsOf(t, "acme", 21)
	swapped := slices.Clone(rows)
	swapped[4], swapped[5] = swapped[5], swapped[4]
	renumbered := slices.Clone(slices.Delete(slices.Clone(rows), 6, 7))
	for i := range renumbered {
		renumbered[i].N = int64(i + 1)
	}
	others := rowsOf(t, "other", 20)
	// rewritten is an intact chain with other contents. The owner of the database could write such a chain.
	rewritten := rowsOf(t, "acme", 19)
	for name, row := range map[string]struct {
		rows    []audit.Row
		n       int64
		problem string
	}{
		"removed":                {slices.Delete(slices.Clone(rows), 6, 7), 7, "is missing; row 8 is in its place"},
		"first gone":             {rows[1:], 1, "is missing; row 2 is in its place"},
		"all gone":               {nil, 1, "is missing; the chain continues to row 20"},
		"tail cut":               {rows[:15], 16, "is missing; the chain continues to row 20"},
		"swapped":                {swapped, 5, "is missing; row 6 is in its place"},
		"duplicated":             {slices.Insert(slices.Clone(rows), 8, rows[7]), 9, "row 8 is in its place"},
		"appended":               {longer, 21, "comes after the chain's end, row 20"},
		"renumbered":             {renumbered, 7, "it follows"},
		"a row of another chain": {append(slices.Clone(rows[:9]), others[9]), 10, "it follows"},
		"rewritten, up to 19":    {rewritten, 20, "is missing"},
		"other tenant":           {others, 1, "it follows"},
	} {
		report := verify(t, write(t, header, row.rows))
		require.NotNil(t, report.Broken, name)
		require.Equal(t, row.n, report.Broken.N, "%s: %s", name, report.Broken)
		require.Contains(t, report.Broken.Problem, row.problem, name)
		require.LessOrEqual(t, report.Rows, row.n, name)
	}
}

func TestVerify_RowMustMatchItsHash(t *testing.T) {
	t.Parallel()
	prev := audit.Genesis("acme")
	for entry, problem := range map[string]string{
		`{"kind":"approved","tenant":"other"}`: `its entry belongs to the tenant "other"`,
		`not JSON`:                             "its entry is not an audit entry",
		`[]`:                                   "its entry is not an audit entry",
	} {
		hash := audit.Hash(prev, 1, entry)
		row := audit.Row{N: 1, Prev: hex.EncodeToString(prev[:]), Hash: hex.EncodeToString(hash[:]), Entry: entry}
		report := verify(t, export(t, "acme", []audit.Row{row}))
		require.NotNil(t, report.Broken, entry)
		require.Contains(t, report.Broken.String(), "row 1: "+problem)
	}
	rows := rowsOf(t, "acme", 17)
	rows[16].Entry = strings.Replace(rows[16].Entry, "ana", "bob", 1)
	require.Contains(t, verify(t, export(t, "acme", rows)).Broken.String(), "row 17: its entry does not hash to "+rows[16].Hash)
}

func TestVerify_NotedHeadMustOccur(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "acme", 20)
	genesis := audit.Genesis("acme")
	text, tail := export(t, "acme", rows), export(t, "acme", rows[10:])
	for name, row := range map[string]struct {
		text, head string
		ok         bool
	}{
		"the last":          {text, rows[19].Hash, true},
		"one before":        {text, strings.ToUpper(rows[4].Hash) + "\n", true},
		"none yet":          {text, hex.EncodeToString(genesis[:]), true},
		"before the middle": {tail, rows[9].Hash, true},
		"not in the part":   {tail, rows[4].Hash, false},
		"rewritten":         {export(t, "acme", rows[:10]), rows[19].Hash, false},
	} {
		report, err := audit.Verify(strings.NewReader(row.text), audit.Options{Head: row.head})
		require.NoError(t, err, name)
		require.Equal(t, row.ok, report.OK, "%s: %+v", name, report.Broken)
		if !row.ok {
			require.Contains(t, report.Broken.String(), "the noted hash "+row.head+" is not in the chain")
		}
	}
	hash := hex.EncodeToString(genesis[:])
	empty := write(t, audit.Header{Tenant: "acme", From: 1, Head: audit.Head{Hash: hash}, ExportedAt: noon}, nil)
	report, err := audit.Verify(strings.NewReader(empty), audit.Options{Head: hash})
	require.NoError(t, err)
	require.True(t, report.OK, "the hash was noted while the chain was empty")

	_, err = audit.Verify(strings.NewReader(text), audit.Options{Head: "abc"})
	require.Equal(t, "head", jig.AsError(err).Field)
}

func TestVerify_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0", 64)
	for text, field := range map[string]string{
		"":                        "header",
		"hello\n":                 "header",
		`{"jig_audit":1}`:         "header",
		"{}\n":                    "header.jig_audit",
		"{\"jig_audit\":2}\n":     "header.jig_audit",
		"{ \"jig_audit\":1}\n":    "header.from",
		strings.Repeat("x", 2e6):  "header",
		"{\"jig_audit\":\"1\"}\n": "header",
		`{"jig_audit":1,"tenant":"acme","from":1,"head":{"n":-1,"hash":"` + hash + `"}}` + "\n":                                           "header.head",
		`{"jig_audit":1,"tenant":"acme","from":1,"head":{"n":1,"hash":"abc"}}` + "\n":                                                     "header.head",
		`{"jig_audit":1,"tenant":"acme","from":9,"head":{"n":3,"hash":"` + hash + `"}}` + "\n":                                            "header.head",
		`{"jig_audit":1,"tenant":"A B","from":1,"head":{"n":3,"hash":"` + hash + `"}}` + "\n":                                             "header.tenant",
		`{"jig_audit":1,"tenant":"acme","from":1,"head":{"n":3,"hash":"` + hash + `"},"exported_at":"2026-01-02T12:00:00Z","x":1}` + "\n": "header",
	} {
		_, err := audit.Verify(strings.NewReader(text), audit.Options{})
		e := jig.AsError(err)
		require.Equal(t, jig.CodeInvalidInput, e.Code, "%.80s: %v", text, err)
		require.Equal(t, field, e.Field, "%.80s: %v", text, err)
	}
	_, err := audit.NewWriter(io.Discard, audit.Header{Tenant: "acme", From: 1})
	require.Equal(t, "header.head", jig.AsError(err).Field)
}

func TestVerify_BoundsLineLength(t *testing.T) {
	t.Parallel()
	text := export(t, "acme", rowsOf(t, "acme", 2))
	report := verify(t, text[:strings.LastIndex(text[:len(text)-1], "\n")+1]+strings.Repeat("x", 2<<20)+"\n")
	require.Equal(t, "row 2: its line is longer than 1048576 bytes", report.Broken.String())
}

// failing is a reader that returns the data of r and then an error.
type failing struct{ r io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestVerify_ReadErrorIsReturned(t *testing.T) {
	t.Parallel()
	text := export(t, "acme", rowsOf(t, "acme", 2))
	for _, part := range []string{text, text[:20]} {
		_, err := audit.Verify(failing{strings.NewReader(part)}, audit.Options{})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

// Verify checks an export while it is still arriving.
func TestVerify_Streams(t *testing.T) {
	t.Parallel()
	const many = 20_000
	rows := rowsOf(t, "acme", many)
	r, w := io.Pipe()
	go func() {
		out, err := audit.NewWriter(w, audit.Header{Tenant: "acme", From: 1, Head: audit.Head{N: many, Hash: rows[many-1].Hash}, ExportedAt: noon})
		for i := 0; err == nil && i < many; i++ {
			err = out.Write(rows[i])
		}
		if err == nil {
			err = out.Close()
		}
		w.CloseWithError(err)
	}()
	report, err := audit.Verify(r, audit.Options{Head: rows[many/2].Hash})
	require.NoError(t, err)
	require.True(t, report.OK, "%+v", report)
	require.Equal(t, int64(many), report.Rows)
}

func BenchmarkVerify(b *testing.B) {
	var text bytes.Buffer
	prev := audit.Genesis("acme")
	const rows = 1000
	var list []audit.Row
	for i := int64(1); i <= rows; i++ {
		entry := fmt.Sprintf(`{"kind":"approved","tenant":"acme","at":"2026-01-02T12:00:00Z","by":"ana","session_id":"ses_1","call":"%d.1"}`, i)
		hash := audit.Hash(prev, i, entry)
		list = append(list, audit.Row{N: i, Prev: hex.EncodeToString(prev[:]), Hash: hex.EncodeToString(hash[:]), Entry: entry})
		prev = hash
	}
	w, err := audit.NewWriter(&text, audit.Header{Tenant: "acme", From: 1, Head: audit.Head{N: rows, Hash: hex.EncodeToString(prev[:])}, ExportedAt: noon})
	require.NoError(b, err)
	for _, row := range list {
		require.NoError(b, w.Write(row))
	}
	require.NoError(b, w.Close())
	for b.Loop() {
		report, err := audit.Verify(bytes.NewReader(text.Bytes()), audit.Options{})
		require.NoError(b, err)
		require.True(b, report.OK)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"jig_audit":1,"tenant":"acme","from":1,"head":{"n":0,"hash":"0000000000000000000000000000000000000000000000000000000000000000"},"exported_at":"2026-01-02T12:00:00Z"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := audit.Verify(bytes.NewReader(data), audit.Options{})
		if err == nil && report.OK == (report.Broken != nil) {
			require.Fail(t, "the report contradicts itself", "%+v", report)
		}
	})
}
