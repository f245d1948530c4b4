package starter

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// scheduler is an engine with schedules that records its requests.
type scheduler struct {
	*fake

	created    client.ScheduleOptions
	list       []client.Schedule
	one        client.Schedule
	session    string
	done       string
	catalogErr error
	err        error
}

func (s *scheduler) Catalog(context.Context, string) (client.Catalog, error) {
	return s.catalog, s.catalogErr
}

func (s *scheduler) CreateSchedule(_ context.Context, o client.ScheduleOptions) (client.Schedule, error) {
	s.created = o
	return s.one, s.err
}

func (s *scheduler) Schedules(context.Context, string) ([]client.Schedule, error) { return s.list, nil }

func (s *scheduler) Schedule(context.Context, string, string) (client.Schedule, error) {
	return s.one, s.err
}

func (s *scheduler) PauseSchedule(_ context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	s.done = "pause " + r.Tenant + " " + r.Name + ": " + r.Note
	return s.one, s.err
}

func (s *scheduler) ResumeSchedule(_ context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	s.done = "resume " + r.Tenant + " " + r.Name + ": " + r.Note
	return s.one, s.err
}

func (s *scheduler) TakeOverSchedule(_ context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	s.done = "take over " + r.Tenant + " " + r.Name + " by " + r.By.ID
	return s.one, s.err
}

func (s *scheduler) TriggerSchedule(_ context.Context, r client.ScheduleRequest) (string, error) {
	s.done = "trigger " + r.Tenant + " " + r.Name + " by " + r.By.ID
	return s.session, s.err
}

func (s *scheduler) DeleteSchedule(_ context.Context, r client.ScheduleRequest) error {
	s.done = "delete " + r.Tenant + " " + r.Name + " by " + r.By.ID
	return s.err
}

func ran(id string, status jig.Status) client.ScheduledSession {
	return client.ScheduledSession{SessionID: id, DueAt: noon, StartedAt: noon.Add(time.Second), Status: status}
}

func newScheduler() *scheduler {
	two := 2
	last, working := ran("ses_nightly-1", jig.StatusCompleted), ran("ses_nightly-2", jig.StatusInputRequired)
	when := client.Timetable{Cron: []string{"0 7 * * 1-5"}, Timezone: "Europe/Berlin", Jitter: client.Span(30 * time.Second)}
	text := "0 7 * * 1-5 Europe/Berlin, jitter 30s"
	return &scheduler{
		fake: &fake{catalog: client.Catalog{Agents: []string{"review"}, Tools: []jig.Tool{{Name: "deps.list"}, {Name: "deps.license"}}}},
		list: []client.Schedule{
			{
				Name: "hourly", Tool: "deps.list", When: "every 1h", Timetable: client.Timetable{Every: client.Span(time.Hour)},
				Paused: true, Note: "holidays", Next: []time.Time{},
			},
			{Name: "nightly", Agent: "review", Task: "check it", When: text, Timetable: when, Next: []time.Time{noon}, Last: &last},
		},
		one: client.Schedule{
			Name: "nightly", Agent: "review", Task: "check it", Model: "script/x", Input: json.RawMessage(`{"path":"."}`),
			Pairs: map[string]string{"depth": "2"}, Principal: "ana", When: text, Timetable: when, Overlap: client.OverlapSkip,
			CatchUp: client.Span(time.Hour), Note: "for the team", Remaining: &two, Next: []time.Time{noon}, Last: &working,
			Recent: []client.ScheduledSession{last, working}, Running: []client.ScheduledSession{working},
			Counts: &client.ScheduleCounts{Started: 2, Skipped: 1}, CreatedAt: noon,
		},
		session: "ses_nightly-2026-01-02T12:00:00Z",
	}
}

