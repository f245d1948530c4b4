package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestOlderCalls_ReturnsTheLatestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for pass := 1; pass <= 4; pass++ {
		if pass > 1 {
			w.begin(t, pass)
		}
		list := []jig.Call{w.call(1), w.call(2)}
		for i := range list {
			list[i].ID, list[i].Pass = jig.CallID(pass, i+1), pass
		}
		w.admit(t, list...)
		w.reserve(t, list[0])
		w.complete(t, list[0], 1, jig.CallSucceeded)
		w.reserve(t, list[1])
		w.complete(t, list[1], 1, map[bool]jig.CallStatus{true: jig.CallSucceeded, false: jig.CallFailed}[pass == 2])
	}
	older := func(through, limit int) []string {
		calls, err := w.OlderCalls(t.Context(), w.tenant, w.session, through, limit)
		require.NoError(t, err)
		ids := []string{}
		for _, c := range calls {
			require.JSONEq(t, `{"n":1}`, string(c.Result.Data))
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.Equal(t, []string{"3.1", "2.2", "2.1", "1.1"}, older(3, 10))
	require.Equal(t, []string{"4.1", "3.1"}, older(9, 2))
	require.Empty(t, older(0, 10))
	thief := storetest.Tenant(t)
	storetest.Session(t, w.DB, thief)
	_, err := w.OlderCalls(t.Context(), thief, w.session, 9, 10)
	requireCode(t, jig.CodeNotFound, err)
}
