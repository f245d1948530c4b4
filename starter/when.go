package starter

import (
	"fmt"
	"time"
)

// when formats a point in time, with its distance from now: "in 7d (2026-11-29 03:14:47 UTC)".
func when(t, now time.Time) string { return fmt.Sprintf("%s (%s)", fromNow(t, now), moment(t)) }

// fromNow formats the distance of a time from now, rounded, in one unit: "in 7d", "3h ago".
func fromNow(t, now time.Time) string {
	d := t.Sub(now)
	if d < 0 {
		return roughly(-d) + " ago"
	}
	return "in " + roughly(d)
}

// roughly formats a duration in the largest unit of which there are at least one and a half.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}} {
		if 2*d >= 3*unit.length {
			return fmt.Sprintf("%d%s", d.Round(unit.length)/unit.length, unit.name)
		}
	}
	return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
}

// clock formats a point in time briefly: the time alone if it is on the same day as now.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}
