package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
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
JSON output: {"sessions": […], "next_cursor"?}.`,
		Example: `  jig sessions
  jig sessions --status input_required
  jig sessions --agent dependency-review --newer 1d
  jig sessions --reason partial
  jig sessions --parent ses_… --output json`,
		Aliases: []string{"ls"},
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
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
	completeFlag(cmd, "status", "working", "input_required", "completed", "failed", "canceled")
	return cmd
}

// filter converts the flags to a filter.
func (f *sessionFlags) filter(now time.Time) (protocol.SessionFilter, error) {
	filter := protocol.SessionFilter{Status: jig.Status(f.status), Agent: f.agent, RequestedBy: f.requestedBy, Reason: f.reason, Children: f.children}
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
		filter.ParentID = f.parent
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
	all := protocol.SessionList{Sessions: []protocol.SessionItem{}, Next: f.after}
	for {
		page, err := ask(ctx, a, e, api.ListSessions, protocol.SessionsRequest{
			SessionFilter: filter, Cursor: all.Next, Limit: min(limit-len(all.Sessions), 100),
		})
		if err != nil {
			return err
		}
		all.Sessions, all.Next = append(all.Sessions, page.Sessions...), page.Next
		if page.Next == "" || len(all.Sessions) >= limit {
			break
		}
	}
	return a.output(all, func() error { return a.printSessions(all) })
}

// partialMark returns what follows the status of an extraction of which some tasks or entities failed, or "".
func partialMark(reason string) string {
	if reason == jig.ReasonPartial {
		return " (" + reason + ")"
	}
	return ""
}

func (a *app) printSessions(page protocol.SessionList) error {
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
	a.table(rows)
	if page.Next != "" {
		a.say("there is more: --after %s", page.Next)
	}
	return nil
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "status SESSION|ENTITY",
		SuggestFor: []string{"show"},
		Short:      "Show the status of a session and its waiting calls, or the progress of an entity's extraction",
		Example: `  jig status ses_…
  jig status ent_…
  jig status ses_… --output json | jq .pending`,
		Args: sessionArgs(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			if isEntity(args[0]) {
				return a.entityStatus(ctx, e, args[0])
			}
			view, err := e.Status(ctx, a.flags.tenant, a.session(args[0]))
			if err != nil {
				return err
			}
			if view.Answer, err = e.Answer(ctx, a.flags.tenant, view); err != nil {
				return err
			}
			if view.Output, err = a.wholeOutput(ctx, e, view); err != nil {
				return err
			}
			return a.output(wholeLists(view), func() error { return a.printStatus(ctx, e, view) })
		}),
	}
}

// wholeLists replaces nil lists with empty ones, so that programs always get a list.
func wholeLists(view jig.SessionView) jig.SessionView {
	if view.Pending == nil {
		view.Pending = []jig.Pending{}
	}
	if view.Calls == nil {
		view.Calls = []jig.CallView{}
	}
	return view
}

func (a *app) printStatus(ctx context.Context, e engine, view jig.SessionView) error {
	rows := [][]string{
		{"session", a.out.bold(view.SessionID)},
		{"agent", agentName(view.Agent)},
		{"status", a.statusWord(a.out, string(view.Status))},
		{"pass", fmt.Sprint(view.Pass)},
	}
	if view.Reason != "" {
		rows = append(rows, []string{"reason", oneLine(view.Reason, 0)})
	}
	for _, p := range view.Paused {
		rows = append(rows, []string{"paused", a.out.yellow(pauseText(p))})
	}
	for _, why := range view.Held {
		rows = append(rows, []string{"held back", a.out.yellow(oneLine(why, 0))})
	}
	for _, w := range view.Waits {
		rows = append(rows, []string{"waits", a.out.yellow(oneLine(w.String(), 0))})
		if w.Event != "" {
			rows = append(rows, []string{"", a.eventCommandFor(cmp.Or(w.SessionID, view.SessionID), w)})
		}
	}
	if view.Error != nil {
		rows = append(rows, []string{"error", a.out.red(oneLine(view.Error.Error(), 0))})
	} else if why := undoneBecause(view.Pending); why != "" {
		rows = append(rows, []string{"error", a.out.red(oneLine(why, 0)) + "; what was done is being undone"})
	}
	a.table(rows)
	if len(view.Calls) > 0 {
		a.line("")
		calls := make([][]string, 0, len(view.Calls))
		for _, call := range view.Calls {
			text := call.Summary
			if call.Error != nil {
				text = string(call.Error.Code) + ": " + call.Error.Message
			}
			if call.Child != "" && !call.Status.Final() {
				text = "→ " + call.Child
			}
			took := shortDuration(time.Duration(call.DurationMS) * time.Millisecond)
			calls = append(calls, []string{oneLine(call.Call, 0), oneLine(call.Tool, 80), a.statusWord(a.out, string(call.Status)), took, oneLine(text, 100)})
		}
		a.table(calls)
	}
	for i := range view.Pending {
		view.Pending[i].SessionID = cmp.Or(view.Pending[i].SessionID, view.SessionID)
	}
	for _, k := range a.cards(ctx, e, view.Pending) {
		if err := a.printCard(k, "\n"); err != nil {
			return err
		}
	}
	switch {
	case len(view.Output) > 0:
		return a.print("\n%s", safeText(prettyJSON(view.Output)))
	case view.Answer != "":
		return a.print("\n%s", safeText(view.Answer))
	}
	return nil
}

// undoneBecause returns why a run failed of which an undo waits; "" if none does.
func undoneBecause(waiting []jig.Pending) string {
	for _, p := range waiting {
		if changes := jig.Changes(p.Reasons); len(changes) > 0 && strings.HasPrefix(changes[0], jig.UndoOf) {
			_, why, _ := strings.Cut(changes[0], jig.Because)
			return why
		}
	}
	return ""
}

// agentName returns the name of a session's agent for people: "none" for a call that was made without one.
func agentName(name string) string {
	if name == jig.CallAgent {
		return "none"
	}
	return name
}

// wholeOutput returns a session's whole output, or nil if there is none. If the view has only the beginning, it fetches the rest.
func (a *app) wholeOutput(ctx context.Context, e engine, view jig.SessionView) (json.RawMessage, error) {
	result := &jig.ToolResult{Data: view.Output}
	if view.OutputArtifact != "" {
		result.Artifacts = []string{view.OutputArtifact}
	}
	whole, err := e.WholeResult(ctx, a.flags.tenant, client.CallResult{SessionID: view.SessionID, Result: result})
	if err != nil {
		return nil, err
	}
	return rawOrNil(whole.Data), nil
}

// statusWord colors the status of a session or a call.
func (a *app) statusWord(c palette, status string) string {
	switch status {
	case string(jig.StatusCompleted), string(jig.CallSucceeded):
		return c.green(status)
	case string(jig.StatusFailed), string(jig.CallDenied), string(jig.CallExpired), string(jig.StatusCanceled):
		return c.red(status)
	case string(jig.StatusInputRequired), string(jig.CallWaiting), string(jig.CallUnknown):
		return c.yellow(status)
	default:
		return status
	}
}

// callCounts summarizes the calls by status.
func callCounts(c map[jig.CallStatus]int) string {
	var parts []string
	total := 0
	for status, n := range c {
		total += n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	slices.Sort(parts)
	if total == 0 {
		return "no calls"
	}
	return plural(total, "call", "calls") + " (" + strings.Join(parts, ", ") + ")"
}

// arguments accepts between least and most arguments; if most is 0, there is no upper limit. The error quotes the arguments from the
// command's usage line.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most == 0 || len(args) <= most) {
			return nil
		}
		_, needed, _ := strings.Cut(cmd.Use, " ")
		return usagef("%s given; expected %s", plural(len(args), "argument is", "arguments are"), needed)
	}
}

// orMissing formats a flag's value for a message.
func orMissing(value string) string {
	if value == "" {
		return "missing"
	}
	return strconv.Quote(value)
}

// session returns the id of the session that an argument names.
func (a *app) session(arg string) string { return jig.SessionID(a.flags.tenant, arg) }

// sessionFirst accepts a session id and other arguments: between least and most in total; if most is 0, there is no upper limit.
func sessionFirst(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := arguments(least, most)(cmd, args); err != nil || len(args) == 0 {
			return err
		}
		if err := jig.CheckSessionID(args[0]); err != nil {
			return usage(err)
		}
		return nil
	}
}

// sessionArgs is like sessionFirst; the other arguments are ids of calls.
func sessionArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := sessionFirst(least, most)(cmd, args); err != nil || len(args) == 0 {
			return err
		}
		for _, call := range args[1:] {
			if _, _, _, err := jig.ParseCallID(call); err != nil {
				return usage(err)
			}
		}
		return nil
	}
}
