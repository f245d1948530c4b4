package spec

import (
	"encoding/json"
	"strconv"
	"time"
)

// Duration is a length of time as documents write it: Go's format with optional leading days, e.g. "90s", "48h", "1d12h" or "1.5d".
type Duration time.Duration

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
