package workflows_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gowebpki/jcs"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// record holds the stored data of a finished session. Most of it is read with plain SQL, not with the store's own code.
type record struct {
	calls     map[string]storedCall
	approvals map[string][]storedApproval
	events    []jig.Event
	audits    []audit.Entry
}

type storedCall struct {
	CallID, Tool, Version, Verdict, Status, Digest, PolicyVersion string
	Input                                                         []byte
}

type storedApproval struct {
	CallID, Kind, Status, Digest, ApprovedDigest, RequestedBy, GrantID string
	RequestedAt                                                        time.Time
	Votes, Delegations                                                 []byte
}

// fact is the part of an event's data that the checks use.
type fact struct {
	By       author          `json:"by"`
	Edited   json.RawMessage `json:"edited"`
	Pending  json.RawMessage `json:"pending"`
	Grant    string          `json:"grant"`
	Outcome  string          `json:"outcome"`
	OnExpiry string          `json:"on_expiry"`
}

// author is the person whom an event names. It is empty if the event names several.
type author string

// UnmarshalJSON reads a name and ignores anything that is not a string.
func (a *author) UnmarshalJSON(raw []byte) error {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		*a = author(name)
	}
	return nil
}

// check verifies everything that must be true of the store's record of the session and of what the tools did.
func (p *play) check() {
	r := p.record()
	p.checkAnswers(r)
	p.checkAgreement(r)
	p.checkExpiry(r)
	for id, call := range r.calls {
		p.checkCall(r, id, call)
	}
	for key := range p.effects {
		call, ok := strings.CutPrefix(key, p.key(""))
		require.True(p.t, ok, key)
		require.Contains(p.t, r.calls, call, "something ran that was never admitted")
	}
}

func (p *play) record() record {
	ctx := p.t.Context()
	r := record{calls: map[string]storedCall{}, approvals: map[string][]storedApproval{}}
	rows, err := p.conn.Query(ctx, `select call_id, tool, version, verdict, status, digest, policy_version, input
		from calls where session_id = $1`, p.id)
	require.NoError(p.t, err)
	calls, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedCall])
	require.NoError(p.t, err)
	for _, c := range calls {
		r.calls[c.CallID] = c
	}
	rows, err = p.conn.Query(ctx, `select call_id, kind, status, digest, approved_digest, requested_by, grant_id, requested_at, votes, delegations
		from approvals where session_id = $1 order by id`, p.id)
	require.NoError(p.t, err)
	approvals, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedApproval])
	require.NoError(p.t, err)
	for _, a := range approvals {
		r.approvals[a.CallID] = append(r.approvals[a.CallID], a)
	}
	for after := int64(0); ; {
		page, err := p.db.Events(ctx, p.tenant, p.id, after, 1000)
		require.NoError(p.t, err)
		for _, e := range page {
			after++
			require.Equal(p.t, after, e.Seq, "the log has a gap")
		}
		if len(page) == 0 {
			break
		}
		r.events = append(r.events, page...)
	}
	r.audits = p.audits()
	return r
}

// audits reads the new rows of the tenant's audit chain, checks that the chain is intact, and returns the rows that concern the session.
func (p *play) audits() []audit.Entry {
	var own []audit.Entry
	for {
		rows, err := p.db.AuditRows(p.t.Context(), p.tenant, p.audited, 1000)
		require.NoError(p.t, err)
		for _, row := range rows {
			require.Nil(p.t, p.chain.Next(row), "the audit chain is broken")
			p.audited = row.N
			var entry audit.Entry
			require.NoError(p.t, json.Unmarshal([]byte(row.Entry), &entry))
			if entry.SessionID == p.id || entry.Kind == audit.AuditRevoked {
				own = append(own, entry)
			}
		}
		if len(rows) == 0 {
			return own
		}
	}
}

