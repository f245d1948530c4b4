// Package duration reads and writes lengths of time as people write them in documents, flags and inputs. It must not know what is timed.
package duration

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/jig-run/jig"
)

// day is always 24 hours.
const day = 24 * time.Hour

// Pattern matches every text that Parse accepts. It also matches the empty text and durations that are too long.
const Pattern = `^(?:([0-9]{1,5}(?:\.[0-9]+)?)d)?((?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))*)$`

var form = regexp.MustCompile(Pattern)

// Parse reads a length of time: Go's format without a sign, down to milliseconds, with optional leading days. Examples are "90s", "48h",
// "1d12h" and "1.5d". A day is 24 hours.
func Parse(text string) (time.Duration, error) {
	m := form.FindStringSubmatch(text)
	if m == nil || text == "" {
		return 0, errors.New(`write a duration such as "90s", "48h" or "3d"`)
	}
	// Days are read as hours, which keeps fractions exact, and multiplied. Five digits of days cannot overflow.
	days, err := time.ParseDuration(cmp.Or(m[1], "0") + "h")
	rest, restErr := time.ParseDuration(cmp.Or(m[2], "0"))
	days *= 24
	if err != nil || restErr != nil || rest > math.MaxInt64-days {
		return 0, errors.New("the duration is too long")
	}
	return days + rest, nil
}

// Format returns the short form of a duration: whole days, e.g. "2d", or else the form of [Short].
func Format(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return Short(d)
}

// Short returns a duration as [time.Duration.String] does, without zeros at its end: "1h30m", not "1h30m0s". [time.ParseDuration] reads it.
func Short(d time.Duration) string {
	return jig.Duration(d).String()
}
