package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func (w world) recorded(t *testing.T, since time.Time, limit int) []ledger.RecordedCall {
	t.Helper()
	var all []ledger.RecordedCall
	cursor := ""
	for pages := 0; ; pages++ {
		require.Less(t, pages, 50, "the pages do not end")
		list, next, err := w.RecordedCalls(t.Context(), w.tenant, since, cursor, limit)
		require.NoError(t, err)
		require.Equal(t, len(list) == 0, next == "")
		if next == "" {
			return all
		}
		require.True(t, limit <= 0 || len(list) <= limit)
		all = append(all, list...)
		cursor = next
	}
}

func TestRecordedCalls_ArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := clock(t)
	done := w.running(t, nil)
	w.complete(t, done, w.reserve(t, done).Fence, jig.CallSucceeded)
	w.begin(t, 2)
	late := w.call(1)
	late.ID, late.Pass, late.Verdict, late.Status = "2.1", 2, jig.VerdictAsk, jig.CallWaiting
	w.admit(t, late)
	other := world{DB: w.DB, tenant: w.tenant}
	s, err := w.CreateSession(t.Context(), jig.Session{
		Tenant: w.tenant, ID: jig.NewSessionID(), Task: "tidy", Agent: jig.Agent{Name: "cleaner", Model: "script/x"},
		Principal: jig.Principal{ID: "bo", Groups: []string{"ops"}}, Input: []byte(`{"n":1}`),
	})
	require.NoError(t, err)
	other.session = s.ID
	other.begin(t, 1)
	denied := other.call(1)
	denied.Verdict, denied.Status = jig.VerdictDeny, jig.CallDenied
	denied.Result = &jig.ToolResult{}
	other.admit(t, denied)

	for _, limit := range []int{0, 1, 2} {
		all := w.recorded(t, time.Now().Add(-time.Hour), limit)
		require.Len(t, all, 3)
		found := map[string]ledger.RecordedCall{}
		for _, c := range all {
			found[c.Call.SessionID+" "+c.Call.ID] = c
		}
		first, second := found[w.session+" 1.1"], found[w.session+" 2.1"]
		require.Equal(t, "file.write", first.Call.Tool)
		require.Equal(t, "v1", first.Call.Version)
		require.JSONEq(t, `{"path":"a"}`, string(first.Call.Input))
		require.Equal(t, jig.VerdictRun, first.Call.Verdict)
		require.Equal(t, jig.CallSucceeded, first.Call.Status)
		require.Nil(t, first.Call.Result)
		requireSince(t, began, 0, first.Call.CreatedAt)
		require.Equal(t, 1, first.Session.Pass)
		require.Zero(t, first.Session.Writes, "nothing had been written when it was admitted")
		require.Equal(t, 2, second.Session.Pass)
		require.Equal(t, 1, second.Session.Writes)
		third := found[other.session+" 1.1"]
		require.Equal(t, jig.VerdictDeny, third.Call.Verdict)
		require.Equal(t, jig.Session{
			Tenant: w.tenant, ID: other.session, RootAgent: "cleaner", Agent: jig.Agent{Name: "cleaner"}, Principal: jig.Principal{ID: "bo", Groups: []string{"ops"}},
			Task: "tidy", Input: []byte(`{"n":1}`), Pass: 1, Source: jig.SourceAPI,
		}, third.Session)
		require.Nil(t, third.Tool)
	}
	require.Empty(t, w.recorded(t, time.Now().Add(time.Hour), 0))
	require.Empty(t, newWorld(t).recorded(t, time.Now().Add(-time.Hour), 0))
	_, _, err = w.RecordedCalls(t.Context(), w.tenant, time.Now(), "?", 0)
	requireCode(t, jig.CodeInvalidInput, err)
}

// Large inputs make pages smaller, and a call larger than a page still gets a page of its own.
func TestRecordedCalls_BoundTheInputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, size := range []int{10 << 20, 5 << 20, 20 << 20, 100} {
		c := w.call(i + 1)
		c.Input = []byte(`"` + big(size) + `"`)
		w.admit(t, c)
	}
	var sizes []int
	cursor := ""
	for {
		list, next, err := w.RecordedCalls(t.Context(), w.tenant, time.Now().Add(-time.Hour), cursor, 0)
		require.NoError(t, err)
		if next == "" {
			break
		}
		sizes = append(sizes, len(list))
		cursor = next
	}
	require.Equal(t, []int{2, 1, 1}, sizes)
}
