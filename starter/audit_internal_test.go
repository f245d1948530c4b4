package starter

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/protocol"
)

// recorded is an engine with an audit chain of n rows of the tenant default, in pages of three rows.
func recorded(t *testing.T, n int) *fake {
	t.Helper()
	prev := audit.Genesis("default")
	var rows []audit.Row
	for i := int64(1); i <= int64(n); i++ {
		entry := audit.Entry{
			Kind: audit.AuditApproved, Tenant: "default", At: noon, By: "ana", Claimed: i%2 == 1, SessionID: "ses_1", Call: fmt.Sprintf("%d.1", i),
			Tool: "file.write", Status: jig.CallSucceeded, Reason: "looks\nright \x1b[31m",
		}
		if !entry.Claimed {
			entry.Evidence = &identity.Evidence{Key: "k1"}
		}
		b, err := json.Marshal(entry)
		require.NoError(t, err)
		hash := audit.Hash(prev, i, string(b))
		rows = append(rows, audit.Row{N: i, Prev: hex.EncodeToString(prev[:]), Hash: hex.EncodeToString(hash[:]), Entry: string(b)})
		prev = hash
	}
	f := &fake{}
	head := client.AuditPage{HeadN: int64(n), HeadHash: hex.EncodeToString(prev[:])}
	for len(rows) > 0 {
		page := head
		page.Rows, rows = rows[:min(3, len(rows))], rows[min(3, len(rows)):]
		page.More = len(rows) > 0
		f.audit = append(f.audit, page)
	}
	if n == 0 {
		f.audit = []client.AuditPage{head}
	}
	return f
}

func TestAudit_ExportPassesVerify(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 8} {
		e := recorded(t, n)
		file := filepath.Join(t.TempDir(), "audit.jsonl")
		got := jigCLI(t, e, nil, "audit", "export", "--out", file)
		require.Equal(t, 0, got.code, got.stderr)
		require.Contains(t, got.stderr, fmt.Sprintf("%s of tenant default in %s; head row %d, %s", plural(n, "row", "rows"), file, n, e.audit[0].HeadHash))
		require.Equal(t, client.AuditRequest{Tenant: "default"}, e.audited)

		for _, args := range [][]string{{file}, {file, "--head", e.audit[0].HeadHash}} {
			got = jigCLI(t, nil, nil, append([]string{"audit", "verify"}, args...)...)
			require.Equal(t, 0, got.code, got.stderr)
			require.Equal(t, fmt.Sprintf("ok %s: %s of tenant default, head row %d, %s\n", file, plural(n, "row", "rows"), n, e.audit[0].HeadHash), got.stdout)
		}
		plain := jigCLI(t, e, nil, "audit", "export")
		require.Equal(t, 0, plain.code, plain.stderr)
		written, err := os.ReadFile(file)
		require.NoError(t, err)
		_, rows, _ := strings.Cut(string(written), "\n")
		_, same, _ := strings.Cut(plain.stdout, "\n")
		require.Equal(t, rows, same)
		require.Empty(t, plain.stderr)

		got = jigCLI(t, nil, func(a *app) { a.stdin = strings.NewReader(plain.stdout) }, "audit", "verify", "-", "--output", "json")
		require.Equal(t, 0, got.code, got.stderr)
		require.JSONEq(t, fmt.Sprintf(`{"ok":true,"tenant":"default","from":1,"rows":%d,"head":{"n":%d,"hash":"%s"}}`, n, n, e.audit[0].HeadHash), got.stdout)
	}
}

func TestAudit_PrintsTheHead(t *testing.T) {
	t.Parallel()
	e := recorded(t, 8)
	got := jigCLI(t, e, nil, "audit", "head")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "row 8, "+e.audit[0].HeadHash+"\n", got.stdout)
	got = jigCLI(t, e, nil, "audit", "head", "--output", "json")
	require.JSONEq(t, fmt.Sprintf(`{"n":8,"hash":"%s"}`, e.audit[0].HeadHash), got.stdout)
}

func TestAuditVerify_NamesTheBrokenRow(t *testing.T) {
	t.Parallel()
	export := jigCLI(t, recorded(t, 8), nil, "audit", "export").stdout
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(export, `\"call\":\"5.1\"`, `\"call\":\"6.1\"`, 1)), 0o600))
	got := jigCLI(t, nil, nil, "audit", "verify", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "broken "+file+": row 5: its entry does not hash to ")
	require.Equal(t, "correct so far: 4 rows of tenant default\n", got.stderr)

	got = jigCLI(t, nil, nil, "audit", "verify", file, "--output", "json")
	require.Equal(t, exitFailed, got.code)
	var report struct {
		OK     bool
		Rows   int64
		Broken struct {
			N       int64
			Problem string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.False(t, report.OK)
	require.Equal(t, int64(4), report.Rows)
	require.Equal(t, int64(5), report.Broken.N)
	require.Empty(t, got.stderr)

	require.NoError(t, os.WriteFile(file, []byte(export), 0o600))
	got = jigCLI(t, nil, nil, "audit", "verify", file, "--head", strings.Repeat("a", 64))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "is not in the chain")

	for code, args := range map[int][]string{
		exitUsage:  {file, "--head", "abc"},
		exitFailed: {filepath.Join("testdata", "run.json")},
	} {
		got = jigCLI(t, nil, nil, append([]string{"audit", "verify"}, args...)...)
		require.Equal(t, code, got.code, got.stderr)
		require.Empty(t, got.stdout)
	}
	require.Equal(t, exitUsage, jigCLI(t, nil, nil, "audit", "verify", file+".none").code)
}

