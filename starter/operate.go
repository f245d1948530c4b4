package starter

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/suggest"
)

func (a *app) messageCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "message SESSION TEXT",
		Short:   "Send a message to a session; a completed session starts its next pass",
		Example: `  jig message ses_… "skip the archived ones"`,
		Args:    sessionFirst(2, 0),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			text := strings.Join(args[1:], " ")
			if err := e.Message(ctx, a.flags.tenant, a.session(args[0]), text, a.flags.as); err != nil {
				return err
			}
			return a.done(a.session(args[0]), "message sent to")
		}),
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a session, with its running tools and waiting approvals",
		Example: `  jig cancel ses_…
  jig cancel ses_… --reason "the order was withdrawn"`,
		Args: sessionArgs(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			if err := e.CancelBecause(ctx, a.flags.tenant, a.session(args[0]), reason, a.flags.as); err != nil {
				return err
			}
			return a.done(a.session(args[0]), "cancellation requested:")
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the session's workflow in Temporal, or at the audit")
	return cmd
}

// done confirms a request that has no other output.
func (a *app) done(session, text string) error {
	if a.json() {
		return a.printJSON(map[string]string{"session_id": session})
	}
	a.say("%s %s", text, session)
	return nil
}

// pauseFlags name the target of a pause.
type pauseFlags struct {
	session, tool string
	tenantWide    bool
	reason        string
}

func (f *pauseFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "this session and the sessions that it started")
	flags.StringVar(&f.tool, "tool", "", "this tool in all sessions")
	flags.BoolVar(&f.tenantWide, "tenant-wide", false, "the whole tenant")
	flags.StringVar(&f.reason, "reason", "", "why, in a sentence")
	a.addKeyFlag(cmd)
}

// request returns the pause that the flags name. They must name exactly one target.
func (f *pauseFlags) request(cmd *cobra.Command, tenant string) (client.PauseRequest, error) {
	r := client.PauseRequest{Tenant: tenant, Reason: f.reason}
	named := 0
	for _, name := range []string{"session", "tool", "tenant-wide"} {
		if cmd.Flags().Changed(name) {
			named++
		}
	}
	if named != 1 {
		return r, usagef("give one of --session, --tool and --tenant-wide")
	}
	switch {
	case f.tenantWide:
		r.Scope = jig.PauseTenant
		return r, nil
	case cmd.Flags().Changed("session"):
		r.Scope, r.Target = jig.PauseSession, jig.SessionID(tenant, f.session)
		if err := jig.CheckSessionID(f.session); err != nil {
			return r, usage(err)
		}
		return r, nil
	case cmd.Flags().Changed("tool"):
		r.Scope, r.Target = jig.PauseTool, f.tool
		if err := jig.CheckToolName(f.tool); err != nil {
			return r, usage(err)
		}
		return r, nil
	}
	return r, usagef("--tenant-wide is false; give one of --session, --tool and --tenant-wide")
}

func (a *app) pauseCommand() *cobra.Command {
	var f pauseFlags
	var list bool
	cmd := &cobra.Command{
		Use:   "pause --session SESSION|--tool TOOL|--tenant-wide",
		Short: "Pause a session, a tool or the whole tenant",
		Long: `Pause a session, a tool or the whole tenant until "jig resume" with the same flags: calls that have not started are held back.
Running calls finish, and approvals can still be given. JSON output: {"changed", "pauses": [{"scope", "target"?, "by", "reason"?, "at"}]}
(--list prints only the pauses).`,
		Example: `  jig pause --tool shop.refund --reason "the shop's accounts are being checked"
  jig pause --session ses_…
  jig pause --tenant-wide
  jig pause --list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !list {
				return a.pausing(cmd, &f, token.ActionPause)
			}
			for _, name := range []string{"session", "tool", "tenant-wide", "reason"} {
				if cmd.Flags().Changed(name) {
					return usagef("--list cannot be combined with --%s", name)
				}
			}
			return a.listPauses(cmd)
		},
	}
	f.add(a, cmd)
	cmd.Flags().BoolVar(&list, "list", false, "list the pauses")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:   "resume --session SESSION|--tool TOOL|--tenant-wide",
		Short: "Resume what `jig pause` paused",
		Long: `Resume a session, a tool or the tenant after "jig pause". The command lists the pauses that remain, because a call that another
pause covers keeps waiting. JSON output: {"changed", "pauses": [remaining pauses]}.`,
		Example: `  jig resume --tool shop.refund
  jig resume --tenant-wide --reason "all is well"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.pausing(cmd, &f, token.ActionResume) },
	}
	f.add(a, cmd)
	return cmd
}

