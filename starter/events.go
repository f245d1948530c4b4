package starter

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
)

func (a *app) eventsCommand() *cobra.Command {
	var after int64
	var follow bool
	cmd := &cobra.Command{
		Use:   "events SESSION",
		Short: "Print a session's log, one event per line",
		Example: `  jig events ses_… --output json
  jig events ses_… --after 40 --follow`,
		Args: sessionArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				if follow {
					return a.followEvents(cmd.Context(), e, a.session(args[0]), after, false, nil)
				}
				list, err := e.Events(cmd.Context(), a.flags.tenant, a.session(args[0]), after)
				if err != nil {
					return err
				}
				for _, event := range list {
					if err := a.printEvent(event); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events after this sequence number")
	cmd.Flags().BoolVar(&follow, "follow", false, "keep printing until the session ends")
	return cmd
}

func (a *app) watchCommand() *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use:   "watch SESSION|ENTITY",
		Short: "Follow a session, or the extraction of an entity, until it ends",
		Example: `  jig watch ses_…
  jig watch ent_…`,
		Args: sessionArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				id, shown, err := a.followed(cmd.Context(), e, args[0])
				if err != nil {
					return err
				}
				if err := a.followEvents(cmd.Context(), e, id, after, true, shown); err != nil || a.json() || shown != nil {
					return err
				}
				return a.printOutput(cmd.Context(), e, id)
			})
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events after this sequence number")
	return cmd
}

// printOutput prints, for people, the output of a session that runs a single call. Programs find it in the call's last event or with
// `status`.
func (a *app) printOutput(ctx context.Context, e engine, id string) error {
	view, err := e.Status(ctx, a.flags.tenant, id)
	if err != nil {
		return err
	}
	if view.Output, err = a.wholeOutput(ctx, e, view); err != nil || len(view.Output) == 0 {
		return err
	}
	return a.print("\n%s", safeText(prettyJSON(view.Output)))
}

// followEvents prints events as they come. shown selects the events; nil selects all. With attend it also shows calls that wait for a
// person.
func (a *app) followEvents(ctx context.Context, e engine, id string, after int64, attend bool, shown func(jig.Event) bool) error {
	f := &follower{app: a, engine: e, id: id, quiet: !attend, show: func(event jig.Event) error {
		if shown != nil && !shown(event) {
			return nil
		}
		return a.printEvent(event)
	}}
	if shown == nil {
		f.text = a.textOn(a.stdout, a.out)
	}
	return f.follow(ctx, after)
}

func (a *app) printEvent(event jig.Event) error {
	if a.json() {
		return a.printJSON(event)
	}
	return a.print("%s", a.eventLine(a.out, event))
}
