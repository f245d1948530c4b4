package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

type scheduleFlags struct {
	agent, tool string
	task        string
	inputs      []string
	model       string

	cron     []string
	timezone string
	every    time.Duration
	offset   time.Duration
	jitter   time.Duration
	start    string
	end      string

	overlap string
	catchUp time.Duration
	paused  bool
	note    string
	limit   int
}

func (a *app) scheduleCreateCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "create NAME --agent AGENT|--tool TOOL --cron LINE|--every DURATION",
		Short: "Create a schedule",
		Long: `Create a schedule that starts an agent session, or runs a tool or a registered composition. The id of each session is ses_NAME
followed by the time in UTC.

A cron line has five fields: minute, hour, day of month, month, day of week. --cron may be repeated and combined with --every.
--overlap says what happens if a session of the schedule is still running or waiting for a person (default skip).
--catch-up says how late a start may be if Temporal missed it while it was down.`,
		Example: `  jig schedule create nightly --agent dependency-review --input path=. --cron "0 7 * * 1-5" --timezone Europe/Berlin
  jig schedule create licenses --tool deps.license --input module=go.temporal.io/sdk --input version=v1.50.0 --every 24h --jitter 10m
  jig schedule create report --agent ./report.md --task "What changed this week?" --cron "0 9 * * 1" --end 2027-01-01 --paused`,
		Args: a.scheduleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.scheduleOptions(args[0], f)
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(e engine) error {
				if err := a.checkStarted(cmd.Context(), e, o); err != nil {
					return err
				}
				created, err := e.CreateSchedule(cmd.Context(), o)
				if err == nil && len(created.Next) == 0 {
					a.say("%s none of the schedule's times is to come, so it never starts anything", a.err.yellow("warning:"))
				}
				return a.changed(created, "created", flagged(err))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "agent to start: the name of a registered one, or a document, which is copied")
	flags.StringVar(&f.tool, "tool", "", "tool or registered composition to run")
	flags.StringVar(&f.task, "task", "", "task of the agent")
	flags.StringArrayVar(&f.inputs, "input", nil, "input: key=value (repeatable), @file.json, @- or a JSON object")
	flags.StringVar(&f.model, "model", "", "model to use instead of the agent's, e.g. anthropic/…, openai/…, script/…")
	flags.StringArrayVar(&f.cron, "cron", nil, `cron line, e.g. "0 7 * * 1-5" (repeatable)`)
	flags.StringVar(&f.timezone, "timezone", "", "time zone of the cron lines, e.g. Europe/Berlin (default UTC)")
	flags.DurationVar(&f.every, "every", 0, "interval, e.g. 1h, counted from midnight UTC of 1 January 1970")
	flags.DurationVar(&f.offset, "offset", 0, "offset within the interval, e.g. 5m for five minutes past each hour")
	flags.DurationVar(&f.jitter, "jitter", 0, "delay each start by a random time up to this long")
	flags.StringVar(&f.start, "start", "", "start nothing before this time, e.g. 2026-12-24, 2026-12-24T18:00 (in --timezone) or RFC 3339")
	flags.StringVar(&f.end, "end", "", "start nothing after this time")
	flags.StringVar(&f.overlap, "overlap", string(client.OverlapSkip), "skip, buffer_one, buffer_all, cancel_other, terminate_other or allow_all")
	flags.DurationVar(&f.catchUp, "catch-up", client.DefaultCatchUp, "how late a missed start may still happen")
	flags.BoolVar(&f.paused, "paused", false, "create it paused")
	flags.StringVar(&f.note, "note", "", "note for people")
	flags.IntVar(&f.limit, "limit", 0, "end after this many starts (0: no limit)")
	words := make([]string, 0, len(client.Overlaps()))
	for _, overlap := range client.Overlaps() {
		words = append(words, string(overlap))
	}
	completeFlag(cmd, "overlap", words...)
	return cmd
}

