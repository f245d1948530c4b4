package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/starter"
	"github.com/jig-run/jig/worker"
)

// markRestoredCommand returns the command that an operator runs once after restoring the database from a backup.
func markRestoredCommand(shell starter.Shell) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "mark-restored",
		Short: "Hold back calls that may have run since a restored backup was made",
		Long: `Mark the open calls of all tenants that may have run since the backup was made. Run it after the database was restored from the
backup and before the first worker starts. A marked call that is not idempotent cannot run until a person says whether it happened
(jig reconcile). The same is true of a composition that writes and had not begun. Other calls that write may run again under their
idempotency keys.

It needs JIG_DATABASE_URL. Running it again does not change calls that are already marked. Run it only after a restore: it also marks calls
that workers are running at that moment.`,
		Example: `  jig mark-restored --dry-run
  jig mark-restored`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := settingsOf(shell)
			if err != nil {
				return err
			}
			marked, err := worker.MarkRestored(cmd.Context(), settings, settings.Logger(shell.Stderr()), dry)
			if err != nil {
				err = shell.Misuse(err)
				if len(marked) == 0 {
					return err
				}
			}
			text := countOfRestored(marked, dry)
			if dry && len(marked) > 0 {
				text = listOfRestored(marked) + text
			}
			if printed := shell.Print(text, reportOfRestored(marked, dry)); err == nil {
				err = printed
			}
			return err
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "list the calls that would be marked, and change nothing")
	return c
}

// restoredReport is the JSON output of the command.
type restoredReport struct {
	DryRun bool           `json:"dry_run"`
	Calls  []restoredCall `json:"calls"`
}

// restoredCall is a call that was marked, or would be.
type restoredCall struct {
	Tenant    string         `json:"tenant"`
	SessionID string         `json:"session_id"`
	CallID    string         `json:"call_id"`
	Tool      string         `json:"tool"`
	Status    jig.CallStatus `json:"status"`
	// Asks is true if a person must say whether the call happened, and false if it may run again under its key.
	Asks bool `json:"asks"`
}

func reportOfRestored(list []store.Restored, dry bool) restoredReport {
	report := restoredReport{DryRun: dry, Calls: make([]restoredCall, len(list))}
	for i, r := range list {
		report.Calls[i] = restoredCall{Tenant: r.Tenant, SessionID: r.SessionID, CallID: r.Call, Tool: r.Tool, Status: r.Status, Asks: r.Asks}
	}
	return report
}

// These texts say what happens to a marked call.
const (
	asks     = "asks a person"
	underKey = "may run again under its key"
)

// listOfRestored formats the calls as a table.
func listOfRestored(list []store.Restored) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TENANT\tSESSION\tCALL\tTOOL\tSTATUS\tTHEN")
	for _, r := range list {
		then := underKey
		if r.Asks {
			then = asks
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Tenant, r.SessionID, r.Call, r.Tool, r.Status, then)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}

// countOfRestored reports how many calls of each tenant were marked. The list must be sorted by tenant.
func countOfRestored(list []store.Restored, dry bool) string {
	did := "marked"
	if dry {
		did = "would mark"
	}
	if len(list) == 0 {
		return did + " no calls\n"
	}
	var b strings.Builder
	for len(list) > 0 {
		tenant, asking, n := list[0].Tenant, 0, 0
		for ; n < len(list) && list[n].Tenant == tenant; n++ {
			if list[n].Asks {
				asking++
			}
		}
		_, _ = fmt.Fprintf(&b, "tenant %s: %s %d: a person is asked about %d, and %d may run again under their keys\n", tenant, did, n, asking, n-asking)
		list = list[n:]
	}
	return b.String()
}
