package spec

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Duration is a length of time as documents write it: Go's format with optional leading days, e.g. "90s", "48h", "3d", "1d12h".
type Duration time.Duration

var durationForm = regexp.MustCompile(`^(?:([0-9]{1,5})d)?((?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))*)$`)

// ParseDuration parses a duration. A day is 24 hours.
func ParseDuration(text string) (Duration, error) {
	m := durationForm.FindStringSubmatch(text)
	if m == nil || text == "" {
		return 0, errors.New(`write a duration such as "90s", "48h" or "3d"`)
	}
	var total time.Duration
	if m[1] != "" {
		days, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, err //nolint:wrapcheck // cannot happen: the pattern allows five digits
		}
		total = time.Duration(days) * 24 * time.Hour
	}
	if m[2] != "" {
		rest, err := time.ParseDuration(m[2])
		if err != nil || rest > math.MaxInt64-total {
			return 0, errors.New("the duration is too long")
		}
		total += rest
	}
	return Duration(total), nil
}

// MarshalJSON writes the duration in the format of documents.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String()) //nolint:wrapcheck // a string always marshals
}

func (d Duration) String() string {
	const day = 24 * time.Hour
	if whole := time.Duration(d); whole >= day && whole%day == 0 {
		return strconv.Itoa(int(whole/day)) + "d"
	}
	return time.Duration(d).String()
}
