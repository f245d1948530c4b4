package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/toolname"
)

// grantFlags describe a grant.
type grantFlags struct {
	prefix               string
	when, expires, agent string
	uses                 int
}

// add adds the flags; their names begin with the prefix.
func (f *grantFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.when, f.prefix+"when", "", "only calls that match this CEL condition, e.g. \"input.amount < 100\"")
	flags.IntVar(&f.uses, f.prefix+"uses", 0, "number of calls it approves (default 10)")
	flags.StringVar(&f.expires, f.prefix+"expires", "", "how long it is valid, e.g. 12h or 7d (default 24h)")
	flags.StringVar(&f.agent, f.prefix+"agent", "", "only calls of this agent; * for all agents")
}

// givesGrant reports whether a flag of a command asks for a grant together with an approval.
func givesGrant(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"when", "uses", "expires", "agent"}, func(name string) bool { return cmd.Flags().Changed("grant-" + name) })
}

// request converts the flags to a grant request; nil if no flag was given.
func (f *grantFlags) request(cmd *cobra.Command) (*jig.GrantRequest, error) {
	flags := cmd.Flags()
	asked := false
	for _, flag := range []struct{ name, value string }{{"when", f.when}, {"expires", f.expires}, {"agent", f.agent}} {
		if flags.Changed(f.prefix + flag.name) {
			asked = true
			if strings.TrimSpace(flag.value) == "" {
				return nil, usagef("--%s%s is empty; leave it out to get the default", f.prefix, flag.name)
			}
		}
	}
	if flags.Changed(f.prefix + "uses") {
		asked = true
		if f.uses < 1 {
			return nil, usagef("--%suses is %d; give 1 or more", f.prefix, f.uses)
		}
	}
	if f.expires != "" {
		if d, err := duration.Parse(f.expires); err != nil || d <= 0 {
			return nil, usagef("--%sexpires is %q; write e.g. 12h or 7d", f.prefix, f.expires)
		}
	}
	if !asked {
		return nil, nil // nil: no flag asks for a grant
	}
	return &jig.GrantRequest{Agent: f.agent, When: f.when, MaxUses: f.uses, Expires: f.expires}, nil
}

func (a *app) grantCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "grant",
		Short: "Create, apply, list and revoke standing approvals",
		Long: `Create, apply, list and revoke standing approvals. A call that a standing approval covers runs without asking, until the approval is used
up, expires or is revoked. It counts as an approval by the people who gave it. It never covers a destructive tool or one that always
asks. You can also give one while approving a call: see "jig approve --help".`,
		Example: `  jig grant create --tool file.write --when 'input.path.startsWith("docs/")' --uses 20 --expires 7d
  jig grant list`,
	}, a.grantCreateCommand(), a.grantApplyCommand(), a.grantListCommand(), a.grantRevokeCommand())
}