func (a *app) pausing(cmd *cobra.Command, f *pauseFlags, action string) error {
	request, err := f.request(cmd, a.flags.tenant)
	if err != nil {
		return err
	}
	if request.By, err = a.actor(); err != nil {
		return err
	}
	return a.with(cmd.Context(), func(e engine) error {
		if request.Token, err = a.signSubject(cmd.Context(), e, request.By, action, request.Subject(), request.Reason); err != nil {
			return err
		}
		do := e.Pause
		if action == token.ActionResume {
			do = e.Resume
		}
		result, err := do(cmd.Context(), request)
		if err != nil {
			return err
		}
		if a.json() {
			result.Pauses = append([]jig.Pause{}, result.Pauses...)
			return a.printJSON(result)
		}
		if err := a.printPausing(request, action, result); err != nil {
			return err
		}
		if action == token.ActionPause && request.Scope == jig.PauseTool {
			a.warnUnknownTool(cmd.Context(), e, request.Target)
		}
		return nil
	})
}

// warnUnknownTool warns that the tenant has no tool with this name, which may be misspelled or not exist yet. The pause is already in
// force, so an unreadable catalog is not an error.
func (a *app) warnUnknownTool(ctx context.Context, e engine, name string) {
	catalog, err := e.Catalog(ctx, a.flags.tenant)
	if err != nil {
		return
	}
	names := toolNames(catalog)
	if slices.Contains(names, name) {
		return
	}
	a.say("%s there is no tool %s yet; its calls will be held back", a.err.yellow("warning:"), name)
	a.say("%s %s", a.err.dim("hint:"), cmp.Or(suggest.OrKnown(name, names), "`"+a.command("catalog")+"` lists them"))
}

func (a *app) printPausing(request client.PauseRequest, action string, result client.PauseResult) error {
	subject := subjectText(jig.Pause{Scope: request.Scope, Target: request.Target})
	line := "paused " + subject + "; calls that have not started will wait"
	switch {
	case action == token.ActionResume && result.Changed:
		line = "resumed " + subject
	case action == token.ActionResume:
		line = subject + " is not paused"
	case !result.Changed:
		line = subject + " is paused already"
	}
	a.line("%s", line)
	for _, p := range result.Pauses {
		if action == token.ActionResume || !result.Changed || p.Scope != request.Scope || p.Target != request.Target {
			a.say("held back: %s", pauseText(p))
		}
	}
	return nil
}

func (a *app) listPauses(cmd *cobra.Command) error {
	return a.with(cmd.Context(), func(e engine) error {
		result, err := ask(cmd.Context(), a, e, api.ListPauses, protocol.PausesRequest{})
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(protocol.PauseList{Pauses: append([]jig.Pause{}, result.Pauses...)})
		}
		if len(result.Pauses) == 0 {
			a.say("nothing is held back")
		}
		for _, p := range result.Pauses {
			a.line("%s", pauseText(p))
		}
		return nil
	})
}

// subjectText names the target of a pause.
func subjectText(p jig.Pause) string {
	if p.Scope == jig.PauseTenant {
		return "the whole tenant"
	}
	return oneLine(string(p.Scope)+" "+p.Target, 0)
}

// pauseText formats a pause for people, on one line.
func pauseText(p jig.Pause) string {
	text := subjectText(p) + ", by " + p.By + jig.Proof("").Text(p.Claimed, "") + " since " + moment(p.At)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return oneLine(text, 300)
}
