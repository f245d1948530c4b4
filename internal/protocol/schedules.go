package protocol

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

// Schedule is the current state of a schedule. A list leaves out the fields marked below; a single schedule has all of them.
type Schedule struct {
	Name string `json:"name"`
	// Agent or Tool names what the schedule starts; Task is the agent's task (in a list only its beginning).
	Agent string `json:"agent,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Task  string `json:"task,omitempty"`
	// Model, Input, Pairs and Principal are passed to each run; not in a list.
	Model     string            `json:"model,omitempty"`
	Input     json.RawMessage   `json:"input,omitempty"`
	Pairs     map[string]string `json:"pairs,omitempty"`
	Principal string            `json:"principal,omitempty"`
	// Maker is who made the credential with which the schedule was created, for its principal, and Credential names it if it is an API key:
	// api_key:<id>. The schedule ends with them. Not in a list.
	Maker      string `json:"maker,omitempty"`
	Credential string `json:"credential,omitempty"`
	// When describes the timetable in one line. The fields of Timetable are its parts.
	When string `json:"when"`
	Timetable
	// Overlap and CatchUp are the schedule's policies; not in a list.
	Overlap Overlap `json:"overlap,omitempty"`
	CatchUp Span    `json:"catch_up,omitzero"`
	Paused  bool    `json:"paused"`
	Note    string  `json:"note,omitempty"`
	// Remaining is how many starts are left; nil if there is no limit; not in a list.
	Remaining *int `json:"remaining,omitempty"`
	// Next lists the coming start times, soonest first: up to 5 in a list, otherwise up to 10.
	Next []time.Time `json:"next"`
	// Last is the latest session; nil before the first.
	Last *ScheduledSession `json:"last,omitempty"`
	// Recent are the latest 10 sessions and Running those that have not ended, both oldest first; not in a list.
	Recent  []ScheduledSession `json:"recent,omitempty"`
	Running []ScheduledSession `json:"running,omitempty"`
	// Counts and CreatedAt are not in a list.
	Counts    *ScheduleCounts `json:"counts,omitempty"`
	CreatedAt time.Time       `json:"created_at,omitzero"`
}

// ScheduledSession is a session that a schedule started.
type ScheduledSession struct {
	SessionID string `json:"session_id"`
	// DueAt is the scheduled time, including jitter, and StartedAt the time of the actual start; zero if the server no longer knows.
	DueAt     time.Time `json:"due_at,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Status is empty if Temporal has forgotten the session because its retention time is over.
	Status jig.Status `json:"status,omitempty"`
}

// ScheduleCounts count what happened at the schedule's times so far.
type ScheduleCounts struct {
	// Started counts sessions, including those that people started.
	Started int `json:"started"`
	// Skipped counts times at which nothing was started because a session was still running.
	Skipped int `json:"skipped"`
	// Missed counts times that passed while the server was down and were too old to catch up on.
	Missed int `json:"missed"`
}

// Overlap says what happens at a schedule's time if a session that it started is still running, which includes a session that waits for a
// person.
type Overlap string

// The overlap policies, named as Temporal names them.
const (
	// OverlapSkip starts nothing.
	OverlapSkip Overlap = "skip"
	// OverlapBufferOne starts one more session after the running one has ended, even if several times passed by then.
	OverlapBufferOne Overlap = "buffer_one"
	// OverlapBufferAll starts a session for every time that passed, one after another.
	OverlapBufferAll Overlap = "buffer_all"
	// OverlapCancelOther cancels the running session and starts the next when it has ended.
	OverlapCancelOther Overlap = "cancel_other"
	// OverlapTerminateOther terminates the running session, which gives it no time to clean up, and starts the next.
	OverlapTerminateOther Overlap = "terminate_other"
	// OverlapAllowAll starts the next session alongside the running one.
	OverlapAllowAll Overlap = "allow_all"
)

// Overlaps lists the policies, the default first.
func Overlaps() []Overlap {
	return []Overlap{OverlapSkip, OverlapBufferOne, OverlapBufferAll, OverlapCancelOther, OverlapTerminateOther, OverlapAllowAll}
}

// Span is a duration that JSON shows as flags of the command line do, e.g. "1h30m".
type Span time.Duration

// String returns the shortest form that [time.ParseDuration] reads.
func (s Span) String() string { return duration.Short(time.Duration(s)) }

// MarshalText returns the same form as String.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads any form that [time.ParseDuration] reads.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a duration", text).WithHint("write it as 1h30m or 45s")
	}
	*s = Span(d)
	return nil
}