func (a *app) grantCreateCommand() *cobra.Command {
	var f triggerFlags
	var g grantFlags
	var tool, note string
	cmd := &cobra.Command{
		Use:   "create --tool TOOL",
		Short: "Request a standing approval",
		Long: `Request a standing approval of a tool's calls. The request is itself a call that needs approval: the person who approves it gives
the standing approval. By default it covers 10 calls of the tool, by any agent and with any input, within 24 hours.`,
		Example: `  jig grant create --tool file.write --when 'input.path.startsWith("docs/")' --uses 20 --expires 7d
  jig grant create --tool shop.refund --agent support --when 'input.amount < 100' --note "small ones" --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tool == "" {
				return usagef("--tool is missing: the tool whose calls to approve")
			}
			if err := jig.CheckToolName(tool); err != nil {
				return usage(err)
			}
			request, err := g.request(cmd)
			if err != nil {
				return err
			}
			if request == nil {
				request = &jig.GrantRequest{}
			}
			request.Tool, request.Note = tool, note
			input, err := jsontext.Encode(request)
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.GrantsCreate, Input: input}, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tool, "tool", "", "tool whose calls to approve")
	g.add(cmd)
	flags.StringVar(&note, "note", "", "reason, for the audit record")
	f.add(cmd, "also approve the request")
	a.addKeyFlag(cmd)
	return cmd
}

func (a *app) grantListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List standing approvals, latest first",
		Long: `List the standing approvals that can be used, latest first; with --all include those that are used up, expired or revoked.
A grant covers no further calls once its tool's contract has changed; it stays in the list, marked as ended.
JSON output: {"grants": [{"grant_id", "tool", "agent"?, "when", "max_uses", "used", "expires_at", "by", "ended"?, …}]}.`,
		Example: `  jig grant list
  jig grant list --all --output json | jq '.grants[] | select(.revoked_at)'`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			list, err := e.Grants(ctx, a.flags.tenant, all)
			if err != nil {
				return err
			}
			return a.output(api.GrantList{Grants: append([]jig.Grant{}, list...)}, func() error { return a.printGrants(list, time.Now()) })
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include those that are used up, expired or revoked")
	return cmd
}

func (a *app) printGrants(list []jig.Grant, now time.Time) error {
	if len(list) == 0 {
		a.say("there are no standing approvals")
		return nil
	}
	for _, g := range list {
		a.line("%s", a.grantText(g, now))
	}
	return nil
}

// grantText formats a grant for people.
func (a *app) grantText(g jig.Grant, now time.Time) string {
	state := a.out.green("live")
	switch {
	case g.RevokedAt != nil:
		state = a.out.red(oneLine(fmt.Sprintf("revoked by %s at %s", cmp.Or(g.RevokedBy, "somebody"), moment(*g.RevokedAt)), 0))
	case g.Used >= g.MaxUses:
		state = a.out.yellow("used up")
	case !g.Live(now):
		state = a.out.yellow("expired")
	case g.Ended == jig.GrantContractChanged:
		state = a.out.yellow("ended: the tool's contract has changed")
	case g.Ended != "":
		state = a.out.yellow(oneLine("ended: "+g.Ended, 0))
	}
	agent := "all agents"
	if g.Agent != "" {
		agent = "agent " + g.Agent
	}
	lines := []string{
		fmt.Sprintf("%s %s: %s", a.out.yellow(oneLine(g.ID, 0)), a.out.bold(oneLine(g.Tool, 0)), state),
		fmt.Sprintf("  %s, %d of %s used, until %s", oneLine(agent, 0), g.Used, plural(g.MaxUses, "call", "calls"), moment(g.ExpiresAt)),
	}
	if g.When != "" && g.When != "true" {
		lines = append(lines, "  when "+oneLine(g.When, 200))
	}
	by := "  given by " + oneLine(strings.Join(g.By, ", ")+g.Proof.Text(g.Claimed, ""), 200)
	if g.Note != "" {
		by += ": " + oneLine(g.Note, 200)
	}
	return strings.Join(append(lines, by), "\n")
}

func (a *app) grantRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a standing approval",
		Long: `Revoke a standing approval, so that it no longer covers calls that have not started. The command prints the revoked standing
approval, even if it had been revoked before. JSON output: one of the objects that "grant list" prints.`,
		Example: `  jig grant revoke grt_…`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("%s given; expected ID", plural(len(args), "argument is", "arguments are"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := a.actor()
			if err != nil {
				return err
			}
			request := client.GrantsRequest{Tenant: a.flags.tenant, Revoke: args[0], By: by}
			return a.with(cmd.Context(), func(e engine) error {
				if request.Token, err = a.signSubject(cmd.Context(), e, by, token.ActionRevoke, args[0], ""); err != nil {
					return err
				}
				g, err := e.RevokeGrant(cmd.Context(), request)
				if err != nil {
					return err
				}
				return a.output(g, func() error { return a.printGrants([]jig.Grant{g}, time.Now()) })
			})
		},
	}
	a.addKeyFlag(cmd)
	return cmd
}

func (a *app) grantApplyCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "apply ID",
		Short: "Approve the waiting calls that a standing approval covers",
		Long: `Approve the waiting calls that a standing approval covers. The command lists them, oldest first and at most as many as the standing
approval has uses left, and on a terminal asks before it approves them. Each call uses it once, when it begins. A call is approved only
if you may decide it, and only if the standing approval would cover it if it were requested now.
JSON output: that of "approve --all".`,
		Example: `  jig grant apply grt_…
  jig grant apply grt_… --yes`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := a.actor()
			if err != nil {
				return err
			}
			if !yes && (a.json() || !a.interactive) {
				return usagef("not a terminal, so jig cannot ask: add --yes")
			}
			return a.with(cmd.Context(), func(e engine) error {
				list, err := e.GrantFits(cmd.Context(), a.flags.tenant, args[0], by)
				if err != nil {
					return err
				}
				return a.apply(cmd.Context(), e, args[0], by, list, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	a.addKeyFlag(cmd)
	return cmd
}

// apply approves waiting calls with a grant that covers them, after saying which and, unless yes is set, asking.
func (a *app) apply(ctx context.Context, e engine, grant, by string, list []jig.Pending, yes bool) error {
	if !a.json() {
		if len(list) == 0 {
			a.say("no waiting call fits the standing approval %s", grant)
			return nil
		}
		a.say("%s the standing approval %s:", plural(len(list), "waiting call fits", "waiting calls fit"), grant)
		a.sayCalls(list)
	}
	if !yes {
		going, err := a.confirm(ctx, fmt.Sprintf("Approve %s?", plural(len(list), "call", "calls")))
		if err != nil {
			return err
		}
		if !going {
			a.say("they keep waiting")
			return nil
		}
	}
	return a.printBulk(a.decideEach(ctx, e, list, approvalByGrant(grant, by)), jig.AnswerApprove)
}

// approvalByGrant returns the decision that approves a call with a grant.
func approvalByGrant(grant, by string) jig.Decision {
	return jig.Decision{By: by, Answer: jig.AnswerApprove, GrantID: grant}
}

// grantedReport is the JSON output of an approval with which a grant comes.
type grantedReport struct {
	client.DecideResult
	// Released are the decisions on calls that waited already and that the grant covers.
	Released []bulkItem `json:"released,omitempty"`
}

// withRelease prints the outcome of an approval with which a grant came, and goes on with the waiting calls that the grant covers: with yes it
// approves them, on a terminal it asks, and otherwise it says how to approve them.
func (a *app) withRelease(ctx context.Context, e engine, session string, result client.DecideResult, like jig.Decision, yes bool) error {
	grant := result.Decisions[0].Grant
	by, list := like.By, []jig.Pending(nil)
	var err error
	if by == "" || like.Token != "" { // a token is valid for one call
		err = usagef("the waiting calls need tokens of their own")
	} else {
		list, err = e.GrantFits(ctx, a.flags.tenant, grant, by)
	}
	if a.json() {
		report := grantedReport{DecideResult: result}
		if yes && err == nil {
			report.Released = a.decideEach(ctx, e, list, approvalByGrant(grant, by))
		}
		return a.printJSON(report)
	}
	if printed := a.printRuled(session, result, like.Answer); printed != nil {
		return printed
	}
	switch {
	case err != nil:
		a.say("cannot find out which waiting calls it covers: %s; try again with: %s", jig.AsError(err).Message, a.command("grant", "apply", grant))
		return nil
	case len(list) == 0:
		return nil
	case yes || a.interactive:
		return a.apply(ctx, e, grant, by, list, yes)
	}
	a.say("%s it:", plural(len(list), "waiting call fits", "waiting calls fit"))
	a.sayCalls(list)
	words := append([]string{"grant", "apply", grant, "--yes"}, a.identity()...)
	a.say("  approve with: %s", a.err.cyan(a.command(words...)))
	return nil
}

// sayGrant prints, for people, the command that approves the waiting calls which a standing approval that a call created covers.
func (a *app) sayGrant(data json.RawMessage) {
	var made struct {
		GrantID string `json:"grant_id"`
		MaxUses int    `json:"max_uses"`
	}
	if json.Unmarshal(data, &made) == nil && strings.HasPrefix(made.GrantID, "grt_") && made.MaxUses > 0 {
		a.say("approve the waiting calls that it covers with: %s", a.command("grant", "apply", made.GrantID))
	}
}
