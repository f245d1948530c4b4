package starter

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// sessionFlags are the flags that filter the list of sessions.
type sessionFlags struct {
	status, agent, requestedBy, reason, parent, older, newer, after string
	children                                                        bool
	limit                                                           int
}

func (a *app) sessionsCommand() *cobra.Command {
	var f sessionFlags
	cmd := &cobra.Command{
		Use:        "sessions",
		SuggestFor: []string{"list", "ls", "runs"},
		Short:      "List sessions, the newest first",
		Long: `List the tenant's sessions, the newest first: those that people and programs started or, with --children, all. A session waits for a
person (input_required) if nothing in it can go on until somebody decides. --limit prints one page; pass its cursor to --after, with the
same filters, to get the next one.
JSON output: {"sessions": […], "next"?}.`,
		Example: `  jig sessions
  jig sessions --status input_required
  jig sessions --agent dependency-review --newer 1d
  jig sessions --reason partial
  jig sessions --parent ses_… --output json`,
		Aliases: []string{"ls"},
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(a, time.Now())
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(e engine) error { return a.listSessions(cmd.Context(), e, filter, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.status, "status", "", "only sessions with this status: working, input_required, completed, failed or canceled")
	flags.StringVar(&f.agent, "agent", "", `only sessions of this agent, or "call" for single calls of tools and compositions`)
	flags.StringVar(&f.requestedBy, "requested-by", "", "only sessions that this principal started")
	flags.StringVar(&f.reason, "reason", "", "only sessions with this reason, e.g. partial for extractions that failed in part")
	flags.StringVar(&f.parent, "parent", "", "only sessions that this session started")
	flags.BoolVar(&f.children, "children", false, "also sessions that other sessions started")
	flags.StringVar(&f.older, "older", "", "only sessions that started longer ago than this, e.g. 1h or 2d")
	flags.StringVar(&f.newer, "newer", "", "only sessions that started within this time")
	flags.IntVar(&f.limit, "limit", 0, "print at most this many (default 50, at most 100)")
	flags.StringVar(&f.after, "after", "", "continue after this cursor")
	statuses := []string{"working", "input_required", "completed", "failed", "canceled"}
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp)) //nolint:errcheck // fails only for an unknown flag
	return cmd
}

// filter converts the flags to a filter.
func (f *sessionFlags) filter(a *app, now time.Time) (protocol.SessionFilter, error) {
	filter := protocol.SessionFilter{Status: jig.Status(f.status), Agent: f.agent, RequestedBy: f.requestedBy, Reason: f.reason, Roots: !f.children && f.parent == ""}
	switch filter.Status {
	case "", jig.StatusWorking, jig.StatusInputRequired, jig.StatusCompleted, jig.StatusFailed, jig.StatusCanceled:
	default:
		return filter, usagef("--status is %q; it must be working, input_required, completed, failed or canceled", f.status)
	}
	if f.limit < 0 {
		return filter, usagef("--limit is %d; it must be 1 or more", f.limit)
	}
	if f.parent != "" {
		if err := jig.CheckSessionID(f.parent); err != nil {
			return filter, usage(err)
		}
		filter.ParentID = a.session(f.parent)
	}
	var err error
	if filter.Before, err = ago("--older", f.older, now); err != nil {
		return filter, err
	}
	filter.After, err = ago("--newer", f.newer, now)
	return filter, err
}

// listSessions prints a page of sessions. It reads on until the page is full, because a filter by status may leave gaps.
func (a *app) listSessions(ctx context.Context, e engine, filter protocol.SessionFilter, f sessionFlags) error {
	limit := cmp.Or(f.limit, 50)
	all := protocol.SessionsPage{Sessions: []protocol.SessionItem{}, Next: f.after}
	for {
		page, err := e.Sessions(ctx, a.flags.tenant, filter, all.Next, min(limit-len(all.Sessions), 100))
		if err != nil {
			return err
		}
		all.Sessions, all.Next = append(all.Sessions, page.Sessions...), page.Next
		if page.Next == "" || len(all.Sessions) >= limit {
			break
		}
	}
	if a.json() {
		return a.printJSON(all)
	}
	return a.printSessions(all)
}

// partialMark returns what follows the status of an extraction of which some tasks or entities failed, or "".
func partialMark(reason string) string {
	if reason == jig.ReasonPartial {
		return " (" + reason + ")"
	}
	return ""
}

func (a *app) printSessions(page protocol.SessionsPage) error {
	if len(page.Sessions) == 0 {
		a.say("no sessions")
		return nil
	}
	rows := [][]string{{"SESSION", "AGENT", "STATUS", "WAITING", "STARTED", "BY", "TASK"}}
	for _, s := range page.Sessions {
		waiting := ""
		if s.Waiting > 0 {
			waiting = a.out.yellow(strconv.Itoa(s.Waiting))
		}
		rows = append(rows, []string{
			oneLine(s.SessionID, 0), oneLine(cmp.Or(s.Tool, s.Agent), 40), a.statusWord(a.out, string(s.Status)) + partialMark(s.Reason), waiting,
			s.CreatedAt.Local().Format("2006-01-02 15:04:05"), oneLine(s.RequestedBy, 20), oneLine(cmp.Or(s.Error, s.Task, s.Input), 60),
		})
	}
	if err := table(a.stdout, rows); err != nil {
		return err
	}
	if page.Next != "" {
		a.say("there is more: --after %s", page.Next)
	}
	return nil
}
