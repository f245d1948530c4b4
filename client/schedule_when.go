package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Types of schedules that the server and the HTTP client share.
type (
	// Schedule is the current state of a schedule. [Client.Schedules] leaves out the fields that say so.
	Schedule = protocol.Schedule
	// ScheduledSession is a session that a schedule started.
	ScheduledSession = protocol.ScheduledSession
	// ScheduleCounts count what happened at the schedule's times so far.
	ScheduleCounts = protocol.ScheduleCounts
	// Timetable says when a schedule starts something.
	Timetable = protocol.Timetable
	// Span is a duration that JSON shows as flags of the command line do, e.g. "1h30m".
	Span = protocol.Span
	// Overlap says what happens at a schedule's time if a session that it started is still running.
	Overlap = protocol.Overlap
)

// The overlap policies, named as Temporal names them; see package protocol for what each does.
const (
	OverlapSkip           = protocol.OverlapSkip
	OverlapBufferOne      = protocol.OverlapBufferOne
	OverlapBufferAll      = protocol.OverlapBufferAll
	OverlapCancelOther    = protocol.OverlapCancelOther
	OverlapTerminateOther = protocol.OverlapTerminateOther
	OverlapAllowAll       = protocol.OverlapAllowAll
)

// Overlaps lists the policies, the default first.
func Overlaps() []Overlap { return protocol.Overlaps() }

// complaint converts the server's error about a timetable; it returns nil if the error is about something else.
func complaint(w Timetable, message string) *jig.Error {
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
			WithField("cron").WithHint(protocol.CronHint)
	}
}

// scheduleSpec returns the form of a timetable that Temporal takes.
func scheduleSpec(w Timetable) sdk.ScheduleSpec {
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

// overlapPolicy returns Temporal's value for o.
func overlapPolicy(o Overlap) (enumspb.ScheduleOverlapPolicy, error) {
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
		if p, err := overlapPolicy(o); err == nil && p == policy {
			return o
		}
	}
	return OverlapSkip // the server's default if nothing is set
}
