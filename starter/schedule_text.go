package starter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig/client"
)

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
	return table(a.stdout, rows)
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
	if err := table(a.stdout, rows); err != nil {
		return err
	}
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
	if err := a.print("\n%s", title); err != nil {
		return err
	}
	return table(a.stdout, rows)
}
