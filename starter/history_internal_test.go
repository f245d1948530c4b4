package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// paid is a decided call of a payment.
func paid(change func(d *jig.Decided)) jig.Pending {
	p := jig.Pending{
		Kind: jig.PendingApproval, SessionID: "ses_1", Call: "2.1", Tool: "ledger.pay", Input: json.RawMessage(`{"cents":1200}`), Digest: "d1",
		Reasons: []string{"it moves money"}, Decided: &jig.Decided{
			Outcome: string(audit.OutcomeApproved), At: noon, By: "ben", Proof: jig.ProofVouched, Key: "srv_9532f35f", Status: jig.CallSucceeded, Result: "paid 12.00 EUR",
		},
	}
	change(p.Decided)
	return p
}

func TestDecisions_OneLineEach(t *testing.T) {
	t.Parallel()
	previewed := paid(func(d *jig.Decided) { d.Outcome, d.By, d.Status, d.Key = string(audit.OutcomeExpired), "", "", "" })
	previewed.Preview, previewed.Decided.Proof = &jig.Preview{Title: "Pays 12.00 EUR\nto \x1b[31mme"}, ""
	f := &fake{}
	f.decisionPages = []protocol.ApprovalList{
		{Approvals: []jig.Pending{paid(func(*jig.Decided) {})}, Next: "c1"},
		{Next: "c2"},
		{Approvals: []jig.Pending{
			paid(func(d *jig.Decided) {
				d.InPart, d.Edited, d.Proof, d.Key, d.Status = true, true, jig.ProofKey, "ben-1", jig.CallWaiting
				d.Result = ""
			}),
			paid(func(d *jig.Decided) {
				d.Outcome, d.Proof, d.Claimed, d.Status = string(audit.OutcomeDenied), "", true, jig.CallDenied
				d.Error = &jig.Error{Code: jig.CodeDenied, Message: "not yet"}
			}),
			paid(func(d *jig.Decided) {
				d.Outcome, d.Grant, d.Proof, d.Key = string(audit.OutcomeGranted), "grt_1", "", ""
			}), previewed,
		}},
	}
	got := jigCLI(t, f, nil, "approvals", "--by", "me", "--tool", "ledger.*", "--agent", "payer", "--session", "ses_1", "--outcome", "approved", "--since", "2026-01-01", "--as", "ben")
	require.Equal(t, exitDone, got.code, got.stderr)
	when := noon.Local().Format(time.DateTime)
	require.Equal(t, []string{
		when + " approved by ben (vouched by srv_9532f35f) ses_1 2.1 ledger.pay · {\"cents\":1200} → succeeded: paid 12.00 EUR",
		when + " approved with changes in part by ben (signed with key ben-1) ses_1 2.1 ledger.pay · {\"cents\":1200} → waiting",
		when + " denied by ben (claimed) ses_1 2.1 ledger.pay · {\"cents\":1200} → denied: DENIED: not yet",
		when + " granted by ben with grt_1 ses_1 2.1 ledger.pay · {\"cents\":1200} → succeeded: paid 12.00 EUR",
		when + " expired ses_1 2.1 ledger.pay · Pays 12.00 EUR to [31mme",
	}, strings.Split(strings.TrimSpace(got.stdout), "\n"))
	require.Equal(t, protocol.DecisionsRequest{
		Tenant: "default", Limit: 40, Filter: protocol.AuditFilter{
			By: "ben", Tool: "ledger.*", Agent: "payer", SessionID: "ses_1", Outcome: audit.OutcomeApproved, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local),
		},
	}, f.decisionsAsked[0])
	require.Equal(t, []any{"c1", "c2"}, []any{f.decisionsAsked[1].Cursor, f.decisionsAsked[2].Cursor})

	f = &fake{}
	f.decisionPages = []protocol.ApprovalList{{Approvals: []jig.Pending{paid(func(*jig.Decided) {})}, Next: "c1"}}
	got = jigCLI(t, f, nil, "approvals", "--decided", "--limit", "1", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var page protocol.ApprovalList
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &page))
	require.Equal(t, f.decisionPages[0], page)
	for _, flags := range [][]string{{"--mine"}, {"--kind", "question"}, {"--older", "1h"}, {"--since", "soon"}, {"--until", "x"}} {
		got = jigCLI(t, &fake{}, nil, append([]string{"approvals", "--decided"}, flags...)...)
		require.Equal(t, exitUsage, got.code, flags)
	}
}

func TestShow_ADecidedCall(t *testing.T) {
	t.Parallel()
	p := paid(func(d *jig.Decided) { d.Note = "checked" })
	f := &fake{pending: []jig.Pending{p}, arguments: json.RawMessage(`{"cents":1200}`)}
	f.shownDecisions = []jig.Decided{*p.Decided, {Outcome: "approved", InPart: true, At: noon, By: "ana", Claimed: true, Reason: "1 of 2 approvals by finance, 1 missing"}}
	got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "2.1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, `ses_1 2.1 ledger.pay: approved by ben (vouched by srv_9532f35f)
  the call: succeeded: paid 12.00 EUR
  `+moment(noon)+` approved by ben (vouched by srv_9532f35f): checked
  `+moment(noon)+` approved in part by ana (claimed): 1 of 2 approvals by finance, 1 missing
    cents: 1200
  · it moves money
  digest d1
`, got.stdout)
	f.pending[0].Decided.Status = ""
	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "2.1")
	require.Contains(t, got.stdout, "\n  the session was deleted")
}

func TestAuditLine_SaysWhatTheCallDoes(t *testing.T) {
	t.Parallel()
	for want, shown := range map[string]*audit.Shown{
		"reserved · Pays 12.00 EUR · fine": {Preview: &jig.Preview{Title: "Pays 12.00 EUR"}, Input: json.RawMessage(`{"cents":1200}`)},
		`reserved · {"cents":1200} · fine`: {Input: json.RawMessage(`{"cents":1200}`)},
		"reserved · fine":                  nil,
	} {
		entry, err := json.Marshal(audit.Entry{Kind: audit.AuditApproved, At: noon, By: "ana", Call: "3.1", Status: jig.CallReserved, Shown: shown, Note: "fine"})
		require.NoError(t, err)
		line := newApp("jig", nil, nil, nil, nil).auditLine(palette{}, audit.Row{N: 1, Entry: string(entry)})
		require.True(t, strings.HasSuffix(line, want), line)
	}
}
