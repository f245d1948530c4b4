package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/internal/tenancy"
)

// A stored notice reaches a webhook on this machine if loopback is allowed, and never if it is not.
func TestDispatcher_SendsWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		loopback bool
		status   string
		got      int
	}{"allowed": {true, "sent", 1}, "guarded": {false, "pending", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, app := storetest.NewDatabase(t)
			db := storetest.Open(t, owner, app, store.Options{})
			keepNotice(t, app, "acme", storetest.Session(t, db, "acme").ID)
			var mu sync.Mutex
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.Header.Get("webhook-id"))
			}))
			defer server.Close()
			hook := tenancy.Webhook{URL: server.URL, Secret: []byte("a secret of more than twenty-four bytes")}
			settings := func(context.Context, string) (tenancy.Settings, error) {
				return tenancy.Settings{Webhooks: []tenancy.Webhook{hook}}, nil
			}
			dispatcher := newDispatcher(db, settings, Settings{AllowLoopback: tc.loopback}, metrics.New(), slog.New(slog.DiscardHandler))
			for _, want := range []int{1, 0} {
				n, err := dispatcher.Step(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, n)
			}
			mu.Lock()
			require.Len(t, got, tc.got)
			mu.Unlock()
			conn, err := pgx.Connect(t.Context(), app)
			require.NoError(t, err)
			defer func() { _ = conn.Close(t.Context()) }()
			_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', 'acme', false)")
			require.NoError(t, err)
			var status, problem string
			require.NoError(t, conn.QueryRow(t.Context(), "select status, last_error from notice_deliveries").Scan(&status, &problem))
			require.Equal(t, tc.status, status)
			if !tc.loopback {
				require.Contains(t, problem, "prohibited")
			}
		})
	}
}

// keepNotice stores a notice, using the application's role.
func keepNotice(t *testing.T, url, tenant, session string) {
	t.Helper()
	body, err := json.Marshal(jig.Notice{ID: "ntc_1", Tenant: tenant, Kind: jig.NoticeRequested, Approval: jig.Pending{SessionID: session, Call: "1.1"}})
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "insert into notices (tenant_id, id, kind, session_id, call_id, body) values ($1, 'ntc_1', $2, $3, '1.1', $4)",
		tenant, string(jig.NoticeRequested), session, body)
	require.NoError(t, err)
}