// scheduleOptions converts the flags to options, without the engine.
func (a *app) scheduleOptions(name string, f scheduleFlags) (client.ScheduleOptions, error) {
	o := client.ScheduleOptions{
		Tenant: a.flags.tenant, Name: name, Overlap: client.Overlap(f.overlap), CatchUp: f.catchUp, Paused: f.paused, Note: f.note,
		Limit: f.limit,
		When: client.Timetable{
			Cron: f.cron, Timezone: f.timezone, Every: client.Span(f.every), Offset: client.Span(f.offset), Jitter: client.Span(f.jitter),
		},
	}
	if err := a.scheduleWhat(&o, f); err != nil {
		return o, err
	}
	if f.catchUp == 0 {
		return o, usagef("--catch-up: 0 means the default; give at least 10s")
	}
	var err error
	if o.When.Start, err = timeFlag("start", f.start, f.timezone); err != nil {
		return o, err
	}
	if o.When.End, err = timeFlag("end", f.end, f.timezone); err != nil {
		return o, err
	}
	if !o.When.End.IsZero() && time.Now().After(o.When.End) {
		return o, usagef("--end: %s has passed", f.end)
	}
	if err := o.Check(); err != nil {
		return o, usage(flagged(err))
	}
	return o, nil
}

func (a *app) scheduleWhat(o *client.ScheduleOptions, f scheduleFlags) error {
	switch {
	case f.agent == "" && f.tool == "":
		return usagef("give --agent or --tool: what the schedule starts")
	case f.agent != "" && f.tool != "":
		return usagef("--agent and --tool cannot be combined: a schedule starts one thing")
	case f.agent != "":
		session, err := a.startOptions(f.agent, runFlags{task: f.task, inputs: f.inputs, model: f.model})
		if err != nil {
			return err
		}
		o.Session = &session
		if session.Document == "" {
			return nil
		}
		if _, err := spec.ParseAgent(f.agent, []byte(session.Document)); err != nil {
			return usage(err)
		}
		return nil
	case f.task != "" || f.model != "":
		return usagef("--task and --model are for --agent: a tool takes only --input")
	}
	input, pairs, err := a.parseInputs(f.inputs)
	o.Call = &client.CallInput{Tenant: a.flags.tenant, Tool: f.tool, Input: input, Pairs: pairs, Principal: a.principal()}
	return err
}

// flagged prefixes an error's message with the flag that caused the error.
func flagged(err error) error {
	var e *jig.Error
	if !errors.As(err, &e) || e.Code != jig.CodeInvalidInput && e.Code != jig.CodeMissingParam {
		return err
	}
	if e.Field == "" || e.Field == "name" || e.Field == "tenant" { // these are not flags of this command
		return err
	}
	named := *e
	named.Message = "--" + e.Field + ": " + e.Message
	return &named
}

// timeFlag parses a time: RFC 3339, or a date with or without a time of day in the schedule's time zone.
func timeFlag(flag, value, timezone string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t.UTC(), nil
	}
	zone, err := time.LoadLocation(timezone)
	if err != nil {
		return time.Time{}, usagef("--timezone: there is no time zone %q", timezone)
	}
	for _, form := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.ParseInLocation(form, value, zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usagef("--%s: %q is not a time; write 2026-12-24, 2026-12-24T18:00 or 2026-12-24T18:00:00+01:00", flag, value)
}

// checkStarted checks that the schedule's agent or tool exists, because nobody would see the error when the schedule starts it later.
// Without a worker it can only warn.
func (a *app) checkStarted(ctx context.Context, e engine, o client.ScheduleOptions) error {
	if o.Session != nil && o.Session.Document != "" {
		return nil
	}
	catalog, err := e.Catalog(ctx, a.flags.tenant)
	if err != nil {
		if jig.AsError(err).Reason != client.ReasonNoWorker {
			return err
		}
		a.say("%s no worker answers, so jig could not check that the agent or tool of the schedule exists", a.err.yellow("warning:"))
		return nil
	}
	tools := append(toolNames(catalog), catalog.Compositions...)
	lists := "`" + a.command("catalog") + "` lists them"
	if o.Call != nil {
		if name := o.Call.Tool; !slices.Contains(tools, name) {
			return jig.Errorf(jig.CodeToolNotFound, "there is no tool or composition %s", name).WithHint(cmp.Or(suggest.OrKnown(name, tools), lists))
		}
		return nil
	}
	name := o.Session.Agent
	switch {
	case slices.Contains(catalog.Agents, name):
		return nil
	case slices.Contains(tools, name):
		return jig.Errorf(jig.CodeNotFound, "there is no agent %s", name).WithHint("run it with --tool " + name)
	default:
		return jig.Errorf(jig.CodeNotFound, "there is no agent %s", name).WithHint(cmp.Or(suggest.OrKnown(name, catalog.Agents), lists))
	}
}

