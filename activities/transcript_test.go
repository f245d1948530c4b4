package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// archive is a store that has the passes of one session.
type archive struct {
	activities.Store

	session jig.Session
	passes  map[int]chat.Exchange
}

func (r archive) ReadPass(_ context.Context, tenant, id string, pass, skip, limit int) (ledger.PassRead, error) {
	if tenant != r.session.Tenant || id != r.session.ID {
		return ledger.PassRead{}, jig.Errorf(jig.CodeNotFound, "there is no session %s", id)
	}
	x := r.passes[pass]
	x.Pass = pass
	x.Calls = x.Calls[min(skip, len(x.Calls)):]
	x.Calls = x.Calls[:min(limit, len(x.Calls))]
	return ledger.PassRead{Session: r.session, Exchange: x}, nil
}

func (r archive) activities() *activities.Activities {
	return activities.New(activities.Deps{Policy: noPolicies{}, Store: r})
}

// whole reads a transcript page by page and returns one line for each entry.
func (r archive) whole(t *testing.T) (lines []string, pages int) {
	t.Helper()
	in := protocol.TranscriptRequest{Tenant: r.session.Tenant, SessionID: r.session.ID}
	for {
		page, err := r.activities().Transcript(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, pages == 0, page.Opening != nil)
		for _, e := range page.Entries {
			lines = append(lines, fmt.Sprintf("%d %s %s%s", e.Pass, e.Kind, jig.Cut(e.Text, 20), e.Call))
		}
		pages++
		if in.Cursor = page.Next; in.Cursor == "" {
			return lines, pages
		}
	}
}

func TestTranscript_HasEverythingOnceInOrder(t *testing.T) {
	t.Parallel()
	r := archive{
		session: jig.Session{Tenant: "acme", ID: "ses_1", Pass: 2, Agent: jig.Agent{Name: "writer", Instructions: "Write."}},
		passes: map[int]chat.Exchange{
			1: {Messages: []chat.Message{{Role: chat.RoleUser, Text: "do it", By: "ana"}}, Turn: &chat.Turn{Text: "I try."}},
			2: {Turn: &chat.Turn{Text: strings.Repeat("long ", 20_000)}},
			3: {Messages: []chat.Message{{Role: chat.RoleUser, Text: "thanks"}}},
		},
	}
	first := r.passes[1]
	want := []string{"1 message do it", "1 turn I try."}
	for n := 1; n <= 130; n++ { // more than are read at once, and more than fit on a page
		first.Calls = append(first.Calls, jig.Call{
			ID: jig.CallID(1, n), Pass: 1, Tool: "file.write", Input: []byte(`"` + strings.Repeat("x", 1500) + `"`), Status: jig.CallSucceeded,
			Result: &jig.ToolResult{Success: true, Summary: "done"},
		})
		want = append(want, "1 call "+jig.CallID(1, n))
	}
	r.passes[1] = first
	lines, pages := r.whole(t)
	require.Equal(t, append(want, "2 turn long long long long …", "3 message thanks"), lines)
	require.Greater(t, pages, 1)
}

func TestTranscript_CutsWhatIsLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	r := archive{
		session: jig.Session{Tenant: "acme", ID: "ses_1", Pass: 1, Agent: jig.Agent{Instructions: long}, Input: []byte(`"` + long + `"`)},
		passes: map[int]chat.Exchange{1: {Turn: &chat.Turn{Text: long}, Calls: []jig.Call{{
			ID: "1.1", Input: []byte("{not JSON " + long), Status: jig.CallFailed, Result: &jig.ToolResult{Error: jig.Errorf(jig.CodeInvalidInput, "bad")},
		}}}},
	}
	page, err := r.activities().Transcript(t.Context(), protocol.TranscriptRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.True(t, page.Opening.Truncated)
	require.Len(t, page.Entries, 2)
	require.True(t, page.Entries[0].Truncated)
	require.True(t, page.Entries[1].Truncated)
	require.Equal(t, jig.CodeInvalidInput, page.Entries[1].Error.Code)
}

func TestTranscript_RefusesBadRequests(t *testing.T) {
	t.Parallel()
	r := archive{session: jig.Session{Tenant: "acme", ID: "ses_1"}}
	_, err := r.activities().Transcript(t.Context(), protocol.TranscriptRequest{Tenant: "acme", SessionID: "ses_1", Cursor: "0.0.0"})
	require.Equal(t, jig.CodeInvalidInput, failed(t, err))
	_, err = r.activities().Transcript(t.Context(), protocol.TranscriptRequest{Tenant: "other", SessionID: "ses_1"})
	require.Equal(t, jig.CodeNotFound, failed(t, err))
}
