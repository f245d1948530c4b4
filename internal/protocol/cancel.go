package protocol

import (
	"strconv"
	"strings"
)

const canceledBy = "canceled by "

// CancelReason returns the reason that is sent to Temporal with the request to cancel a session. It names the person or program that asks; by may
// be empty.
func CancelReason(by, reason string) string {
	if by == "" {
		return reason
	}
	if strings.Contains(by, ": ") || strings.HasPrefix(by, `"`) {
		by = strconv.Quote(by)
	}
	if reason == "" {
		return canceledBy + by
	}
	return canceledBy + by + ": " + reason
}

// CanceledBy splits a reason that [CancelReason] made. For other texts, by is empty and reason is the text. Anybody who can cancel a workflow can
// write such a text, so by is a claim.
func CanceledBy(text string) (by, reason string) {
	rest, ok := strings.CutPrefix(text, canceledBy)
	if !ok {
		return "", text
	}
	if !strings.HasPrefix(rest, `"`) {
		by, reason, _ = strings.Cut(rest, ": ")
	} else if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		by, _ = strconv.Unquote(quoted) //nolint:errcheck // it is quoted correctly
		reason = strings.TrimPrefix(rest[len(quoted):], ": ")
	}
	if by == "" {
		return "", text
	}
	return by, reason
}
