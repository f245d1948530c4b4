package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestCreateSession_CreatesOne(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	want := jig.Session{
		Tenant: tenant, ID: jig.NewSessionID(), Task: "tidy\x00 up", Input: json.RawMessage(`{"n": 1}`), Depth: 1, ParentID: "ses_p",
		ParentCall: "1.1", ParentAgent: "draft:desk", RootAgent: "nightly", Source: jig.SourceAgent,
		Agent: jig.Agent{Name: "tester", Version: "1", Model: "script/x"}, Principal: jig.Principal{ID: "ana", Groups: []string{"g"}},
		Catalog: map[string]string{"file.read": "v1"}, Todo: json.RawMessage(`[]`),
	}
	errs, got := make([]error, 6), make([]jig.Session, 6)
	var wg sync.WaitGroup
	for i := range errs {
		s := want
		s.Task += fmt.Sprint(i)
		wg.Go(func() { got[i], errs[i] = db.CreateSession(t.Context(), s) })
	}
	wg.Wait()
	for i := range errs {
		require.NoError(t, errs[i])
		got[i].UpdatedAt = got[0].UpdatedAt
		require.Equal(t, got[0], got[i], "later requests get the existing session")
	}
	s := got[0]
	require.Equal(t, jig.StatusWorking, s.Status)
	require.Equal(t, "tidy\uFFFD up", s.Task[:len(s.Task)-1], "PostgreSQL accepts no NUL")
	s.Task, s.Status, s.CreatedAt, s.UpdatedAt = want.Task, want.Status, want.CreatedAt, want.UpdatedAt
	require.Equal(t, want, s)
	list, err := db.Events(t.Context(), tenant, want.ID, 0, 0)
	require.NoError(t, err)
	require.Len(t, list, 2)

	want.Tenant = "No Tenant"
	_, err = db.CreateSession(t.Context(), want)
	requireCode(t, jig.CodeInvalidInput, err)
	_, err = db.Session(t.Context(), tenant, "ses_none")
	requireCode(t, jig.CodeNotFound, err)
}

// The session of a single call is stored completely, with its pass and its turn, and only once, however often it is requested.
func TestCreateCall_CreatesOne(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	for name, size := range map[string]int{"small": 10, "large": 2 * jig.InlineBytes} {
		want := jig.Session{
			Tenant: tenant, ID: jig.NewSessionID(), Agent: jig.Agent{Name: "call"}, Principal: jig.Principal{ID: "ana"},
			Input: json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`),
		}
		turn := chat.Turn{Stop: chat.StopCalls, Calls: []jig.ToolCall{{Name: "todo.write", Input: want.Input}}}
		errs, got := make([]error, 6), make([]jig.Session, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { got[i], errs[i] = db.CreateCall(t.Context(), want, turn) })
		}
		wg.Wait()
		for i := range errs {
			require.NoError(t, errs[i], name)
			require.Equal(t, want.ID, got[i].ID)
			require.Equal(t, 1, got[i].Pass)
			require.JSONEq(t, string(want.Input), string(got[i].Input))
		}
		begun, err := db.BeginPass(t.Context(), tenant, want.ID, 1)
		require.NoError(t, err)
		require.NotNil(t, begun.Turn)
		require.Equal(t, turn.Calls, begun.Turn.Calls)
		list, err := db.Events(t.Context(), tenant, want.ID, 0, 0)
		require.NoError(t, err)
		types := make([]jig.EventType, len(list))
		for i, e := range list {
			types[i] = e.Type
		}
		require.Equal(t, []jig.EventType{jig.EventSessionStarted, jig.EventPassStarted}, types)

		_, err = db.EndPass(t.Context(), ledger.End{Tenant: tenant, SessionID: want.ID, Pass: 1, Status: jig.StatusCompleted})
		require.NoError(t, err)
		ended, err := db.CreateCall(t.Context(), want, turn)
		require.NoError(t, err)
		require.Equal(t, jig.StatusCompleted, ended.Status, "an ended session stays ended")
	}
	_, err := db.CreateCall(t.Context(), jig.Session{Tenant: "No Tenant", ID: jig.NewSessionID()}, chat.Turn{})
	requireCode(t, jig.CodeInvalidInput, err)
}

func TestBeginPass_BeginsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	require.Nil(t, begun.Turn)
	require.Equal(t, 1, begun.Session.Pass)
	require.Empty(t, w.types(t))
	_, err = w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "hello"})
	require.NoError(t, err)
	begun, err = w.BeginPass(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	require.Equal(t, "hello", begun.Turn.Text)
	w.begin(t, 2)
	begun, err = w.BeginPass(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	require.Equal(t, 2, begun.Session.Pass, "a pass does not go back")
	require.Equal(t, []string{"pass.completed", "pass.started"}, w.types(t))
	_, err = w.BeginPass(t.Context(), w.tenant, "ses_none", 1)
	requireCode(t, jig.CodeNotFound, err)
}

func TestSaveTurn_KeepsTheFirst(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "large": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			turn := chat.Turn{
				Text: big(size), Calls: []jig.ToolCall{{ProviderID: "p1", Name: "file.read", Input: json.RawMessage(`{"path":"a"}`)}},
				Usage: chat.Usage{InputTokens: 100, OutputTokens: 20}, Stop: chat.StopCalls, Opaque: json.RawMessage(`{"sig":"x"}`),
			}
			errs, got := make([]error, 4), make([]chat.Turn, 4)
			var wg sync.WaitGroup
			for i := range errs {
				mine := turn
				mine.Model = fmt.Sprintf("m%d", i)
				wg.Go(func() { got[i], errs[i] = w.SaveTurn(t.Context(), w.tenant, w.session, 1, mine) })
			}
			wg.Wait()
			for i := range errs {
				require.NoError(t, errs[i])
				require.Equal(t, got[0].Model, got[i].Model, "the first answer counts")
			}
			kept := got[0]
			kept.Model = ""
			requireSame(t, turn.Text, kept.Text)
			kept.Text = turn.Text
			require.Equal(t, turn, kept)
			state, err := w.PassState(t.Context(), w.tenant, w.session, 1)
			require.NoError(t, err)
			require.Equal(t, int64(120), state.Session.Tokens, "counted once")
			require.Len(t, state.Turn.Text, size)
			begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 1)
			require.NoError(t, err)
			require.Len(t, begun.Exchanges[0].Turn.Text, size)
			artifacts := w.column(t, "select artifact_id from artifacts where session_id = $1", w.session)
			require.Len(t, artifacts, map[string]int{"small": 0, "large": 1}[name], "nothing is left over")

			_, err = w.SaveTurn(t.Context(), w.tenant, "ses_none", 1, turn)
			requireCode(t, jig.CodeNotFound, err)
		})
	}
}

func TestSession_HasSummaryAndTodo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.SaveSummary(t.Context(), w.tenant, w.session, 3, "three"))
	require.NoError(t, w.SaveSummary(t.Context(), w.tenant, w.session, 2, "two"))
	require.NoError(t, w.SetTodo(t.Context(), w.tenant, w.session, json.RawMessage(`[{"id":"1"}]`)))
	s, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, 3, s.SummaryThrough)
	require.Equal(t, "three", s.Summary)
	require.JSONEq(t, `[{"id":"1"}]`, string(s.Todo))
	requireCode(t, jig.CodeNotFound, w.SaveSummary(t.Context(), w.tenant, "ses_none", 1, ""))
	requireCode(t, jig.CodeNotFound, w.SetTodo(t.Context(), w.tenant, "ses_none", nil))
}
