package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

// writes makes a call that writes end with a status.
func (w world) writes(t *testing.T, ordinal int, status jig.CallStatus) jig.Call {
	t.Helper()
	c := w.call(ordinal)
	w.admit(t, c)
	return w.complete(t, c, w.reserve(t, c).Fence, status)
}

func TestWritten_ListsWhatChangedSomething(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, 1)
	first := w.writes(t, 1, jig.CallSucceeded)
	w.writes(t, 2, jig.CallFailed)
	read, drafts := w.call(3), w.call(4)
	drafts.Tool, drafts.Write, read.Write = "page.draft", false, false
	w.admit(t, read, drafts)
	w.complete(t, read, w.reserve(t, read).Fence, jig.CallSucceeded)
	w.complete(t, drafts, w.reserve(t, drafts).Fence, jig.CallSucceeded)
	f, root := w.frame(t, 5)
	inner, undo := w.step(f, "one"), w.step(f, "one.undo")
	undo.Write = false
	w.move(t, w.moving(f, inner, undo))
	for _, c := range []jig.Call{inner, undo, root} {
		w.complete(t, c, w.reserve(t, c).Fence, jig.CallSucceeded)
	}
	ids := func(limit int) (ids []string, undone []bool) {
		list, err := w.Written(t.Context(), w.tenant, w.session, []string{"page.draft"}, limit)
		require.NoError(t, err)
		for _, l := range list {
			ids, undone = append(ids, l.Call.ID), append(undone, l.Undone)
		}
		return ids, undone
	}
	all, undone := ids(10)
	require.Equal(t, []string{root.ID, inner.ID, drafts.ID, first.ID}, all, "the newest first; neither what failed nor what only reads")
	require.Equal(t, []bool{false, true, false, false}, undone)
	all, _ = ids(1)
	require.Len(t, all, 1)
}

func TestClaimUndo_IsGivenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, 1)
	done := w.writes(t, 1, jig.CallSucceeded)
	of := ledger.CallName{SessionID: w.session, Call: done.ID}
	undoes := func() (world, ledger.CallName) {
		other := world{DB: w.DB, tenant: w.tenant, session: storetest.Session(t, w.DB, w.tenant).ID}
		other.begin(t, 1)
		return other, ledger.CallName{SessionID: other.session, Call: "1.1"}
	}
	claim := func(by ledger.CallName) *ledger.CallName {
		other, err := w.ClaimUndo(t.Context(), w.tenant, of, by)
		require.NoError(t, err)
		return other
	}
	before := func() *ledger.CallName {
		list, err := w.Written(t.Context(), w.tenant, w.session, nil, 10)
		require.NoError(t, err)
		return list[0].Before
	}

	var names [8]ledger.CallName
	var worlds [8]world
	var won sync.Map
	var all sync.WaitGroup
	for i := range names {
		worlds[i], names[i] = undoes()
		all.Go(func() {
			if other, err := w.ClaimUndo(t.Context(), w.tenant, of, names[i]); err == nil && other == nil {
				won.Store(i, true)
			}
		})
	}
	all.Wait()
	winner, winners := 0, 0
	won.Range(func(i, _ any) bool { winner, winners = i.(int), winners+1; return true }) //nolint:forcetypeassert,errcheck // it is a number
	require.Equal(t, 1, winners, "of those that claim it at the same time, one may undo it")
	require.Nil(t, claim(names[winner]), "it may claim it again, after a crash")
	second, by := undoes()
	require.Equal(t, &names[winner], claim(by), "the first may still make its call")

	call := worlds[winner].call(1)
	worlds[winner].admit(t, call)
	fence := worlds[winner].reserve(t, call).Fence
	require.Equal(t, &names[winner], claim(by), "it is running")
	worlds[winner].complete(t, call, fence, jig.CallFailed)
	require.Nil(t, before())
	require.Nil(t, claim(by), "the first has certainly changed nothing")
	require.Equal(t, &by, claim(names[winner]))

	call = second.call(1)
	second.admit(t, call)
	second.complete(t, call, second.reserve(t, call).Fence, jig.CallSucceeded)
	third, again := undoes()
	require.Equal(t, &by, claim(again))
	require.Equal(t, &by, before())
	_, err := w.EndPass(t.Context(), ledger.End{Tenant: w.tenant, SessionID: second.session, Pass: 1, Status: jig.StatusCompleted})
	require.NoError(t, err)
	gone, err := w.PruneTenant(t.Context(), w.tenant, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.EqualValues(t, 1, gone)
	require.Equal(t, &by, claim(again), "a session that was deleted may have undone it")
	require.Equal(t, &by, before())

	other := third.writes(t, 1, jig.CallSucceeded)
	require.Nil(t, claimed(t, w, ledger.CallName{SessionID: third.session, Call: other.ID}, by), "another call")
	_, err = w.ClaimUndo(t.Context(), w.tenant, ledger.CallName{SessionID: w.session, Call: "9.9"}, by)
	requireCode(t, jig.CodeNotFound, err)
}

func claimed(t *testing.T, w world, of, by ledger.CallName) *ledger.CallName {
	t.Helper()
	other, err := w.ClaimUndo(t.Context(), w.tenant, of, by)
	require.NoError(t, err)
	return other
}
