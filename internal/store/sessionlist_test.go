package store_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// sessions lists all sessions that match a filter, page by page, by the last letter of their ids.
func (w world) sessions(t *testing.T, filter protocol.SessionFilter, limit int) string {
	t.Helper()
	var letters []string
	cursor := ""
	for {
		page, next, err := w.ListSessions(t.Context(), w.tenant, filter, cursor, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit)
		for _, item := range page {
			letters = append(letters, item.SessionID[len(item.SessionID)-1:])
		}
		if cursor = next; next == "" {
			return strings.Join(letters, " ")
		}
	}
}

// aged creates a session that started an hour before each letter that follows its own.
func (w world) aged(t *testing.T, letter, agent, by string, change func(*jig.Session)) world {
	t.Helper()
	s := jig.Session{
		Tenant: w.tenant, ID: jig.NewSessionID() + letter, Task: "task " + letter, Source: jig.SourceCLI,
		Agent: jig.Agent{Name: agent, Model: "script/x"}, Principal: jig.Principal{ID: by},
	}
	if change != nil {
		change(&s)
	}
	_, err := w.CreateSession(t.Context(), s)
	require.NoError(t, err)
	one := world{DB: w.DB, tenant: w.tenant, session: s.ID}
	one.begin(t, 1)
	return one
}

func TestListSessions_Filters(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	asks := w.aged(t, "a", "writer", "ana", nil)
	asks.asking(t)
	works := w.aged(t, "b", "writer", "bo", nil)
	works.admit(t, works.call(1))
	done := w.aged(t, "c", "reader", "ana", nil)
	partial := done.end(1, jig.StatusCompleted)
	partial.Reason = jig.ReasonPartial
	_, err := done.EndPass(t.Context(), partial)
	require.NoError(t, err)
	failed := w.aged(t, "d", "reader", "bo", nil)
	end := failed.end(1, jig.StatusFailed)
	end.Error = jig.Errorf(jig.CodeTimeout, "too slow")
	_, err = failed.EndPass(t.Context(), end)
	require.NoError(t, err)
	parent := w.aged(t, "e", "lead", "ana", nil)
	_, child := parent.starts(t, 1)
	child.asking(t)
	below := child.session[len(child.session)-1:]
	var second time.Time
	all, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{Children: true}, "", 0)
	require.NoError(t, err)
	for _, item := range all {
		if item.SessionID == works.session {
			second = item.CreatedAt
		}
	}
	for name, row := range map[string]struct {
		filter protocol.SessionFilter
		want   string
	}{
		"all":              {protocol.SessionFilter{Children: true}, below + " e d c b a"},
		"an agent":         {protocol.SessionFilter{Agent: "writer"}, "b a"},
		"a person":         {protocol.SessionFilter{RequestedBy: "bo"}, "d b"},
		"roots":            {protocol.SessionFilter{}, "e d c b a"},
		"children":         {protocol.SessionFilter{ParentID: parent.session}, below},
		"for people":       {protocol.SessionFilter{Status: jig.StatusInputRequired}, "e a"},
		"working":          {protocol.SessionFilter{Status: jig.StatusWorking}, "b"},
		"completed":        {protocol.SessionFilter{Status: jig.StatusCompleted}, "c"},
		"failed, of bo":    {protocol.SessionFilter{Status: jig.StatusFailed, RequestedBy: "bo"}, "d"},
		"canceled":         {protocol.SessionFilter{Status: jig.StatusCanceled}, ""},
		"a reason":         {protocol.SessionFilter{Reason: jig.ReasonPartial}, "c"},
		"before":           {protocol.SessionFilter{Before: second}, "a"},
		"after":            {protocol.SessionFilter{After: second}, "e d c"},
		"an unknown agent": {protocol.SessionFilter{Agent: "write%"}, ""},
	} {
		for _, limit := range []int{1, 2, 100} {
			require.Equal(t, row.want, w.sessions(t, row.filter, limit), "%s, %d at a time", name, limit)
		}
	}
	items := map[string]protocol.SessionItem{}
	for _, item := range all {
		items[item.SessionID] = item
	}
	require.Equal(t, 1, items[parent.session].Waiting, "it waits in the child")
	require.Equal(t, []string{parent.session, "1.1"}, []string{items[child.session].ParentID, items[child.session].ParentCall})
	require.Equal(t, "TIMEOUT: too slow", items[failed.session].Error)
	require.Equal(t, []string{"task a", "ana", "cli"}, []string{items[asks.session].Task, items[asks.session].RequestedBy, string(items[asks.session].Source)})
}