// decisions are the kinds of audit rows that record one decision of a person.
var decisions = []audit.Kind{
	audit.AuditApproved, audit.AuditVoted, audit.AuditDenied, audit.AuditEdited, audit.AuditDelegated, audit.AuditRefused, audit.AuditAnswered, audit.AuditReconciled,
}

// checkAnswers checks that every decision that arrived was answered exactly once.
func (p *play) checkAnswers(r record) {
	sent, updates := 0, map[string]*letter{}
	for _, l := range p.letters {
		if !l.accepted || l.name == protocol.SignalMessage && p.kind == protocol.PassWorkflow { // a single call refuses messages
			continue
		}
		if l.update == "" {
			sent++
			continue
		}
		if temporal.IsCanceledError(l.err) && p.unopened(r) {
			continue // it waited for a session that was never opened, and its sender got an error
		}
		require.NoError(p.t, l.err, "update %s (%s)", l.update, l.says)
		require.NotNil(p.t, l.answer, "update %s (%s) was accepted and never answered", l.update, l.says)
		if first, ok := updates[l.update]; ok {
			require.Equal(p.t, first.answer, l.answer, "the same update was answered twice")
			continue
		}
		updates[l.update] = l
		sent++
	}
	answered := 0
	for _, entry := range r.audits {
		if slices.Contains(decisions, entry.Kind) {
			answered++
		}
	}
	if p.unopened(r) {
		require.LessOrEqual(p.t, answered, sent) // signals to a session that was never opened
		return
	}
	require.Equal(p.t, sent, answered, "decisions that arrived, and their audit rows")
}

// unopened reports whether the session was canceled before it began.
func (p *play) unopened(r record) bool {
	if p.resumed && temporal.IsCanceledError(p.ended) { // or before the pass that would have continued it began
		return true
	}
	return p.ended != nil && !slices.ContainsFunc(r.events, func(e jig.Event) bool { return e.Type == jig.EventPassStarted })
}

// checkAgreement checks that the event log and the audit agree about each call, in the same order.
func (p *play) checkAgreement(r record) {
	told, kept := map[string][]string{}, map[string][]string{}
	open := map[string]bool{}
	for _, e := range r.events {
		p.tally[e.Type]++
		var f fact
		require.NoError(p.t, json.Unmarshal(e.Data, &f))
		if tells := telling(e, f, open); tells != "" {
			told[e.CallID] = append(told[e.CallID], tells)
		}
	}
	for _, entry := range r.audits {
		line := string(entry.Kind)
		if entry.Kind == audit.AuditRevoked || entry.Kind == audit.AuditDocument { // these have no event in a session
			continue
		}
		if entry.Kind != audit.AuditGrantUsed && entry.Kind != audit.AuditGranted { // several people may have given a grant
			line += " " + entry.By
		}
		kept[entry.Call] = append(kept[entry.Call], line)
	}
	require.Equal(p.t, told, kept, "the event log (expected) and the audit (actual)")
}

