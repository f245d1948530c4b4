package starter

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/duration"
)

// pendingFlags are the flags that filter the waiting calls.
type pendingFlags struct {
	tool, kind, session, agent, requestedBy string
	older, newer                            string
}

func (f *pendingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "only calls of this tool, or of a category such as file.*")
	flags.StringVar(&f.session, "session", "", "only calls of this session")
	flags.StringVar(&f.agent, "agent", "", "only calls of this agent")
	flags.StringVar(&f.requestedBy, "requested-by", "", "only calls requested by this principal")
	flags.StringVar(&f.older, "older", "", "only calls that have waited longer than this, e.g. 1h or 2d")
	flags.StringVar(&f.newer, "newer", "", "only calls that have waited less than this")
}

// filter converts the flags to a filter.
func (f *pendingFlags) filter(now time.Time) (jig.PendingFilter, error) {
	p := jig.PendingFilter{Tool: f.tool, Kind: jig.PendingKind(f.kind), SessionID: f.session, Agent: f.agent, RequestedBy: f.requestedBy}
	switch p.Kind {
	case "", jig.PendingApproval, jig.PendingReconcile, jig.PendingQuestion:
	default:
		return p, usagef("--kind is %q; it must be approval, reconcile or question", f.kind)
	}
	var err error
	if p.Before, err = ago("--older", f.older, now); err != nil {
		return p, err
	}
	p.After, err = ago("--newer", f.newer, now)
	return p, err
}

// ago parses text as a duration and returns the time that long before now. For an empty text it returns the zero time.
func ago(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d <= 0 {
		return time.Time{}, usagef("%s is %q; write e.g. 45m, 12h or 30d", flag, text)
	}
	return now.Add(-d).UTC(), nil
}

func (a *app) approvalsCommand() *cobra.Command {
	cmd := a.approvalsListCommand("approvals")
	list := a.approvalsListCommand("list")
	list.Example = `  jig approvals list --mine`
	cmd.AddCommand(list, a.showCommand(), a.statisticsCommand())
	return cmd
}

// approvalsListCommand returns the command that lists waiting calls, under a name.
func (a *app) approvalsListCommand(name string) *cobra.Command {
	var f pendingFlags
	var limit int
	var after string
	var mine bool
	cmd := &cobra.Command{
		Use:   name,
		Short: "List the calls that wait for a person, oldest first",
		Long: `List the calls that wait for a person, oldest first. --limit prints one page; pass its cursor to --after to get the next one.
JSON output: {"approvals": […], "next"?}.`,
		Example: `  jig approvals
  jig approvals --mine
  jig approvals --tool 'file.*' --older 1h --limit 20
  jig approvals --session ses_… --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit is %d; it must be 1 or more", limit)
			}
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			if mine {
				if filter.For, err = a.actor(); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), func(e engine) error {
				narrow := filter
				narrow.SessionID = ""
				var page client.PendingPage
				if narrow == (jig.PendingFilter{}) && limit == 0 && after == "" { // older workers know only this request
					page.Approvals, err = e.Approvals(cmd.Context(), a.flags.tenant, f.session)
				} else {
					page, err = e.Pending(cmd.Context(), a.flags.tenant, filter, after, limit)
				}
				if err != nil {
					return err
				}
				return a.printPending(cmd.Context(), e, f.session, page)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.kind, "kind", "", "only calls of this kind: approval, reconcile or question")
	cmd.Flags().BoolVar(&mine, "mine", false, "only calls that you (--as, or the signing key's principal) may decide and have not decided yet")
	cmd.Flags().IntVar(&limit, "limit", 0, "print at most this many (default all)")
	cmd.Flags().StringVar(&after, "after", "", "continue after this cursor")
	return cmd
}

// pendingReport is the JSON output of `approvals`.
type pendingReport struct {
	Approvals []jig.Pending `json:"approvals"`
	Next      string        `json:"next,omitempty"`
}

// printPending prints a page of calls that wait: those of a session and of its children, or those of all sessions.
func (a *app) printPending(ctx context.Context, e engine, session string, page client.PendingPage) error {
	if a.json() {
		return a.printJSON(pendingReport{Approvals: append([]jig.Pending{}, page.Approvals...), Next: page.Next})
	}
	if len(page.Approvals) == 0 {
		a.say("no call is waiting")
	}
	for _, k := range a.cards(ctx, e, page.Approvals) {
		in := k.SessionID
		if k.Via != "" { // the card says where the call of the session waits
			in = a.session(session)
		}
		if err := a.printCard(k, in+" "); err != nil {
			return err
		}
	}
	if page.Next != "" {
		a.say("there is more: --after %s", page.Next)
	}
	return nil
}
