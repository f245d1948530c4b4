package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/store/storetest"
)

// held returns what holds back each of the session's calls, as CallsOf reports it.
func (w world) held(t *testing.T, ids ...string) []jig.PauseScope {
	t.Helper()
	_, list, err := w.CallsOf(t.Context(), w.tenant, w.session, ids)
	require.NoError(t, err)
	scopes := make([]jig.PauseScope, len(list))
	for i, c := range list {
		scopes[i] = c.Paused
	}
	return scopes
}

func (w world) pause(t *testing.T, scope jig.PauseScope, target string) bool {
	t.Helper()
	changed, err := w.Pause(t.Context(), w.tenant, jig.Pause{Scope: scope, Target: target, By: "zoe", Claimed: true, Reason: "look first", At: time.Now().UTC()}, nil)
	require.NoError(t, err)
	return changed
}

func (w world) resume(t *testing.T, scope jig.PauseScope, target string) bool {
	t.Helper()
	changed, err := w.Resume(t.Context(), w.tenant, jig.Pause{Scope: scope, Target: target, By: "yan", At: time.Now().UTC()}, &identity.Evidence{Key: "k"})
	require.NoError(t, err)
	return changed
}

func TestPauses_HoldBackByScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.call(2)
	other.Tool, other.Digest = "mail.send", "d2"
	w.admit(t, w.call(1), other)
	require.Equal(t, []jig.PauseScope{"", ""}, w.held(t, "1.1", "1.2"))
	for _, row := range []struct {
		scope  jig.PauseScope
		target string
		want   []jig.PauseScope
	}{
		{jig.PauseTool, "mail.send", []jig.PauseScope{"", jig.PauseTool}},
		{jig.PauseTool, "mail.read", []jig.PauseScope{"", ""}},
		{jig.PauseSession, w.session, []jig.PauseScope{jig.PauseSession, jig.PauseSession}},
		{jig.PauseTenant, "", []jig.PauseScope{jig.PauseTenant, jig.PauseTenant}},
	} {
		require.True(t, w.pause(t, row.scope, row.target))
		require.False(t, w.pause(t, row.scope, row.target), "it is already in force")
		require.Equal(t, row.want, w.held(t, "1.1", "1.2"), row.scope)
		list, err := w.Pauses(t.Context(), w.tenant)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []string{"zoe", "look first", row.target}, []string{list[0].By, list[0].Reason, list[0].Target})
		require.True(t, w.resume(t, row.scope, row.target))
		require.False(t, w.resume(t, row.scope, row.target))
		require.Equal(t, []jig.PauseScope{"", ""}, w.held(t, "1.1", "1.2"))
	}
	require.Equal(t, []string{"session.paused", "session.resumed"}, w.types(t), "a session's own")
	rows := w.entries(t)
	require.Len(t, rows, 8)
	require.Equal(t, []string{"paused", "zoe", "tool:mail.send", "look first"}, []string{string(rows[0].Kind), rows[0].By, rows[0].Subject, rows[0].Reason})
	require.True(t, rows[0].Claimed)
	require.Equal(t, []string{"resumed", "yan", "k"}, []string{string(rows[1].Kind), rows[1].By, rows[1].Evidence.Key})
}

func TestPause_CanBeSetAgainAfterItWasLifted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.running(t, nil)
	require.True(t, w.pause(t, jig.PauseTenant, ""))
	require.True(t, w.resume(t, jig.PauseTenant, ""))
	require.True(t, w.pause(t, jig.PauseTenant, ""))
	require.Equal(t, []jig.PauseScope{jig.PauseTenant}, w.held(t, "1.1"))
	elsewhere := newWorld(t)
	elsewhere.running(t, nil)
	require.Equal(t, []jig.PauseScope{""}, elsewhere.held(t, "1.1"), "another tenant is not affected")
}

// A pause of a session also holds back its child sessions at any depth, but not its parent.
func TestPause_CoversChildSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := []world{w}
	for depth := 1; depth <= 2; depth++ {
		s, err := w.CreateSession(t.Context(), jig.Session{
			Tenant: w.tenant, ID: jig.NewSessionID(), Task: "help", ParentID: line[depth-1].session, ParentCall: "1.1", Depth: depth,
			Agent: jig.Agent{Name: "helper", Version: "0123456789abcdef", Model: "script/x", Tools: []string{"*"}}, Principal: jig.Principal{ID: "ana"},
		})
		require.NoError(t, err)
		line = append(line, world{DB: w.DB, tenant: w.tenant, session: s.ID})
	}
	stranger := world{DB: w.DB, tenant: w.tenant, session: storetest.Session(t, w.DB, w.tenant).ID}
	for _, one := range append(line[1:], stranger) {
		one.begin(t, 1)
		one.running(t, nil)
	}
	w.running(t, nil)
	all := func() (scopes []jig.PauseScope) {
		for _, one := range line {
			scopes = append(scopes, one.held(t, "1.1")...)
		}
		return append(scopes, stranger.held(t, "1.1")...)
	}
	require.True(t, w.pause(t, jig.PauseSession, line[1].session))
	require.Equal(t, []jig.PauseScope{"", jig.PauseSession, jig.PauseSession, ""}, all())
	require.True(t, w.pause(t, jig.PauseSession, w.session))
	require.Equal(t, []jig.PauseScope{jig.PauseSession, jig.PauseSession, jig.PauseSession, ""}, all())
	require.True(t, w.resume(t, jig.PauseSession, line[1].session))
	require.Equal(t, []jig.PauseScope{jig.PauseSession, jig.PauseSession, jig.PauseSession, ""}, all(), "the pause of the root is still in force")
	require.True(t, w.resume(t, jig.PauseSession, w.session))
	require.Equal(t, []jig.PauseScope{"", "", "", ""}, all())
}
