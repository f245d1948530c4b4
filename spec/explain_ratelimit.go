package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

// explainRateLimit says which calls and sessions the limits of a document concern, and what the limits allow.
func explainRateLimit(doc Document, _ []Document, _ []jig.Tool) (text, diagram string) {
	r := doc.RateLimit()
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("rate limit %s", r.Name)
	if r.Description != "" {
		line("%s", r.Description)
	}
	for _, l := range r.Limits {
		which := "calls of " + strings.Join(l.Tools, ", ")
		switch {
		case l.Sessions:
			which = "sessions"
		case slices.Contains(l.Tools, "*"):
			which = "all calls"
		}
		if l.When != "" {
			which += " for which " + string(l.When)
		}
		if l.Key != "" {
			which += ", counted by " + string(l.Key)
		}
		line("%s: %s", l.Name, which)
		if l.Rate > 0 {
			at := "one every " + duration.Format(time.Duration(l.Per)/time.Duration(l.Rate))
			if l.Burst > 1 {
				at += fmt.Sprintf(", up to %d at once after a quiet time", l.Burst)
			}
			line("  %d may begin per %s: %s", l.Rate, duration.Format(time.Duration(l.Per)), at)
		}
		if l.Concurrency > 0 {
			line("  %d may run at the same time", l.Concurrency)
		}
		if l.Sessions {
			line("  others wait, as long as their deadlines allow")
		} else {
			line("  others wait, at most %s, and then fail with RATE_LIMITED", duration.Format(time.Duration(l.MaxWait)))
		}
	}
	return out.String(), ""
}
