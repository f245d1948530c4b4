package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
)

func TestSpan_ReportsValidValues(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]time.Duration{
		"1h": time.Hour, "1h30m": 90 * time.Minute, "10m": 10 * time.Minute, "20m": 20 * time.Minute, "10h": 10 * time.Hour, "1h0m5s": time.Hour + 5*time.Second,
		"30s": 30 * time.Second, "0s": 0, "1.5s": 1500 * time.Millisecond,
	} {
		require.Equal(t, text, Span(d).String())
		var back Span
		b, err := json.Marshal(Span(d))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, Span(d), back)
	}
	var s Span
	require.ErrorContains(t, json.Unmarshal([]byte(`"soon"`), &s), `"soon" is not a duration`)
}

// ranges returns a calendar field as the server stores it: start, end and step, the last two 0 if they are not needed.
func ranges(numbers ...int) []sdk.ScheduleRange {
	var list []sdk.ScheduleRange
	for i := 0; i+2 < len(numbers); i += 3 {
		list = append(list, sdk.ScheduleRange{Start: numbers[i], End: numbers[i+1], Step: numbers[i+2]})
	}
	return list
}

func TestCalendars_AreWrittenAsCronLines(t *testing.T) {
	t.Parallel()
	anyDay, anyMonth, anyWeekday, on := ranges(1, 31, 0), ranges(1, 12, 0), ranges(0, 6, 0), ranges(0, 0, 0)
	for want, c := range map[string]sdk.ScheduleCalendarSpec{
		"0 7 * * 1-5":             {Second: on, Minute: on, Hour: ranges(7, 0, 0), DayOfMonth: anyDay, Month: anyMonth, DayOfWeek: ranges(1, 5, 0)},
		"*/15 * * * *":            {Second: on, Minute: ranges(0, 59, 15), Hour: ranges(0, 23, 1), DayOfMonth: anyDay, Month: anyMonth, DayOfWeek: anyWeekday},
		"0 8-18/2 1,15 * *":       {Second: on, Minute: on, Hour: ranges(8, 18, 2), DayOfMonth: ranges(1, 1, 1, 15, 0, 0), Month: anyMonth, DayOfWeek: anyWeekday},
		"0 0 1 1 * 2027":          {Second: on, Minute: on, Hour: on, DayOfMonth: ranges(1, 0, 0), Month: ranges(1, 0, 0), DayOfWeek: anyWeekday, Year: ranges(2027, 0, 0)},
		"30 0 7 * * 0 *":          {Second: ranges(30, 0, 0), Minute: on, Hour: ranges(7, 0, 0), DayOfMonth: anyDay, Month: anyMonth, DayOfWeek: on},
		"0 7 * * 1-5 # work days": {Second: on, Minute: on, Hour: ranges(7, 0, 0), DayOfMonth: anyDay, Month: anyMonth, DayOfWeek: ranges(1, 5, 0), Comment: "work days"},
	} {
		require.Equal(t, want, cronLine(c))
		require.NoError(t, Timetable{Cron: []string{want}}.Check())
	}
	for _, line := range []string{"@daily", "0 0 29 2 *", "0 0 31 */2 *", "0 0 31 2-3 *", "0 0 30/1 2,jan *", "0 0 L 2 *", "0 0 * 2 *"} {
		require.NoError(t, Timetable{Cron: []string{line}}.Check(), line)
	}
}

func TestTimetable_RoundTrips(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]Timetable{
		"0 7 * * 1-5 UTC": {Cron: []string{"0 7 * * 1-5"}},
		"0 7 * * 1-5; @monthly Europe/Berlin; every 1h offset 5m, jitter 30s, from 2026-01-02T07:00:00Z, until 2026-01-03T07:00:00Z": {
			Cron: []string{"0 7 * * 1-5", "@monthly"}, Timezone: "Europe/Berlin", Every: Span(time.Hour), Offset: Span(5 * time.Minute),
			Jitter: Span(30 * time.Second), Start: seven, End: seven.Add(24 * time.Hour),
		},
		"@daily UTC": {Cron: []string{"@daily # each night"}},
		"every 24h":  {Every: Span(24 * time.Hour)},
	} {
		require.NoError(t, w.Check())
		spec := scheduleSpec(w)
		back, text := timetable(&spec)
		require.Equal(t, want, text)
		require.Equal(t, w, back)
	}
	_, text := timetable(&sdk.ScheduleSpec{
		Intervals: []sdk.ScheduleIntervalSpec{{Every: time.Hour}, {Every: time.Minute}}, Skip: []sdk.ScheduleCalendarSpec{{}},
	})
	require.Equal(t, "every 1h; every 1m, 1 left out", text, "made by other means")
	_, text = timetable(nil)
	require.Empty(t, text)
}

func TestOverlaps_AreTemporalsPolicies(t *testing.T) {
	t.Parallel()
	for want, o := range map[enumspb.ScheduleOverlapPolicy]Overlap{
		enumspb.SCHEDULE_OVERLAP_POLICY_SKIP: OverlapSkip, enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE: OverlapBufferOne,
		enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL: OverlapBufferAll, enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER: OverlapCancelOther,
		enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER: OverlapTerminateOther, enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL: OverlapAllowAll,
	} {
		got, err := overlapPolicy(o)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, o, overlapOf(want))
	}
	require.Equal(t, OverlapSkip, overlapOf(enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED))
	_, err := overlapPolicy(Overlap("never"))
	require.ErrorContains(t, err, "it can be skip, buffer_one, buffer_all, cancel_other, terminate_other, allow_all")
}
