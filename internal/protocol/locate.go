package protocol

import (
	"fmt"
	"strings"

	"github.com/jig-run/jig"
)

// Locate returns the call to answer when a person answers a call of a session: the call itself if it waits, or the only call that waits in
// the sessions below it. waiting are the calls that wait in the session and below. If several wait below the call, the error is CONFLICT and
// names them. A call that does not wait at all is returned as it is, without a digest.
func Locate(waiting []WaitingCall, session, call string) (WaitingCall, error) {
	var below []WaitingCall
	for _, w := range waiting {
		if w.SessionID == session && w.Call == call {
			return w, nil
		}
		if w.Via == call {
			below = append(below, w)
		}
	}
	switch len(below) {
	case 0:
		return WaitingCall{SessionID: session, Call: call}, nil
	case 1:
		return below[0], nil
	}
	names := make([]string, len(below))
	for i, w := range below {
		names[i] = w.SessionID + " " + w.Call
	}
	return WaitingCall{}, jig.Errorf(jig.CodeConflict, "%d calls wait below call %s of session %s", len(below), call, session).
		WithField("call").WithHint(fmt.Sprintf("name one of them: %s", jig.Cut(strings.Join(names, ", "), 1000)))
}