func TestSchedule_JSONShapes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"schedule-list":     {"list"},
		"schedule-describe": {"describe", "nightly"},
		"schedule-create":   {"create", "nightly", "--agent", "review", "--cron", "@daily"},
		"schedule-pause":    {"pause", "nightly"},
		"schedule-resume":   {"resume", "nightly"},
		"schedule-trigger":  {"trigger", "nightly"},
		"schedule-delete":   {"delete", "nightly"},
	} {
		got := jigCLI(t, newScheduler(), nil, append(append([]string{"schedule"}, args...), "--output", "json")...)
		require.Equal(t, exitDone, got.code, "%s: %s", name, got.stderr)
		golden(t, name+".json", got.stdout)
	}
	none := newScheduler()
	none.list, none.session = nil, ""
	require.JSONEq(t, `{"schedules": []}`, jigCLI(t, none, nil, "schedule", "list", "--output", "json").stdout)
	require.JSONEq(t, `{"name": "nightly"}`, jigCLI(t, none, nil, "schedule", "trigger", "nightly", "--output", "json").stdout)
}

func TestScheduleCreate_SendsItsFlags(t *testing.T) {
	t.Parallel()
	s := newScheduler()
	got := jigCLI(t, s, nil, "schedule", "create", "nightly", "--agent", "review", "--task", "check it", "--input", "path=.", "--model", "script/x",
		"--cron", "0 7 * * 1-5", "--cron", "@monthly", "--timezone", "Europe/Berlin", "--every", "1h", "--offset", "5m", "--jitter", "30s",
		"--start", "2100-07-01", "--end", "2100-12-24T18:00", "--overlap", "buffer_one", "--catch-up", "10m", "--paused", "--note", "not yet",
		"--limit", "3", "--tenant", "acme", "--as", "bob")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, client.ScheduleOptions{
		Tenant: "acme", Name: "nightly",
		Session: &client.StartOptions{
			Tenant: "acme", Agent: "review", Task: "check it", Pairs: map[string]string{"path": "."}, Model: "script/x",
			Principal: jig.Principal{ID: "bob", Claimed: true},
		},
		When: client.Timetable{
			Cron: []string{"0 7 * * 1-5", "@monthly"}, Timezone: "Europe/Berlin", Every: client.Span(time.Hour), Offset: client.Span(5 * time.Minute),
			Jitter: client.Span(30 * time.Second), Start: time.Date(2100, 6, 30, 22, 0, 0, 0, time.UTC), End: time.Date(2100, 12, 24, 17, 0, 0, 0, time.UTC),
		},
		Overlap: client.OverlapBufferOne, CatchUp: 10 * time.Minute, Paused: true, Note: "not yet", Limit: 3,
	}, s.created)
	require.Contains(t, got.stderr, "schedule nightly created")

	s = newScheduler()
	got = jigCLI(t, s, nil, "schedule", "create", "hourly", "--tool", "deps.list", "--input", `{"path":"."}`, "--every", "1h")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, client.ScheduleOptions{
		Tenant: "default", Name: "hourly", Overlap: client.OverlapSkip, CatchUp: time.Hour, When: client.Timetable{Every: client.Span(time.Hour)},
		Call: &client.CallInput{
			Tenant: "default", Tool: "deps.list", Input: json.RawMessage(`{"path":"."}`), Principal: jig.Principal{ID: "ana", Claimed: true},
		},
	}, s.created)
}

func TestScheduleCreate_CopiesADocument(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.md")
	body := "---\nname: mine\nmodel: script/mine\ntools: [file.read]\nscript:\n  rules:\n    - answer: done\n---\nDo it.\n"
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	s := newScheduler()
	got := jigCLI(t, s, nil, "schedule", "create", "mine", "--agent", file, "--cron", "@daily")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, body, s.created.Session.Document, "the document is not looked up in the catalog")

	require.NoError(t, os.WriteFile(file, []byte("---\nname: [\n---\n"), 0o600))
	got = jigCLI(t, s, nil, "schedule", "create", "mine", "--agent", file, "--cron", "@daily")
	require.Equal(t, exitUsage, got.code)
}