// moment formats a time in the local time zone.
func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func (a *app) printSchedules(list []client.Schedule) error {
	if len(list) == 0 {
		a.say("no schedules; create one with: %s", a.command("schedule", "create", "NAME", "--agent", "AGENT", "--cron", "0 7 * * 1-5"))
		return nil
	}
	rows := [][]string{{a.out.dim("NAME"), a.out.dim("STARTS"), a.out.dim("WHEN"), a.out.dim("NEXT"), a.out.dim("LAST")}}
	for _, s := range list {
		last := ""
		if s.Last != nil {
			last = s.Last.SessionID + " " + a.statusWord(a.out, string(s.Last.Status))
		}
		rows = append(rows, []string{a.out.bold(s.Name), oneLine(startsWhat(s), 60), oneLine(s.When, 80), a.nextText(s), last})
	}
	return a.printTable(rows)
}

func startsWhat(s client.Schedule) string {
	switch {
	case s.Tool != "":
		return "tool " + s.Tool
	case s.Agent != "":
		return "agent " + s.Agent
	default:
		return "?"
	}
}

// nextText returns the time of a schedule's next start, or the reason why it starts nothing.
func (a *app) nextText(s client.Schedule) string {
	switch {
	case s.Paused && strings.HasPrefix(s.Note, "paused"):
		return a.out.yellow(oneLine(s.Note, 60))
	case s.Paused && s.Note != "":
		return a.out.yellow("paused") + ": " + oneLine(s.Note, 60)
	case s.Paused:
		return a.out.yellow("paused")
	case len(s.Next) == 0 || s.Remaining != nil && *s.Remaining == 0:
		return "never"
	default:
		return moment(s.Next[0])
	}
}

func (a *app) printSchedule(s client.Schedule) error {
	rows := [][]string{
		{"schedule", a.out.bold(s.Name)},
		{"starts", oneLine(startsWhat(s), 0)},
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("task", oneLine(s.Task, 200))
	add("model", s.Model)
	add("input", oneLine(string(s.Input), 200))
	for _, key := range slices.Sorted(maps.Keys(s.Pairs)) {
		add("input", oneLine(key+"="+s.Pairs[key], 200))
	}
	add("as", oneLine(s.Principal, 100))
	add("when", oneLine(s.When, 0))
	add("overlap", string(s.Overlap))
	add("catch-up", s.CatchUp.String())
	if s.Remaining != nil {
		add("starts left", fmt.Sprint(*s.Remaining))
	}
	if !s.Paused { // a paused schedule shows its note in the next line
		add("note", oneLine(s.Note, 200))
	}
	add("next", a.nextText(s))
	if c := s.Counts; c != nil {
		add("so far", strings.Join([]string{
			fmt.Sprintf("%d started", c.Started), fmt.Sprintf("%d skipped", c.Skipped), fmt.Sprintf("%d missed", c.Missed),
		}, ", "))
	}
	a.table(rows)
	if err := a.printScheduled("running", s.Running); err != nil {
		return err
	}
	return a.printScheduled("recent", s.Recent)
}

func (a *app) printScheduled(title string, sessions []client.ScheduledSession) error {
	if len(sessions) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(sessions))
	for _, s := range sessions {
		due := ""
		if !s.DueAt.IsZero() {
			due = moment(s.DueAt)
		}
		rows = append(rows, []string{"  " + s.SessionID, a.statusWord(a.out, cmp.Or(string(s.Status), "no longer known")), due})
	}
	a.line("\n%s", title)
	return a.printTable(rows)
}