func TestListSessions_ShowsTheBeginningOfTheInput(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	long := `{"text":"` + strings.Repeat("é", 400) + `"}`
	for letter, input := range map[string]string{"a": `{"path":"go.mod"}`, "b": `{}`, "c": "", "d": long} {
		w.aged(t, letter, "writer", "ana", func(s *jig.Session) { s.Input = []byte(input) })
	}
	call := w.aged(t, "e", "call", "ana", nil)
	asked := call.call(1)
	asked.Input = []byte(`{"name":"x"}`)
	call.admit(t, asked)
	page, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{}, "", 0)
	require.NoError(t, err)
	inputs := map[string]string{}
	for _, item := range page {
		inputs[item.SessionID[len(item.SessionID)-1:]] = item.Input
	}
	require.Equal(t, map[string]string{"a": `{"path":"go.mod"}`, "b": "", "c": "", "d": jig.Cut(long, 200), "e": `{"name":"x"}`}, inputs)
	require.True(t, utf8.ValidString(inputs["d"]))
}

func TestListSessions_RefusesAForeignCursor(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	w.aged(t, "a", "writer", "ana", nil)
	w.aged(t, "b", "writer", "ana", nil)
	_, next, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{}, "", 1)
	require.NoError(t, err)
	require.NotEmpty(t, next)
	_, _, err = w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{Agent: "writer"}, next, 1)
	requireCode(t, jig.CodeInvalidInput, err)
	_, _, err = w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{}, "no cursor", 1)
	requireCode(t, jig.CodeInvalidInput, err)
	_, _, err = w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{Status: "done"}, "", 1)
	requireCode(t, jig.CodeInvalidInput, err)
}

// A single call is listed with its tool.
func TestListSessions_NamesTheToolOfASingleCall(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	single := w.aged(t, "a", jig.CallAgent, "ana", nil)
	single.admit(t, single.call(1))
	page, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{}, "", 0)
	require.NoError(t, err)
	require.Equal(t, "file.write", page[0].Tool)
}

func TestReadPass_ReturnsMessagesTurnAndCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.asking(t)
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "I write it now.", Asked: "script/x"})
	require.NoError(t, err)
	w.say(t, "m", "hurry")
	read, err := w.ReadPass(t.Context(), w.tenant, w.session, 1, 0, 10)
	require.NoError(t, err)
	require.Equal(t, "do it", read.Exchange.Messages[0].Text, "the task comes before the first turn")
	require.Equal(t, "I write it now.", read.Exchange.Turn.Text)
	require.NotNil(t, read.TurnAt)
	require.Equal(t, asked.ID, read.Exchange.Calls[0].ID)
	require.Equal(t, w.session, read.Session.ID)
	read, err = w.ReadPass(t.Context(), w.tenant, w.session, 1, 1, 10)
	require.NoError(t, err)
	require.Empty(t, read.Exchange.Calls)
	read, err = w.ReadPass(t.Context(), w.tenant, w.session, 2, 0, 10)
	require.NoError(t, err)
	require.Equal(t, "hurry", read.Exchange.Messages[0].Text, "a message that came in pass 1 is for pass 2")
	require.Nil(t, read.Exchange.Turn)
}