func TestAuditVerify_PartialExport(t *testing.T) {
	t.Parallel()
	e := recorded(t, 8)
	e.audit = e.audit[1:] // from row 4
	got := jigCLI(t, e, nil, "audit", "export", "--from", "4", "--tenant", "default")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, int64(3), e.audited.After)
	checked := jigCLI(t, nil, func(a *app) { a.stdin = strings.NewReader(got.stdout) }, "audit", "verify", "-")
	require.Equal(t, 0, checked.code, checked.stderr)
	require.Contains(t, checked.stdout, "ok -: 5 rows")
	require.Contains(t, checked.stderr, "begins with row 4")

	require.Equal(t, exitUsage, jigCLI(t, e, nil, "audit", "export", "--from", "0").code)
	got = jigCLI(t, recorded(t, 8), nil, "audit", "export", "--from", "10")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "--from is 10, but the record has 8 rows")
}

func TestAuditExport_FailureLeavesNoFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	e := recorded(t, 8)
	e.err = jig.Errorf(jig.CodeUnavailable, "the worker is away")
	got := jigCLI(t, e, nil, "audit", "export", "--out", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "the worker is away")
	require.NoFileExists(t, file)

	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	got = jigCLI(t, recorded(t, 8), nil, "audit", "export", "--out", file)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "already exists")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	require.Equal(t, exitUsage, jigCLI(t, recorded(t, 1), nil, "audit", "export", "--out", filepath.Join(file, "x")).code)
}

// A server's word does not read like a signature.
func TestAuditLine_SaysWithWhatProof(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]audit.Entry{
		"ben (vouched by srv_9532f35f)": {Proof: jig.ProofVouched, Evidence: &identity.Evidence{Key: "srv_9532f35f"}},
		"ben (signed with key k1)":      {Proof: jig.ProofKey, Evidence: &identity.Evidence{Key: "k1"}},
		"ben (claimed)":                 {Claimed: true, Proof: jig.ProofClaimed},
	} {
		e.Kind, e.At, e.By, e.Call = audit.AuditApproved, noon, "ben", "3.1"
		entry, err := json.Marshal(e)
		require.NoError(t, err)
		require.Contains(t, newApp("jig", nil, nil, nil, nil).auditLine(palette{}, audit.Row{N: 1, Entry: string(entry)}), want+" 3.1")
	}
}

func TestAuditLine_ShowsToWhomADecisionWasDelegated(t *testing.T) {
	t.Parallel()
	entry, err := json.Marshal(audit.Entry{
		Kind: audit.AuditDelegated, At: noon, By: "ana", SessionID: "ses_1", Call: "3.1", Tool: "cms.publish", Subject: "carl", Status: jig.CallWaiting, Note: "he knows",
	})
	require.NoError(t, err)
	line := newApp("jig", nil, nil, nil, nil).auditLine(palette{}, audit.Row{N: 1, Entry: string(entry)})
	require.True(t, strings.HasSuffix(line, "delegated  ana ses_1 3.1 cms.publish → carl waiting · he knows"), line)
}

func TestAudit_ListsRowsForPeople(t *testing.T) {
	t.Parallel()
	e := recorded(t, 4)
	got := jigCLI(t, e, nil, "audit", "list", "--session", "ses_1")
	require.Equal(t, 0, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 4)
	when := noon.Local().Format(time.DateTime)
	require.Equal(t, "1 "+when+" approved   ana (claimed) ses_1 1.1 file.write succeeded · looks right [31m", strings.TrimSpace(lines[0]))
	require.Contains(t, lines[1], "ana (signed with key k1) ses_1 2.1")
	require.Equal(t, "4 rows\n", got.stderr)
	require.Equal(t, client.AuditRequest{Tenant: "default", AuditFilter: protocol.AuditFilter{SessionID: "ses_1"}}, e.audited)

	got = jigCLI(t, e, nil, "audit", "list", "--since", "2026-01-01T00:00:00Z", "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), e.audited.Since)
	var row audit.Row
	require.NoError(t, json.Unmarshal([]byte(strings.Split(got.stdout, "\n")[3]), &row))
	require.Equal(t, int64(4), row.N)
	require.Empty(t, got.stderr)

	for since, ago := range map[string]time.Duration{"": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour, "12h": 12 * time.Hour} {
		args := []string{"audit", "list"}
		if since != "" {
			args = append(args, "--since", since)
		}
		got, now := jigCLIAt(t, e, args...)
		require.Equal(t, 0, got.code)
		require.WithinDuration(t, now.Add(-ago), e.audited.Since, 0)
	}
	e.audit[0].Rows[0].Entry = "{"
	require.Contains(t, jigCLI(t, e, nil, "audit", "list").stdout, "1 the entry cannot be read")
	for _, args := range [][]string{{"list", "--since", "yesterday"}, {"list", "--session", "a b"}, {"lst"}, {"list", "x"}} {
		require.Equal(t, exitUsage, jigCLI(t, e, nil, append([]string{"audit"}, args...)...).code, args)
	}
}
