package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/suggest"
)

// schedules starts sessions and calls at set times.
type schedules interface {
	CreateSchedule(ctx context.Context, o client.ScheduleOptions) (client.Schedule, error)
	Schedules(ctx context.Context, tenant string) ([]client.Schedule, error)
	Schedule(ctx context.Context, tenant, name string) (client.Schedule, error)
	PauseSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	ResumeSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	TakeOverSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	TriggerSchedule(ctx context.Context, r client.ScheduleRequest) (sessionID string, err error)
	DeleteSchedule(ctx context.Context, r client.ScheduleRequest) error
}

func (a *app) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "schedule",
		Short: "Start agents and tools on a schedule",
		Long: `Start an agent session, or run a tool or a registered composition, at the times of a cron line or at an interval.
Temporal keeps the schedule; this program need not run.`,
		Example: `  jig schedule create nightly --agent dependency-review --input path=. --cron "0 7 * * 1-5" --timezone Europe/Berlin
  jig schedule list
  jig schedule trigger nightly`,
	},
		a.scheduleCreateCommand(), a.scheduleListCommand(), a.scheduleDescribeCommand(),
		a.schedulePauseCommand(), a.scheduleResumeCommand(), a.scheduleTakeOverCommand(), a.scheduleTriggerCommand(), a.scheduleDeleteCommand(),
	)
}

func (a *app) scheduleListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the schedules",
		Example: `  jig schedule list
  jig schedule list --output json | jq '.schedules[] | select(.paused)'`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			list, err := e.Schedules(ctx, a.flags.tenant)
			if err != nil {
				return err
			}
			return a.output(api.ScheduleList{Schedules: append([]client.Schedule{}, list...)}, func() error { return a.printSchedules(list) })
		}),
	}
}

func (a *app) scheduleDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "describe NAME",
		Aliases: []string{"show"},
		Short:   "Show a schedule and its sessions",
		Example: `  jig schedule describe nightly
  jig schedule describe nightly --output json | jq '.recent[-1]'`,
		Args: a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				described, err := e.Schedule(cmd.Context(), a.flags.tenant, args[0])
				if err != nil {
					return err
				}
				return a.output(described, func() error { return a.printSchedule(described) })
			})
		},
	}
}

func (a *app) schedulePauseCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "pause NAME",
		Short:   "Pause a schedule",
		Long:    `Pause a schedule until it is resumed. Sessions that it started continue.`,
		Example: `  jig schedule pause nightly --note "until the freeze is over"`,
		Args:    a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				r := a.scheduleRequest(args[0])
				r.Note = cmp.Or(note, "paused by "+a.flags.as)
				paused, err := e.PauseSchedule(cmd.Context(), r)
				return a.changed(paused, "paused", err)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "reason, shown in lists (default: who paused it)")
	return cmd
}

func (a *app) scheduleResumeCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "resume NAME",
		Short:   "Resume a paused schedule",
		Long:    `Resume a paused schedule. Starts that it missed while paused are not made up for.`,
		Example: `  jig schedule resume nightly`,
		Args:    a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				r := a.scheduleRequest(args[0])
				r.Note = cmp.Or(note, "resumed by "+a.flags.as)
				resumed, err := e.ResumeSchedule(cmd.Context(), r)
				return a.changed(resumed, "resumed", err)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "note that replaces the previous one (default: who resumed it)")
	return cmd
}

func (a *app) scheduleTakeOverCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "take-over NAME",
		Short: "Take over a schedule, so that it acts for you",
		Long: `Take over a schedule, so that it acts for you and no longer ends with the person or the API key that created it. Its times and what it
starts stay. Only owners may, and the audit names them.`,
		Example: `  jig schedule take-over nightly`,
		Args:    a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				taken, err := e.TakeOverSchedule(cmd.Context(), a.scheduleRequest(args[0]))
				return a.changed(taken, "taken over", err)
			})
		},
	}
}

// changed prints a schedule that was created, paused, resumed or taken over.
func (a *app) changed(s client.Schedule, how string, err error) error {
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(s)
	}
	a.say("schedule %s %s", a.err.bold(s.Name), how)
	switch {
	case s.Paused:
	case len(s.Next) > 0:
		a.say("next: %s", moment(s.Next[0]))
	default:
		a.say("%s it will start nothing: all of its times have passed", a.err.yellow("warning:"))
	}
	return nil
}

// triggered is the JSON output of `schedule trigger`.
type triggered struct {
	Name      string `json:"name"`
	SessionID string `json:"session_id,omitempty"`
}

func (a *app) scheduleTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trigger NAME",
		Short: "Start a session of a schedule now",
		Long:  `Start a session of the schedule now, even if the schedule is paused or another of its sessions is running, and print its id.`,
		Example: `  jig schedule trigger nightly
  jig watch "$(jig schedule trigger nightly)"`,
		Args: a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				id, err := e.TriggerSchedule(cmd.Context(), a.scheduleRequest(args[0]))
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(triggered{Name: args[0], SessionID: id})
				}
				a.say("follow it with: %s", a.command("watch", id))
				return a.print("%s", id)
			})
		},
	}
}

// deleted is the JSON output of `schedule delete`.
type deleted struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

func (a *app) scheduleDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a schedule",
		Long:    `Delete a schedule. Sessions that it started continue; "jig cancel" stops them.`,
		Example: `  jig schedule delete nightly`,
		Args:    a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSchedule(cmd.Context(), args[0], func(e engine) error {
				if err := e.DeleteSchedule(cmd.Context(), a.scheduleRequest(args[0])); err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(deleted{Name: args[0], Deleted: true})
				}
				a.say("schedule %s deleted", a.err.bold(args[0]))
				return nil
			})
		},
	}
}

// scheduleRequest returns the request of whoever runs the command to operate a schedule.
func (a *app) scheduleRequest(name string) client.ScheduleRequest {
	return client.ScheduleRequest{Tenant: a.flags.tenant, Name: name, By: a.principal()}
}

// scheduleArgs accepts exactly one argument, a schedule's name.
func (a *app) scheduleArgs(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s given; expected NAME", plural(len(args), "argument is", "arguments are"))
	}
	if err := client.CheckScheduleName(a.flags.tenant, args[0]); err != nil {
		return usage(err)
	}
	return nil
}

// onSchedule calls do. If the schedule does not exist, it suggests the nearest name.
func (a *app) onSchedule(ctx context.Context, name string, do func(engine) error) error {
	return a.with(ctx, func(e engine) error {
		err := do(e)
		missing := jig.AsError(err)
		if jig.CodeOf(err) != jig.CodeNotFound || missing.Field != "name" {
			return err
		}
		list, listErr := e.Schedules(ctx, a.flags.tenant)
		if listErr != nil { // the first error is the one that matters
			return err
		}
		names := make([]string, 0, len(list))
		for _, one := range list {
			names = append(names, one.Name)
		}
		names = slices.DeleteFunc(names, func(known string) bool { return known == name }) // lists lag behind changes
		hint := cmp.Or(suggest.OrKnown(name, names), fmt.Sprintf("see `%s`", a.command("schedule", "list")))
		return missing.WithHint(hint)
	})
}
