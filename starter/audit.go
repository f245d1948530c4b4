package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/duration"
)

// audits reads the audit chain.
type audits interface {
	Audit(ctx context.Context, request client.AuditRequest, fn func(client.AuditPage) error) error
}

func (a *app) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "audit",
		Short: "Show, export and verify the record of who decided what",
		Long: `Show, export and verify the audit record: who decided what. Each row of a tenant's record contains the hash of the previous row,
so changing, moving or removing a row is detected. "audit verify" checks an export without a server; "trigger audit.verify"
checks the record in the database.`,
		Example: `  jig audit list --session ses_…
  jig audit head
  jig audit export --out audit.jsonl
  jig audit verify audit.jsonl`,
	}, a.auditListCommand(), a.auditHeadCommand(), a.auditExportCommand(), a.auditVerifyCommand())
}

func (a *app) auditListCommand() *cobra.Command {
	var session, tool, agent string
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List decisions, oldest first",
		Long: `List decisions, oldest first: those of the last 7 days, or all of one session. JSON output has one row per line, as in an export:
{"n", "prev", "hash", "entry"}. The entry is JSON in a string. "approvals --decided" lists decisions about calls with what became of them.`,
		Example: `  jig audit list --since 30d
  jig audit list --by ben --tool 'ledger.*' --outcome denied --since 2026-11-01 --until 2026-12-01
  jig audit list --session ses_… --output json | jq '.entry | fromjson'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := client.AuditRequest{Tenant: a.flags.tenant}
			if f.since == "" && f.until == "" && session == "" {
				f.since = "7d"
			}
			var err error
			if request.AuditFilter, err = f.filter(a, time.Now()); err != nil {
				return err
			}
			if session != "" {
				if err := jig.CheckSessionID(session); err != nil {
					return usage(err)
				}
				request.SessionID = a.session(session)
			}
			request.Tool, request.Agent = tool, agent
			return a.with(cmd.Context(), func(e engine) error { return a.listAudit(cmd.Context(), e, request) })
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only decisions of this session")
	cmd.Flags().StringVar(&tool, "tool", "", "only rows about calls of this tool, or of a category such as file.*")
	cmd.Flags().StringVar(&agent, "agent", "", "only rows about calls of this agent")
	f.add(cmd, "rows", "how far back, e.g. 12h or 30d, or a time such as 2026-12-24 or 2026-12-24T15:00:00Z (default 7d; all with --session or --until)")
	return cmd
}

// longAgo parses a flag with a duration before now, a date (of local time), or a point in time.
func longAgo(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	d, err := duration.Parse(text)
	if err != nil {
		return time.Time{}, usagef("%s is %q; write e.g. 12h, 30d, 2026-12-24 or 2026-12-24T00:00:00Z", flag, text)
	}
	return now.Add(-d), nil
}

func (a *app) listAudit(ctx context.Context, e engine, request client.AuditRequest) error {
	count := 0
	err := e.Audit(ctx, request, func(page client.AuditPage) error {
		for _, row := range page.Rows {
			count++
			if a.json() {
				if err := a.printJSON(row); err != nil {
					return err
				}
				continue
			}
			a.line("%s", a.auditLine(a.out, row))
		}
		return a.failed
	})
	if err == nil && !a.json() {
		a.say("%s", a.err.dim(plural(count, "row", "rows")))
	}
	return err
}

// auditLine formats a row for people: its number, time, action, principal with the proof of identity, subject, status, what was shown, and the reason.
func (a *app) auditLine(c palette, row audit.Row) string {
	number := c.dim(fmt.Sprintf("%4d", row.N))
	var e audit.Entry
	if json.Unmarshal([]byte(row.Entry), &e) != nil {
		return number + " " + c.red("the entry cannot be read; run `audit export` and `audit verify`")
	}
	columns := []string{number, c.dim(e.At.Local().Format(time.DateTime)), fmt.Sprintf("%-10s", oneLine(string(e.Kind), 20))}
	if e.By != "" {
		columns = append(columns, c.bold(oneLine(e.By, 60))+proofText(e.Proof.Text(e.Claimed, e.Evidence.KeyID())))
	}
	subject := e.Subject
	if e.Kind == audit.AuditDelegated {
		subject = "→ " + subject
	}
	for _, what := range []string{e.SessionID, e.Call, e.Tool, subject} {
		if what != "" {
			columns = append(columns, oneLine(jig.ShortVersion(what), 120))
		}
	}
	if e.Status != "" {
		columns = append(columns, a.statusWord(c, oneLine(string(e.Status), 20)))
	}
	if e.Shown != nil {
		if what := titleOf(e.Shown.Preview, e.Shown.Input); what != "" {
			columns = append(columns, "· "+what)
		}
	}
	if words := oneLine(jig.ShortVersion(cmp.Or(e.Reason, e.Note)), 160); words != "" {
		columns = append(columns, "· "+words)
	}
	return strings.Join(columns, " ")
}

func (a *app) auditHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Show the number and the hash of the last row",
		Long: `Show the number and the hash of the last row of the tenant's record. Keep them somewhere else: if a later export does not contain
this row, the record was rewritten. An empty record has the row number 0. JSON output: {"n", "hash"}.`,
		Example: `  jig audit head
  jig audit head --output json >> heads.jsonl`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			// After the last row, there is only the head.
			return e.Audit(ctx, client.AuditRequest{Tenant: a.flags.tenant, After: math.MaxInt64}, func(page client.AuditPage) error {
				head := audit.Head{N: page.HeadN, Hash: page.HeadHash}
				return a.output(head, func() error { return a.print("%s", head) })
			})
		}),
	}
}

func (a *app) auditExportCommand() *cobra.Command {
	var out string
	var from int64
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the tenant's record for `audit verify`",
		Long: `Write the tenant's record as JSON lines: a header {"jig_audit", "tenant", "from", "head": {"n", "hash"}, "exported_at"}, then one
{"n", "prev", "hash", "entry"} per row. The export ends with the row that was last when it started. Keep the head somewhere else:
if a later export does not contain it, the record was rewritten. JSON output with --out: {"file", "tenant", "rows", "head"}.`,
		Example: `  jig audit export --out audit.jsonl
  jig audit export --from 1001 | gzip > audit-2.jsonl.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from < 1 {
				return usagef("--from is %d; the first row is 1", from)
			}
			return a.with(cmd.Context(), func(e engine) error {
				if out == "" {
					_, err := a.exportAudit(cmd.Context(), e, a.stdout, from)
					return err
				}
				return a.exportAuditTo(cmd.Context(), e, out, from)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write; it must not exist yet (default standard output)")
	cmd.Flags().Int64Var(&from, "from", 1, "number of the first row")
	_ = cmd.MarkFlagFilename("out", "jsonl") //nolint:errcheck // fails only for an unknown flag
	return cmd
}

// auditExport is the JSON output of `audit export --out`.
type auditExport struct {
	File   string     `json:"file"`
	Tenant string     `json:"tenant"`
	Rows   int64      `json:"rows"`
	Head   audit.Head `json:"head"`
}

// exportAuditTo exports to a new file. It removes the file again if the export fails.
func (a *app) exportAuditTo(ctx context.Context, e engine, name string, from int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s already exists; an export never overwrites a file", name)
	}
	if err != nil {
		return usage(err)
	}
	done, err := a.exportAudit(ctx, e, f, from)
	if closed := f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("write %s: %w", name, closed)
	}
	if err != nil {
		_ = os.Remove(name)
		return err
	}
	done.File = name
	if a.json() {
		return a.printJSON(done)
	}
	a.say("%s of tenant %s in %s; head %s", plural(int(done.Rows), "row", "rows"), done.Tenant, name, done.Head)
	return nil
}

