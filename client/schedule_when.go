package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

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

func (w Timetable) check() error {
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
	if n := len(strings.Fields(fields)); n < 5 || n > 7 {
		return wrong(cronHint)
	}
	return nil
}

const cronHint = `five fields, in one argument: minute, hour, day of month, month, day of week, e.g. "0 7 * * 1-5"`

// complaint converts the server's error about a timetable; it returns nil if the error is about something else.
func (w Timetable) complaint(message string) *jig.Error {
	reason, ok := strings.CutPrefix(message, "Invalid schedule spec: ")
	switch {
	case !ok:
		return nil
	case strings.Contains(reason, "time zone"):
		return jig.Errorf(jig.CodeInvalidInput, "Temporal does not know the time zone %q", w.Timezone).WithField("timezone").
			WithHint("use a name such as Europe/Berlin")
	case len(w.Cron) == 0:
		return jig.Errorf(jig.CodeInvalidInput, "Temporal rejects the times: %s", reason).WithField("every")
	default:
		return jig.Errorf(jig.CodeInvalidInput, "Temporal rejects the cron line %q: %s", strings.Join(w.Cron, `", "`), reason).
			WithField("cron").WithHint(cronHint)
	}
}

func (w Timetable) spec() sdk.ScheduleSpec {
	s := sdk.ScheduleSpec{
		CronExpressions: w.Cron, TimeZoneName: w.Timezone, Jitter: time.Duration(w.Jitter), StartAt: w.Start, EndAt: w.End,
	}
	if w.Every != 0 {
		s.Intervals = []sdk.ScheduleIntervalSpec{{Every: time.Duration(w.Every), Offset: time.Duration(w.Offset)}}
	}
	return s
}

// timetable converts a schedule's spec back to a timetable and a description in one line. The server stores cron lines as ranges; timetable
// writes them as cron lines again. A spec that another program changed may have several intervals and excluded times, which only the
// description shows.
func timetable(s *sdk.ScheduleSpec) (w Timetable, text string) {
	if s == nil {
		return w, ""
	}
	w = Timetable{Timezone: s.TimeZoneName, Jitter: Span(s.Jitter), Start: s.StartAt, End: s.EndAt}
	w.Cron = append(w.Cron, s.CronExpressions...)
	for _, calendar := range s.Calendars {
		w.Cron = append(w.Cron, cronLine(calendar))
	}
	var parts []string
	if len(w.Cron) > 0 {
		zone := w.Timezone
		if zone == "" {
			zone = "UTC"
		}
		lines := make([]string, 0, len(w.Cron))
		for _, line := range w.Cron {
			line, _, _ = strings.Cut(line, "#")
			lines = append(lines, strings.TrimSpace(line))
		}
		parts = append(parts, strings.Join(lines, "; ")+" "+zone)
	}
	for i, interval := range s.Intervals {
		if i == 0 {
			w.Every, w.Offset = Span(interval.Every), Span(interval.Offset)
		}
		part := "every " + Span(interval.Every).String()
		if interval.Offset != 0 {
			part += " offset " + Span(interval.Offset).String()
		}
		parts = append(parts, part)
	}
	text = strings.Join(parts, "; ")
	if n := len(s.Skip); n > 0 {
		text += fmt.Sprintf(", %d left out", n)
	}
	if w.Jitter != 0 {
		text += ", jitter " + w.Jitter.String()
	}
	if !w.Start.IsZero() {
		text += ", from " + w.Start.Format(time.RFC3339)
	}
	if !w.End.IsZero() {
		text += ", until " + w.End.Format(time.RFC3339)
	}
	return w, text
}

// cronLine returns the shortest cron line for a calendar.
func cronLine(c sdk.ScheduleCalendarSpec) string {
	fields := []string{
		cronField(c.Minute, 0, 59), cronField(c.Hour, 0, 23), cronField(c.DayOfMonth, 1, 31), cronField(c.Month, 1, 12),
		cronField(c.DayOfWeek, 0, 6),
	}
	if seconds := cronField(c.Second, 0, 59); seconds != "0" {
		fields = append([]string{seconds}, fields...)
	}
	if len(c.Year) > 0 || len(fields) == 6 {
		fields = append(fields, cronField(c.Year, 0, 0))
	}
	line := strings.Join(fields, " ")
	if c.Comment != "" {
		line += " # " + c.Comment
	}
	return line
}

func cronField(ranges []sdk.ScheduleRange, least, most int) string {
	if len(ranges) == 0 {
		return "*"
	}
	parts := make([]string, 0, len(ranges))
	for _, r := range ranges {
		end := max(r.Start, r.End)
		part := strconv.Itoa(r.Start)
		switch {
		case end == r.Start:
		case r.Start == least && end == most:
			part = "*"
		default:
			part += "-" + strconv.Itoa(end)
		}
		if r.Step > 1 && end > r.Start {
			part += "/" + strconv.Itoa(r.Step)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
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

// policy returns Temporal's value for o.
func (o Overlap) policy() (enumspb.ScheduleOverlapPolicy, error) {
	switch o {
	case OverlapSkip, "":
		return enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, nil
	case OverlapBufferOne:
		return enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, nil
	case OverlapBufferAll:
		return enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL, nil
	case OverlapCancelOther:
		return enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER, nil
	case OverlapTerminateOther:
		return enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER, nil
	case OverlapAllowAll:
		return enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, nil
	}
	known := make([]string, 0, len(Overlaps()))
	for _, one := range Overlaps() {
		known = append(known, string(one))
	}
	return 0, jig.Errorf(jig.CodeInvalidInput, "%q is not an overlap policy", string(o)).WithField("overlap").
		WithHint("it can be " + strings.Join(known, ", "))
}

func overlapOf(policy enumspb.ScheduleOverlapPolicy) Overlap {
	for _, o := range Overlaps() {
		if p, err := o.policy(); err == nil && p == policy {
			return o
		}
	}
	return OverlapSkip // the server's default if nothing is set
}