// telling returns the audit row that an event must have, or "" if it has none. open records the calls whose approval can be withdrawn.
func telling(e jig.Event, f fact, open map[string]bool) string {
	waited := open[e.CallID]
	switch e.Type { //nolint:exhaustive // the other events record no decision
	case jig.EventToolNeedsApproval, jig.EventToolAsked:
		open[e.CallID] = true
		return ""
	case jig.EventToolOutcomeUnknown:
		open[e.CallID] = len(f.Pending) > 0
		return ""
	case jig.EventApprovalVoted:
		return "voted " + string(f.By)
	case jig.EventToolEdited:
		return "edited " + string(f.By)
	case jig.EventApprovalDelegated:
		return "delegated " + string(f.By)
	case jig.EventDecisionRefused:
		return "refused " + string(f.By)
	case jig.EventGrantCreated:
		return "granted"
	case jig.EventGrantUsed:
		return "grant_used"
	case jig.EventSessionPaused:
		return "paused " + string(f.By)
	case jig.EventSessionResumed:
		return "resumed " + string(f.By)
	case jig.EventToolStarted: // the approval is used
		open[e.CallID] = false
	case jig.EventToolApproved:
		open[e.CallID] = true
		switch {
		case f.Grant != "":
			return ""
		case len(f.Edited) > 0:
			return "edited " + string(f.By)
		}
		return "approved " + string(f.By)
	case jig.EventToolDenied:
		open[e.CallID] = false
		if f.By != "" {
			return "denied " + string(f.By)
		}
	case jig.EventApprovalWithdrawn:
		open[e.CallID] = false
		return "withdrawn "
	case jig.EventToolExpired:
		open[e.CallID] = false
		return "expired "
	case jig.EventToolReconciled:
		open[e.CallID] = false
		return "reconciled " + string(f.By)
	case jig.EventToolAnswered:
		open[e.CallID] = false
		return "answered " + string(f.By)
	case jig.EventToolCancelled, jig.EventToolFailed:
		open[e.CallID] = false
		if waited {
			return "withdrawn "
		}
	}
	return ""
}

// checkExpiry checks that a session that an expiry ends does not continue.
func (p *play) checkExpiry(r record) {
	ending := false
	for _, e := range r.events {
		var f fact
		require.NoError(p.t, json.Unmarshal(e.Data, &f))
		switch e.Type { //nolint:exhaustive // the other events neither end nor continue a session
		case jig.EventToolExpired:
			ending = ending || f.OnExpiry != ""
		case jig.EventSessionCanceled, jig.EventSessionFailed:
			ending = false
		case jig.EventPassStarted, jig.EventPassCompleted, jig.EventSessionCompleted:
			require.False(p.t, ending, "event %d: the session continues", e.Seq)
		}
	}
	require.False(p.t, ending, "the session did not end")
}

// finals are the events that end a call, with the status of the call.
var finals = map[jig.EventType]string{
	jig.EventToolCompleted: "succeeded", jig.EventToolFailed: "failed", jig.EventToolCancelled: "canceled", jig.EventToolDenied: "denied",
	jig.EventToolSkipped: "duplicate", jig.EventToolExpired: "expired", jig.EventToolOutcomeUnknown: "failed",
}

// checkCall checks that a call has one end, ran at most as often as allowed, and only as it was approved.
func (p *play) checkCall(r record, id string, call storedCall) {
	ended, again := []string(nil), 0
	for _, e := range r.events {
		if e.CallID != id {
			continue
		}
		var f fact
		require.NoError(p.t, json.Unmarshal(e.Data, &f))
		require.True(p.t, len(ended) == 0 || e.Type == jig.EventDecisionRefused, "call %s: %s after its end", id, e.Type)
		if e.Type == jig.EventToolReconciled && f.Outcome == string(jig.OutcomeNotHappened) {
			again++
		}
		if status, ok := finals[e.Type]; ok && len(f.Pending) == 0 {
			ended = append(ended, status)
		}
	}
	require.Equal(p.t, []string{call.Status}, ended, "call %s: its end in the log, and in the ledger", id)
	require.True(p.t, jig.CallStatus(call.Status).Final(), "call %s is %s", id, call.Status)

	consumed := 0
	for _, a := range r.approvals[id] {
		require.NotEqual(p.t, string(approval.Open), a.Status, "call %s: an approval is open after the end", id)
		if a.Status == string(approval.Consumed) {
			consumed++
		}
	}
	require.LessOrEqual(p.t, consumed, 1, "call %s: approvals that were used", id)
	if call.Tool != raceWrite {
		return
	}
	effects := p.effects[p.key(id)]
	allowed := 1 + again
	switch jig.CallStatus(call.Status) {
	case jig.CallDenied, jig.CallExpired, jig.CallCanceled, jig.CallDuplicate:
		allowed = again // for each of these a person said that the effect did not happen
	case jig.CallSucceeded:
		require.NotEmpty(p.t, effects, "call %s succeeded and never ran", id)
	case jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallFailed:
	}
	require.LessOrEqual(p.t, len(effects), allowed, "call %s (%s) ran too often", id, call.Status)
	for _, one := range effects {
		p.checkAllowed(r, id, call, one)
	}
}

