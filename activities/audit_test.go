package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// auditLedger is a store of one tenant's audit rows. It implements nothing else.
type auditLedger struct {
	activities.Store

	rows   []audit.Row
	asked  []string
	failed error
}

func (l *auditLedger) AuditHead(context.Context, string) (int64, string, error) {
	return int64(len(l.rows)), "abc", l.failed
}

func (l *auditLedger) AuditRows(_ context.Context, tenant string, after int64, limit int) ([]audit.Row, error) {
	l.asked = append(l.asked, fmt.Sprint("all of ", tenant))
	return l.rows[after:min(int64(len(l.rows)), after+int64(limit))], nil
}

func (l *auditLedger) FindAudit(_ context.Context, tenant string, f protocol.AuditFilter, after int64, _ int) ([]audit.Row, int64, error) {
	l.asked = append(l.asked, fmt.Sprint(tenant, " ", f.SessionID, " ", f.Since.Unix(), " ", f.Until.IsZero(), " ", after))
	return l.rows[:1], 0, nil
}

func auditRows(n, bytes int) *auditLedger {
	l := &auditLedger{}
	for i := range n {
		l.rows = append(l.rows, audit.Row{N: int64(i + 1), Entry: strings.Repeat(`"`, bytes)})
	}
	return l
}

func TestReadAudit_ReturnsPages(t *testing.T) {
	t.Parallel()
	for _, entry := range []int{200, 20 << 10, 64 << 10} {
		l := auditRows(250, entry)
		a := activities.New(activities.Deps{Policy: noPolicies{}, Store: l, Tenants: who{}})
		request := protocol.AuditRequest{Tenant: "acme"}
		for more := true; more; {
			page, err := a.ReadAudit(t.Context(), request)
			require.NoError(t, err)
			require.NotEmpty(t, page.Rows)
			require.Equal(t, int64(250), page.HeadN)
			require.Equal(t, "abc", page.HeadHash)
			b, err := json.Marshal(page)
			require.NoError(t, err)
			require.Less(t, len(b), 130<<10)
			for _, row := range page.Rows {
				request.After++
				require.Equal(t, request.After, row.N)
			}
			more = page.More
		}
		require.Equal(t, int64(250), request.After)
	}
}

func TestReadAudit_FiltersBySession(t *testing.T) {
	t.Parallel()
	l := auditRows(3, 10)
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: l, Tenants: who{}})
	for _, request := range []protocol.AuditRequest{
		{Tenant: "acme", AuditFilter: protocol.AuditFilter{SessionID: "ses_1"}, After: 7},
		{Tenant: "acme", AuditFilter: protocol.AuditFilter{Since: time.Unix(5, 0)}},
		{Tenant: "acme"},
	} {
		page, err := a.ReadAudit(t.Context(), request)
		require.NoError(t, err)
		require.False(t, page.More)
	}
	none := time.Time{}.Unix()
	require.Equal(t, []string{fmt.Sprint("acme ses_1 ", none, " true 7"), "acme  5 true 0", "all of acme"}, l.asked)

	l.failed = jig.Errorf(jig.CodeUnavailable, "the database is away")
	_, err := a.ReadAudit(t.Context(), protocol.AuditRequest{Tenant: "acme"})
	require.ErrorContains(t, err, "the database is away")
}