// Timetable says when a schedule starts something: at the times of every cron line and of the interval.
type Timetable struct {
	// Cron lines have five fields (minute, hour, day of month, month, day of week), six (plus a year at the end) or seven (plus seconds at the
	// beginning), or are @yearly, @monthly, @weekly, @daily or @hourly. If both days are given, both have to match.
	Cron []string `json:"cron,omitempty"`
	// Timezone is the IANA name of the time zone of the cron lines; default UTC. When the clocks change, a time that is skipped does not
	// occur, and a time that occurs twice starts something twice.
	Timezone string `json:"timezone,omitempty"`
	// Every is an interval of at least one second, counted from 1970-01-01T00:00Z. Offset shifts it and must be less than Every.
	Every  Span `json:"every,omitzero"`
	Offset Span `json:"offset,omitzero"`
	// Jitter delays each start by a random time of at most this length, but not past the next start.
	Jitter Span `json:"jitter,omitzero"`
	// Start and End limit the times, both inclusive; zero means no limit.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
}

// Check returns an error for times that cannot be: INVALID_INPUT or MISSING_PARAM, with the name of the command line's flag as its field.
func (w Timetable) Check() error {
	if len(w.Cron) == 0 && w.Every == 0 {
		return jig.Errorf(jig.CodeMissingParam, "a schedule needs a cron line or an interval (every)").WithField("cron").
			WithHint(`e.g. --cron "0 7 * * 1-5" or --every 1h`)
	}
	for _, line := range w.Cron {
		if err := checkCron(line); err != nil {
			return err
		}
	}
	wrong := func(field, format string, args ...any) error {
		return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField(field)
	}
	switch {
	case w.Every != 0 && time.Duration(w.Every) < time.Second:
		return wrong("every", "%s is too short: at least 1s", w.Every)
	case w.Offset != 0 && w.Every == 0:
		return wrong("offset", "an offset needs an interval (every)")
	case w.Offset < 0 || w.Offset != 0 && w.Offset >= w.Every:
		return wrong("offset", "%s is not between 0 and the interval, %s", w.Offset, w.Every)
	case w.Jitter < 0:
		return wrong("jitter", "%s is negative", w.Jitter)
	case !w.End.IsZero() && !w.End.After(w.Start):
		return wrong("end", "the end is not after the start")
	}
	return nil
}

// checkCron returns an error for a line that cannot be a cron line. The server checks the fields.
func checkCron(line string) error {
	wrong := func(hint string) error {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a cron line", line).WithField("cron").WithHint(hint)
	}
	fields, _, _ := strings.Cut(line, "#")
	fields = strings.TrimSpace(fields)
	switch {
	case strings.HasPrefix(fields, "TZ="), strings.HasPrefix(fields, "CRON_TZ="):
		return wrong("give the time zone with --timezone")
	case strings.HasPrefix(fields, "@every"):
		return wrong("use --every for an interval")
	case strings.HasPrefix(fields, "@"):
		return nil
	}
	parts := strings.Fields(fields)
	if n := len(parts); n < 5 || n > 7 {
		return wrong(CronHint)
	}
	if len(parts) == 7 { // seconds come first
		parts = parts[1:]
	}
	if days, months := cronNumbers(parts[2], 31, nil), cronNumbers(parts[3], 12, monthNames); neverComes(days, months) {
		return jig.Errorf(jig.CodeInvalidInput, "%q never starts anything: its months do not have these days", line).WithField("cron").
			WithHint("the third field is the day of the month, the fourth the month")
	}
	return nil
}

var monthNames = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")

// cronNumbers returns the numbers from 1 to most that a field of a cron line names; nil if the field is not understood.
func cronNumbers(field string, most int, names []string) []int {
	number := func(text string) int {
		if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
			return i + 1
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0
		}
		return n
	}
	var all []int
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		from, to, ranged := strings.Cut(span, "-")
		first, last, by := number(from), number(to), 1
		switch {
		case span == "*":
			first, last = 1, most
		case !ranged && stepped:
			last = most
		case !ranged:
			last = first
		}
		if stepped {
			by = number(step)
		}
		if first < 1 || last < first || last > most || by < 1 {
			return nil
		}
		for n := first; n <= last; n += by {
			all = append(all, n)
		}
	}
	return all
}

// neverComes reports whether none of the months has any of the days. It returns false if one of the lists is empty.
func neverComes(days, months []int) bool {
	if len(days) == 0 || len(months) == 0 {
		return false
	}
	return !slices.ContainsFunc(months, func(month int) bool {
		const leapYear = 2024
		return slices.Min(days) <= time.Date(leapYear, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	})
}

// CronHint says how a cron line is written.
const CronHint = `five fields, in one argument: minute, hour, day of month, month, day of week, e.g. "0 7 * * 1-5"`