// checkAllowed checks that the people whom the terms name approved exactly what ran, byte for byte.
func (p *play) checkAllowed(r record, id string, call storedCall, ran effect) {
	input, err := json.Marshal(ran.input)
	require.NoError(p.t, err)
	digest := p.digest(id, call, input)
	i := slices.IndexFunc(r.approvals[id], func(a storedApproval) bool {
		return a.Kind == string(jig.PendingApproval) && a.ApprovedDigest == digest && (a.Status == string(approval.Consumed) || a.Status == string(approval.Expired))
	})
	require.GreaterOrEqual(p.t, i, 0, "call %s ran %s, and nobody approved exactly that", id, input)
	approval := r.approvals[id][i]
	require.True(p.t, slices.ContainsFunc(r.audits, func(e audit.Entry) bool {
		return e.Call == id && e.ApprovedDigest == digest && (e.Kind == audit.AuditApproved || e.Kind == audit.AuditEdited || e.Kind == audit.AuditGrantUsed)
	}), "call %s ran %s, and the audit does not say who approved it", id, input)
	if p.needs == nil {
		return
	}
	var votes []jig.Vote
	var delegations []jig.Delegation
	require.NoError(p.t, json.Unmarshal(approval.Votes, &votes))
	if len(approval.Delegations) > 0 {
		require.NoError(p.t, json.Unmarshal(approval.Delegations, &delegations))
	}
	for _, need := range p.needs(ran.input) {
		met := map[string]bool{}
		for _, v := range votes {
			if need.allows(v.By, v.At, approval.RequestedAt, delegations) {
				met[v.By] = true
			}
			require.False(p.t, need.notRequester && v.By == raceRequester, "call %s was approved by its requester", id)
			require.True(p.t, approval.GrantID != "" || slices.ContainsFunc(r.audits, func(e audit.Entry) bool {
				return e.Call == id && e.By == v.By && (e.Kind == audit.AuditApproved || e.Kind == audit.AuditVoted || e.Kind == audit.AuditEdited)
			}), "call %s: the vote of %s is not in the audit", id, v.By)
		}
		require.GreaterOrEqual(p.t, len(met), need.quorum, "call %s ran %s with the votes %s", id, input, approval.Votes)
	}
}

func (p *play) digest(id string, call storedCall, input []byte) string {
	doc, err := json.Marshal(map[string]any{
		"v": 2, "preview": nil, "installation": p.db.Installation(), "tenant": p.tenant, "session": p.id, "call": id, "tool": call.Tool, "version": call.Version, "input": json.RawMessage(input),
		"policy_version": call.PolicyVersion,
	})
	require.NoError(p.t, err)
	doc, err = jcs.Transform(doc)
	require.NoError(p.t, err)
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// need is one requirement of the schedule's policy. It is defined again here, independently of the code under test.
type need struct {
	group        string // "" for anybody
	quorum       int
	notRequester bool
	after        time.Duration
	later        string // the group that may also decide once after has passed
}

func (n need) allows(who string, at, asked time.Time, delegations []jig.Delegation) bool {
	if n.group == "" || inGroup(who, n.group) || n.later != "" && !at.Before(asked.Add(n.after)) && inGroup(who, n.later) {
		return true
	}
	return slices.ContainsFunc(delegations, func(d jig.Delegation) bool {
		return d.To == who && !d.At.After(at) && n.allows(d.From, d.At, asked, delegations)
	})
}

func inGroup(who, group string) bool {
	return slices.ContainsFunc(racePeople, func(p jig.Principal) bool { return p.ID == who && slices.Contains(p.Groups, group) })
}