// exportAudit writes an export. The header contains the chain's head, which comes with the first page.
func (a *app) exportAudit(ctx context.Context, e engine, w io.Writer, from int64) (auditExport, error) {
	done := auditExport{Tenant: a.flags.tenant}
	var out *audit.Writer
	err := e.Audit(ctx, client.AuditRequest{Tenant: a.flags.tenant, After: from - 1}, func(page client.AuditPage) error {
		if out == nil {
			done.Head = audit.Head{N: page.HeadN, Hash: page.HeadHash}
			if from > page.HeadN+1 {
				return usagef("--from is %d, but the record has %s", from, plural(int(page.HeadN), "row", "rows"))
			}
			var err error
			h := audit.Header{Tenant: a.flags.tenant, From: from, Head: done.Head, ExportedAt: time.Now()}
			if out, err = audit.NewWriter(w, h); err != nil {
				return err
			}
		}
		for _, row := range page.Rows {
			done.Rows++
			if err := out.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	return done, out.Close()
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify an export without a server",
		Long: `Verify an export without a server: no row was changed, moved, added or removed, and the export ends where its header says.
FILE may be "-" for standard input. --head is a hash that you noted earlier; the export must contain it. If the check fails, the
command names the first broken row and exits with code 1. JSON output:
{"ok", "tenant", "from", "rows", "head": {"n", "hash"}, "broken"?: {"n", "problem"}}. The head is the last correct row.`,
		Example: `  jig audit verify audit.jsonl
  jig audit verify audit.jsonl --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			r := a.stdin
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return usage(err)
				}
				defer func() { _ = f.Close() }()
				r = f
			}
			report, err := audit.Verify(r, audit.Options{Head: head})
			if err != nil {
				if jig.AsError(err).Field == "head" {
					return usage(err)
				}
				return err
			}
			return a.printVerified(args[0], report)
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "hash noted earlier, which the export must contain")
	return cmd
}

func (a *app) printVerified(file string, r audit.Report) error {
	code := exitDone
	if !r.OK {
		code = exitFailed
	}
	if a.json() {
		return a.exitJSON(r, code)
	}
	if r.Broken != nil {
		a.line("%s %s: %s", a.out.red("broken"), oneLine(file, 0), oneLine(r.Broken.String(), 0))
		a.say("correct so far: %s of tenant %s", plural(int(r.Rows), "row", "rows"), r.Tenant)
		return silent(code)
	}
	a.line("%s %s: %s of tenant %s, head %s", a.out.green("ok"), oneLine(file, 0), plural(int(r.Rows), "row", "rows"), r.Tenant, r.Head)
	if r.From > 1 {
		a.say("the export begins with row %d; the rows before it are not verified", r.From)
	}
	return nil
}