func TestSchedule_RefusesMistakes(t *testing.T) {
	t.Parallel()
	create := func(args ...string) []string { return append([]string{"schedule", "create", "n"}, args...) }
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"no name":          {[]string{"schedule", "create"}, "expected NAME"},
		"bad name":         {[]string{"schedule", "pause", "a/b"}, "is not a valid schedule name"},
		"unknown":          {[]string{"schedule", "stop", "n"}, `unknown command "stop"`},
		"nothing":          {create("--cron", "@daily"), "give --agent or --tool"},
		"both":             {create("--agent", "review", "--tool", "deps.list", "--cron", "@daily"), "--agent and --tool cannot be combined"},
		"task of a tool":   {create("--tool", "deps.list", "--task", "x", "--cron", "@daily"), "--task and --model are for --agent"},
		"bad tool":         {create("--tool", "no nonsense", "--cron", "@daily"), "--tool: "},
		"bad input":        {create("--agent", "review", "--cron", "@daily", "--input", "novalue"), "--input"},
		"large input":      {create("--agent", "review", "--cron", "@daily", "--task", strings.Repeat("t", 49<<10)), "--input: "},
		"no times":         {create("--agent", "review"), "--cron: a schedule needs a cron line"},
		"four fields":      {create("--agent", "review", "--cron", "0 7 * *"), `--cron: "0 7 * *" is not a cron line`},
		"too often":        {create("--agent", "review", "--every", "1ms"), "--every: 1ms is too short"},
		"no duration":      {create("--agent", "review", "--every", "daily"), "--every"},
		"offset":           {create("--agent", "review", "--cron", "@daily", "--offset", "1m"), "--offset: "},
		"jitter":           {create("--agent", "review", "--cron", "@daily", "--jitter", "-1s"), "--jitter: "},
		"overlap":          {create("--agent", "review", "--cron", "@daily", "--overlap", "never"), `--overlap: "never" is not an overlap policy`},
		"catch-up":         {create("--agent", "review", "--cron", "@daily", "--catch-up", "1s"), "--catch-up: 1s is too short"},
		"catch-up of zero": {create("--agent", "review", "--cron", "@daily", "--catch-up", "0s"), "--catch-up: "},
		"limit":            {create("--agent", "review", "--cron", "@daily", "--limit", "-1"), "--limit: "},
		"start":            {create("--agent", "review", "--cron", "@daily", "--start", "tomorrow"), `--start: "tomorrow" is not a time`},
		"end has passed":   {create("--agent", "review", "--cron", "@daily", "--end", "2020-01-01"), "--end: 2020-01-01 has passed"},
		"end before start": {create("--agent", "review", "--cron", "@daily", "--start", "2101-01-01", "--end", "2100-01-01"), "--end: "},
		"timezone":         {create("--agent", "review", "--cron", "@daily", "--timezone", "Nowhere", "--start", "2100-01-01"), "--timezone: "},
	} {
		s := newScheduler()
		got := jigCLI(t, s, nil, row.args...)
		require.Equal(t, exitUsage, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, row.want, name)
		require.Equal(t, 1, strings.Count(got.stderr, "error: "), "%s: one message: %s", name, got.stderr)
		require.Empty(t, got.stdout, name)
		require.Empty(t, s.created.Name, name)
	}
}

func TestScheduleCreate_RefusesUnknownNames(t *testing.T) {
	t.Parallel()
	s := newScheduler()
	got := jigCLI(t, s, nil, "schedule", "create", "n", "--agent", "reviewx", "--cron", "@daily")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `there is no agent reviewx`)
	require.Contains(t, got.stderr, `did you mean "review"?`)
	got = jigCLI(t, s, nil, "schedule", "create", "n", "--tool", "deps.lists", "--cron", "@daily")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `did you mean "deps.list"?`)
	got = jigCLI(t, s, nil, "schedule", "create", "n", "--agent", "deps.list", "--cron", "@daily")
	require.Contains(t, got.stderr, "hint: run it with --tool deps.list")
	require.Empty(t, s.created.Name)

	s.catalogErr = &jig.Error{Code: jig.CodeUnavailable, Message: "no worker", Reason: client.ReasonNoWorker}
	got = jigCLI(t, s, nil, "schedule", "create", "n", "--agent", "reviewx", "--cron", "@daily")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stderr, "warning: no worker answers")
	require.Equal(t, "n", s.created.Name)

	s.catalogErr = &jig.Error{Code: jig.CodeNotPermitted, Message: "not for you"}
	got = jigCLI(t, s, nil, "schedule", "create", "n", "--agent", "review", "--cron", "@daily")
	require.Equal(t, exitFailed, got.code)
}

