package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store/storetest"
)

// A session that somebody triggered also rests on their word.
func TestAskers_NameWhoTriggered(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	session, err := db.CreateSession(t.Context(), jig.Session{
		Tenant: tenant, ID: jig.NewSessionID(), Agent: jig.Agent{Name: "nightly"}, Principal: jig.Principal{ID: "ana"}, Source: jig.SourceSchedule,
		TriggeredBy: &jig.Asker{Principal: "dan", By: jig.AskedTriggered, Maker: "ben"},
	})
	require.NoError(t, err)
	askers, err := db.Askers(t.Context(), jig.Call{Tenant: tenant, SessionID: session.ID, ID: jig.CallID(1, 1), Pass: 1})
	require.NoError(t, err)
	require.ElementsMatch(t, []jig.Asker{{Principal: "ana", By: jig.AskedStarted}, {Principal: "dan", By: jig.AskedTriggered, Maker: "ben"}}, askers)
}
