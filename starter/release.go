package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

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
	return a.printBulk(a.decideEach(ctx, e, list, under(grant, by)), jig.AnswerApprove)
}

// under returns the decision that approves a call with a grant.
func under(grant, by string) jig.Decision {
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
			report.Released = a.decideEach(ctx, e, list, under(grant, by))
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