func TestSchedule_SuggestsTheNearestName(t *testing.T) {
	t.Parallel()
	s := newScheduler()
	s.err = jig.Errorf(jig.CodeNotFound, "there is no schedule nightlx").WithField("name")
	for _, verb := range []string{"describe", "pause", "resume", "take-over", "trigger", "delete"} {
		got := jigCLI(t, s, nil, "schedule", verb, "nightlx")
		require.Equal(t, exitFailed, got.code, verb)
		require.Contains(t, got.stderr, "there is no schedule nightlx", verb)
		require.Contains(t, got.stderr, `did you mean "nightly"?`, verb)
		require.Empty(t, got.stdout, verb)
	}
	s.list = nil
	require.Contains(t, jigCLI(t, s, nil, "schedule", "pause", "nightlx", "--tenant", "acme").stderr, "jig schedule list --tenant acme")

	s.err = jig.Errorf(jig.CodeConflict, "schedule nightly already exists").WithField("name").WithHint("describe it")
	got := jigCLI(t, s, nil, "schedule", "create", "nightly", "--agent", "review", "--cron", "@daily")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "error: schedule nightly already exists\nhint: describe it\n")

	s.err = jig.Errorf(jig.CodeInvalidInput, "Temporal does not know the time zone %q", "Nowhere").WithField("timezone")
	got = jigCLI(t, s, nil, "schedule", "create", "nightly", "--agent", "review", "--cron", "@daily", "--timezone", "Nowhere")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `error: --timezone: Temporal does not know the time zone "Nowhere"`)
}

func TestSchedule_PrintsForPeople(t *testing.T) {
	t.Parallel()
	s := newScheduler()
	got := jigCLI(t, s, nil, "schedule", "list")
	require.Equal(t, exitDone, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 3)
	require.Regexp(t, `^hourly +tool deps\.list +every 1h +paused: holidays`, lines[1])
	require.Regexp(t, `^nightly +agent review +0 7 \* \* 1-5 Europe/Berlin, jitter 30s +`+moment(noon)[:19]+` .*ses_nightly-1 completed$`, lines[2])

	got = jigCLI(t, s, nil, "schedule", "describe", "nightly")
	for _, want := range []string{
		`schedule +nightly`, `starts +agent review`, `task +check it`, `model +script/x`, `input +\{"path":"\."\}`, `input +depth=2`, `as +ana`,
		`overlap +skip`, `catch-up +1h`, `starts left +2`, `note +for the team`, `so far +2 started, 1 skipped, 0 missed`,
		`running\n +ses_nightly-2 +input_required`, `recent\n +ses_nightly-1 +completed`,
	} {
		require.Regexp(t, want, got.stdout)
	}

	got = jigCLI(t, s, nil, "schedule", "trigger", "nightly")
	require.Equal(t, s.session+"\n", got.stdout, "only data goes to stdout")
	require.Contains(t, got.stderr, "jig watch "+s.session)

	for verb, want := range map[string]string{
		"pause": "pause default nightly: paused by ana", "resume": "resume default nightly: resumed by ana", "delete": "delete default nightly by ana", "take-over": "take over default nightly by ana",
	} {
		require.Equal(t, exitDone, jigCLI(t, s, nil, "schedule", verb, "nightly").code)
		require.Equal(t, want, s.done)
	}
	require.Equal(t, exitDone, jigCLI(t, s, nil, "schedule", "pause", "nightly", "--note", "freeze").code)
	require.Equal(t, "pause default nightly: freeze", s.done)

	s.list, s.one.Next = nil, nil
	require.Contains(t, jigCLI(t, s, nil, "schedule", "resume", "nightly").stderr, "warning: it will start nothing")
	got = jigCLI(t, s, nil, "schedule", "list")
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "no schedules; create one with: jig schedule create")
	require.Equal(t, exitDone, jigCLI(t, s, nil, "schedule").code)
}
