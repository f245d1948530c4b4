package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
)

// shutdownContext returns a context with time to stop servers, even after the test has ended.
func shutdownContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
}

// requireAudited checks a tenant's audit chain and returns its entries. On a busy machine a page may time out; then it begins again.
func (d *testEnv) requireAudited(tenant string) []audit.Entry {
	d.t.Helper()
	list, err := d.audited(tenant)
	for jig.CodeOf(err) == jig.CodeTimeout && d.t.Context().Err() == nil {
		list, err = d.audited(tenant)
	}
	require.NoError(d.t, err)
	require.NotEmpty(d.t, list)
	return list
}

// audited reads and checks a tenant's whole audit.
func (d *testEnv) audited(tenant string) (list []audit.Entry, err error) {
	chain := audit.NewChain(tenant, 1)
	var head audit.Head
	err = d.Audit(d.t.Context(), client.AuditRequest{Tenant: tenant}, func(page client.AuditPage) error {
		if head == (audit.Head{}) {
			head = audit.Head{N: page.HeadN, Hash: page.HeadHash}
		}
		for _, row := range page.Rows {
			if broken := chain.Next(row); broken != nil {
				return fmt.Errorf("broken: %s", broken)
			}
			var e audit.Entry
			if err := json.Unmarshal([]byte(row.Entry), &e); err != nil {
				return fmt.Errorf("row %d: %w", row.N, err)
			}
			list = append(list, e)
		}
		return nil
	})
	if broken := chain.End(head); err == nil && broken != nil {
		err = fmt.Errorf("broken: %s", broken)
	}
	return list, err
}

// requireOneStory checks that the log of each call agrees with the audit and with the effects that reached the receiver.
func (m *raceRun) requireOneStory(n int, rows []audit.Entry) {
	m.t.Helper()
	told, err := m.Events(m.t.Context(), m.tenant, m.id, 0)
	require.NoError(m.t, err)
	done := func() string { return fmt.Sprintf("schedule %d, %s:\n%s", n, m.id, strings.Join(m.log, "\n")) }
	stories := map[string]*callSummary{}
	for _, e := range told {
		if stories[e.CallID] == nil {
			stories[e.CallID] = &callSummary{}
		}
		stories[e.CallID].tell(e)
	}
	audited := map[string][]string{}
	for _, e := range rows {
		if slices.Contains(imposed, e.Kind) { // the log does not say who ended a session, and nothing of resets
			continue
		}
		audited[e.Call] = append(audited[e.Call], string(e.Kind)+" "+e.By)
	}
	for call, s := range stories {
		require.Equal(m.t, s.decisions, audited[call], "%s: log and audit differ; %s", call, done())
		delete(audited, call)
		if call == "" || s.opened == 0 {
			continue
		}
		require.LessOrEqual(m.t, s.closed, s.opened, "%s was decided twice; %s", call, done())
		require.Equal(m.t, 1, s.ends, "%s must end once; %s", call, done())
		if m.names[call] == "" {
			continue
		}
		ran := m.executions(call)
		require.LessOrEqual(m.t, ran, 1, "%s ran %d times; %s", call, ran, done())
		if ran > 0 {
			require.True(m.t, s.approved && !s.denied, "%s ran without an approval; %s", call, done())
		}
		if s.succeeded {
			require.Equal(m.t, 1, ran, "%s succeeded, so it must have run once; %s", call, done())
		}
	}
	require.Empty(m.t, audited, "the audit has rows that the log does not have; %s", done())
}

// callSummary summarizes a session's log about one call.
type callSummary struct {
	// decisions are the rows that the audit must contain, in order.
	decisions []string
	// opened counts the requests to people, closed the final answers, and ends how often the call ended.
	opened, closed, ends int
	// open says that something waits, or that an approval has not been used yet.
	open                        bool
	approved, denied, succeeded bool
}

func (s *callSummary) tell(e jig.Event) {
	var data struct {
		By      string          `json:"by"`
		Edited  json.RawMessage `json:"edited"`
		Pending json.RawMessage `json:"pending"`
	}
	_ = json.Unmarshal(e.Data, &data) //nolint:errcheck // data without these members leaves them empty
	decided := func(kind audit.Kind, final bool) {
		s.decisions = append(s.decisions, string(kind)+" "+data.By)
		if final {
			s.closed++
			s.open = false
		}
	}
	switch e.Type { //nolint:exhaustive // other events are not about decisions
	case jig.EventToolNeedsApproval, jig.EventToolAsked:
		s.opened++
		s.open = true
	case jig.EventToolOutcomeUnknown:
		if data.Pending == nil { // the session was canceled, so nobody is asked
			s.ends++
			s.withdrawn()
			return
		}
		s.opened++
		s.open = true
	case jig.EventToolStarted:
		s.open = false
	case jig.EventToolApproved:
		s.approved = true
		kind := audit.AuditApproved
		if data.Edited != nil {
			kind = audit.AuditEdited
		}
		decided(kind, true)
		s.open = true // until it is used
	case jig.EventToolEdited:
		decided(audit.AuditEdited, true)
	case jig.EventApprovalVoted:
		decided(audit.AuditVoted, false)
	case jig.EventApprovalDelegated:
		decided(audit.AuditDelegated, false)
	case jig.EventDecisionRefused:
		decided(audit.AuditRefused, false)
	case jig.EventToolReconciled:
		if data.By == "" { // the attempt reported late how it ended, so nobody is asked any more
			s.withdrawn()
			return
		}
		decided(audit.AuditReconciled, true)
	case jig.EventToolAnswered:
		decided(audit.AuditAnswered, true)
	case jig.EventToolDenied:
		s.denied = true
		s.ends++
		decided(audit.AuditDenied, true)
	case jig.EventToolExpired:
		s.ends++
		decided(audit.AuditExpired, true)
	case jig.EventApprovalWithdrawn:
		decided(audit.AuditWithdrawn, true)
	case jig.EventToolCompleted:
		s.succeeded = true
		s.ends++
	case jig.EventToolFailed, jig.EventToolCancelled:
		s.ends++
		s.withdrawn()
	}
}

// withdrawn records that a request which was still waiting, or an unused approval, was withdrawn without a person's answer.
func (s *callSummary) withdrawn() {
	if s.open {
		s.open = false
		s.decisions = append(s.decisions, string(audit.AuditWithdrawn)+" ")
	}
}
