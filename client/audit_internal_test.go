package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// growing returns a fake worker whose audit chain grows by one row with every page that is read.
func growing(t *testing.T, rows, pageRows int64) *fake {
	t.Helper()
	return &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, "jig.audit", name)
		r := as[AuditRequest](t, request)
		require.Equal(t, "acme", r.Tenant)
		page := AuditPage{HeadN: rows, HeadHash: "abc"}
		rows++
		for n := r.After + 1; n <= min(rows, r.After+pageRows); n++ {
			page.Rows = append(page.Rows, audit.Row{N: n})
		}
		page.More = r.After+pageRows < rows
		return page, nil
	}}
}

func TestAudit_EndsAtTheHeadOfItsFirstPage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ rows, page, after int64 }{{7, 3, 0}, {6, 3, 0}, {1, 3, 0}, {0, 3, 0}, {7, 100, 0}, {7, 1, 0}, {7, 3, 5}, {7, 3, 7}} {
		var numbers []int64
		pages := 0
		err := newTestClient(growing(t, row.rows, row.page)).Audit(t.Context(), AuditRequest{Tenant: "acme", After: row.after}, func(page AuditPage) error {
			pages++
			for _, r := range page.Rows {
				numbers = append(numbers, r.N)
			}
			return nil
		})
		require.NoError(t, err)
		require.Positive(t, pages)
		require.Len(t, numbers, int(row.rows-row.after), "%+v", row)
		for i, n := range numbers {
			require.Equal(t, row.after+int64(i)+1, n)
		}
	}
}

func TestAudit_StopsWhenTheCallbackSaysSo(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	pages := 0
	err := newTestClient(growing(t, 9, 1)).Audit(t.Context(), AuditRequest{Tenant: "acme"}, func(AuditPage) error {
		pages++
		return enough
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, pages)
}

func TestAudit_SendsItsFilters(t *testing.T) {
	t.Parallel()
	filter := protocol.AuditFilter{SessionID: "ses_a", By: "ana", Since: time.Unix(5, 0), Until: time.Unix(9, 0)}
	want := AuditRequest{Tenant: "acme", AuditFilter: filter}
	f := &fake{activity: func(_ sdk.StartActivityOptions, _ string, request any) (any, error) {
		require.Equal(t, want, request)
		return nil, applicationError(jig.CodeUnavailable, "the database is away")
	}}
	err := newTestClient(f).Audit(t.Context(), want, func(AuditPage) error { return errors.New("called") })
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
}
