package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/audit"
	"github.com/jig-run/jig/client"
)

// stopping is time to stop in, also when the test has ended.
func stopping(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
}

// requireAudited checks a tenant's audit chain and returns the entries.
func (d *desk) requireAudited(tenant string) []jig.AuditEntry {
	d.t.Helper()
	var list []jig.AuditEntry
	chain := audit.NewChain(tenant, 1)
	var head audit.Head
	err := d.Audit(d.t.Context(), client.AuditRequest{Tenant: tenant}, func(page client.AuditPage) error {
		if head == (audit.Head{}) {
			head = audit.Head{N: page.HeadN, Hash: page.HeadHash}
		}
		for _, row := range page.Rows {
			if broken := chain.Next(row); broken != nil {
				return fmt.Errorf("broken: %s", broken)
			}
			var e jig.AuditEntry
			if err := json.Unmarshal([]byte(row.Entry), &e); err != nil {
				return fmt.Errorf("row %d: %w", row.N, err)
			}
			list = append(list, e)
		}
		return nil
	})
	require.NoError(d.t, err)
	require.Nil(d.t, chain.End(head))
	require.NotEmpty(d.t, list)
	return list
}
