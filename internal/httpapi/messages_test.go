package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// listener takes every message.
type listener struct{ sessions }

func (listener) Say(context.Context, string, string, protocol.Message) error { return nil }

// The answer to a message says at once if nobody but its author is left to approve calls that rest on it.
func TestSendMessage_SaysThatNobodyElseCouldApprove(t *testing.T) {
	t.Parallel()
	const note = "nobody else in this tenant could give it by default"
	for name, row := range map[string]struct {
		people, disabled []string
		proof            bool
		warns            bool
	}{
		"nobody is listed":           {nil, nil, true, false},
		"the only person":            {[]string{"ana"}, nil, true, false},
		"somebody else is there":     {[]string{"ana", "ben"}, nil, true, false},
		"the other one is disabled":  {[]string{"ana", "ben"}, []string{"ben"}, true, true},
		"names need not be verified": {[]string{"ana", "ben"}, []string{"ben"}, false, false},
	} {
		s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Sessions = listener{o.Engine.Sessions} })
		s.lists(row.people...)
		s.tenants.change(func(all *tenancy.Settings) {
			all.Disabled = row.disabled
			all.SetSignals(map[bool]tenancy.SignalMode{true: tenancy.SignalsSigned, false: tenancy.SignalsTrusted}[row.proof])
		})
		answer, body := s.send(http.MethodPost, "/v1/sessions/known/messages", `{"text":"pay it"}`)
		require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
		if row.warns {
			require.Contains(t, body, note, name)
		} else {
			require.JSONEq(t, `{"session_id":"acme.known"}`, body, name)
		}
	}
}
