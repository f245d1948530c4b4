package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	previews "github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/stored"
)

// Limits of the audit.
const (
	// auditBytes is the maximum size of an entry, so that a row fits into what one read returns. Larger entries are shortened.
	auditBytes = 64 << 10
	// auditRows is the maximum number of rows that one read returns.
	auditRows = 1000
	// violationBytes is the maximum length of a recorded id. Such ids come from outside and may have any length.
	violationBytes = 256
)

// audit queues a row of the tenant's chain. The chain stays locked until the transaction ends, so this must be the last lock that a
// transaction takes. Tenant and At are filled in when empty.
func (t *tx) audit(e audit.Entry) error {
	if e.Tenant == "" {
		e.Tenant = t.tenant
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC()
	entry, err := encodeAudit(e)
	if err != nil {
		return err
	}
	outcome, inPart := e.Outcome()
	agent := ""
	if e.Shown != nil {
		agent = e.Shown.Agent
	}
	t.queue("AuditAppend", string(entry), text(string(e.Kind)), text(e.SessionID), text(e.Call), shortened(text(e.By)), shortened(text(e.Tool)),
		shortened(text(agent)), string(outcome), inPart)
	return nil
}

// encodeAudit encodes an entry. An entry that is too large gets shortened texts and previews of its values, because a long decision
// must be recorded too.
func encodeAudit(e audit.Entry) ([]byte, error) {
	e.Patch = readable(e.Patch)
	if e.Shown != nil {
		shown := *e.Shown
		shown.Input = readable(shown.Input)
		e.Shown = &shown
	}
	b, err := encode(e)
	for room := jig.ExcerptBytes; err == nil && len(b) > auditBytes && room >= 256; room /= 2 {
		shortenAudit(&e, room)
		b, err = encode(e)
	}
	if err == nil && len(b) > auditBytes {
		return nil, jig.Errorf(jig.CodeInvalidInput, "an audit entry of %d bytes is too large", len(b)).WithField("entry")
	}
	return b, err
}

// readable returns a value that can be stored: the value itself if it is JSON, else its text as a string.
func readable(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	shown, _ := stored.Preview(raw)
	return shown
}

// shortenAudit shortens every part of an entry that can be long.
func shortenAudit(e *audit.Entry, room int) {
	for _, s := range []*string{&e.By, &e.Subject, &e.Reason, &e.Note, &e.Tool, &e.Digest, &e.ApprovedDigest, &e.PolicyVersion} {
		*s = stored.Cut(*s, room)
	}
	if len(e.Patch) > jig.ExcerptBytes {
		e.Patch, _ = stored.Preview(e.Patch)
	}
	if e.Evidence != nil {
		e.Evidence = &identity.Evidence{Key: stored.Cut(e.Evidence.Key, room), Token: stored.Cut(e.Evidence.Token, 4*jig.ExcerptBytes), Until: e.Evidence.Until}
	}
	if e.Shown == nil {
		return
	}
	shown := new(*e.Shown)
	shown.Summary, shown.Preview, shown.Reasons = stored.Cut(e.Shown.Summary, room), nil, nil
	shown.Agent, shown.RequestedBy = stored.Cut(shown.Agent, room), stored.Cut(shown.RequestedBy, room)
	if p := e.Shown.Preview; p != nil {
		fit, cut := previews.Fit(*p, 2*room)
		shown.Preview, shown.Truncated = &fit, shown.Truncated || cut
	}
	for _, reason := range e.Shown.Reasons[:min(len(e.Shown.Reasons), 20)] {
		shown.Reasons = append(shown.Reasons, stored.Cut(reason, room))
	}
	if len(shown.Input) > jig.ExcerptBytes {
		shown.Input, shown.Truncated = stored.PreviewInput(shown.Input)
	}
	e.Shown = shown
}

// RecordAudit records an entry in a tenant's audit that concerns no session.
func (db *DB) RecordAudit(ctx context.Context, tenant string, e audit.Entry) error {
	if err := jig.CheckTenant(tenant); err != nil {
		return err
	}
	return db.transact(ctx, tenant, func(t *tx) error {
		t.queue("TenantEnsure", tenant)
		return t.finish(ctx, &log{audits: []audit.Entry{e}}, "")
	})
}

// RecordOnce records an entry in a tenant's audit, unless it has one of the same kind, session, call and subject.
func (db *DB) RecordOnce(ctx context.Context, tenant string, e audit.Entry) error {
	if err := jig.CheckTenant(tenant); err != nil {
		return err
	}
	session, call := text(e.SessionID), text(e.Call)
	return db.transact(ctx, tenant, func(t *tx) error {
		var known []string
		t.queue("Serialize", strings.Join([]string{"jig audit once", tenant, string(e.Kind), session, call}, " "))
		column(t.queue("AuditEntriesOfCall", tenant, session, call, string(e.Kind)), &known)
		if err := t.flush(ctx); err != nil {
			return err
		}
		for _, entry := range known {
			var before audit.Entry
			if err := json.Unmarshal([]byte(entry), &before); err == nil && before.Subject == e.Subject {
				return nil
			}
		}
		return t.finish(ctx, &log{audits: []audit.Entry{e}}, "")
	})
}

// RecordViolation records in the audit of the caller's own tenant that a call tried to access data of another tenant. It writes one row
// per id and call, regardless of the number of attempts. Without a session every attempt writes a row.
func (db *DB) RecordViolation(ctx context.Context, by jig.Invocation, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := jig.CheckTenant(by.Tenant); err != nil {
		return err
	}
	session, call := text(by.SessionID), text(by.CallID)
	return db.transact(ctx, by.Tenant, func(t *tx) error {
		var known []string
		var tool *string
		if session != "" {
			t.queue("Serialize", strings.Join([]string{"jig violations", by.Tenant, session, call}, " "))
			column(t.queue("AuditEntriesOfCall", by.Tenant, session, call, string(audit.AuditViolation)), &known)
			value(t.queue("CallTool", by.Tenant, session, call), &tool)
			if err := t.flush(ctx); err != nil {
				return err
			}
		}
		e := audit.Entry{
			Kind: audit.AuditViolation, By: by.Principal.ID, Claimed: by.Principal.Claimed, SessionID: by.SessionID, Call: by.CallID,
			Reason: jig.ReasonIDORViolation,
		}
		if tool != nil {
			e.Tool = *tool
		}
		recorded := map[string]bool{}
		for _, entry := range known {
			var before audit.Entry
			if err := json.Unmarshal([]byte(entry), &before); err == nil {
				recorded[before.Subject] = true
			}
		}
		l := &log{}
		for _, id := range ids {
			if e.Subject = stored.Cut(text(id), violationBytes); !recorded[e.Subject] {
				recorded[e.Subject] = true
				l.audits = append(l.audits, e)
			}
		}
		return t.finish(ctx, l, by.SessionID)
	})
}

// AuditRows returns up to limit rows of a tenant's chain after row n, in order. A limit below 1 or above 1,000 means 1,000.
func (db *DB) AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error) {
	return ask(ctx, db, tenant, list[audit.Row], "AuditRows", tenant, after, boundAudit(limit))
}

// FindAudit works like [DB.AuditRows], for the rows that match a filter. Their times are those of the database's clock. It may return fewer rows than
// there are: next is the number after which to continue, or 0 at the end.
func (db *DB) FindAudit(ctx context.Context, tenant string, f protocol.AuditFilter, after int64, limit int) (found []audit.Row, next int64, err error) {
	limit = boundAudit(limit)
	first, last, err := db.auditSpan(ctx, tenant, f)
	after = max(after, first-1)
	for range auditWindows {
		if err != nil || after >= last {
			return found, 0, err
		}
		end := last + 1
		if !servedByIndex(f) {
			end = min(end, after+1+auditWindow)
		}
		var rows []audit.Row
		rows, err = ask(ctx, db, tenant, list[audit.Row], "AuditFind", append(auditMatch(tenant, f, after, end), limit-len(found))...)
		found, after = append(found, rows...), end-1
		if len(found) == limit {
			return found, found[limit-1].N, err
		}
	}
	return found, after, err
}

// auditWindow is how many rows of a chain one statement looks at whose filter no index serves alone, and auditWindows how many statements there are for
// a page.
const (
	auditWindow  = 5000
	auditWindows = 4
)

// servedByIndex reports whether an index lists exactly the rows of a filter, apart from their times.
func servedByIndex(f protocol.AuditFilter) bool {
	n := 0
	for _, value := range []string{f.SessionID, f.By, f.Tool, f.Agent, string(f.Outcome)} {
		if value != "" {
			n++
		}
	}
	return n == 1 && !strings.HasSuffix(f.Tool, "*")
}

// auditSpan returns the numbers of the first and the last row that can match a filter, by its times.
func (db *DB) auditSpan(ctx context.Context, tenant string, f protocol.AuditFilter) (first, last int64, err error) {
	if err = checkAuditFilter(f); err != nil {
		return 0, 0, err
	}
	if last, _, err = db.AuditHead(ctx, tenant); err != nil || f.Since.IsZero() && f.Until.IsZero() {
		return 1, last, err
	}
	span, err := ask(ctx, db, tenant, list[auditSpanRow], "AuditSpan", tenant, moment(f.Since), moment(f.Until))
	if err != nil {
		return 0, 0, err
	}
	first = 1
	switch since := span[0].Since; {
	case since != nil:
		first = *since
	case !f.Since.IsZero():
		first = last + 1
	}
	if until := span[0].Until; until != nil {
		last = *until - 1
	}
	return first, last, nil
}

// auditSpanRow is a row of the query AuditSpan.
type auditSpanRow struct{ Since, Until *int64 }

func checkAuditFilter(f protocol.AuditFilter) error {
	if f.Outcome != "" && !slices.Contains(audit.Outcomes(), f.Outcome) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not an outcome", text(string(f.Outcome))).WithField("outcome").
			WithHint("use approved, granted, denied, expired, withdrawn, answered or reconciled")
	}
	return checkToolFilter(f.Tool)
}

// auditMatch returns the arguments of the fragment audit_filter.
func auditMatch(tenant string, f protocol.AuditFilter, after, before int64) []any {
	tool, from, to := text(f.Tool), "", ""
	if category, ok := strings.CutSuffix(tool, "*"); ok {
		if tool = ""; category != "" {
			from, to = category, category+last
		}
	}
	return []any{
		tenant, after, before, text(f.SessionID), shortened(text(f.By)), shortened(tool), from, to,
		shortened(text(f.Agent)), string(f.Outcome),
	}
}

// decisionRow is a row of the queries AuditDecisions and AuditDecisionsOfCall. Status is nil if the call's session was deleted.
type decisionRow struct {
	N       int64
	Entry   string
	Status  *jig.CallStatus
	Summary *string
	Error   *jig.Error
}

// decided returns the call as it was shown, with the decision and what became of it.
func (r decisionRow) decided() (jig.Pending, error) {
	var e audit.Entry
	if err := decode([]byte(r.Entry), &e); err != nil {
		return jig.Pending{}, err
	}
	p := approval.Past(e)
	p.Decided.Status, p.Decided.Result, p.Decided.Error = orZero(r.Status), orZero(r.Summary), r.Error
	return p, nil
}

func decidedCalls(rows []decisionRow) ([]jig.Pending, error) {
	list := make([]jig.Pending, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = row.decided(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Decisions lists the decisions that match a filter, the latest first, after a cursor ("" for the first page); next is "" at the end. A page has at
// most limit entries, and may have fewer although more follow.
func (db *DB) Decisions(ctx context.Context, tenant string, f protocol.AuditFilter, after string, limit int) (page []jig.Pending, next string, err error) {
	first, last, err := db.auditSpan(ctx, tenant, f)
	if err != nil {
		return nil, "", err
	}
	same := f
	same.Since, same.Until = time.Time{}, time.Time{} // they may differ from page to page, because people write them as ages
	before, of := int64(math.MaxInt64), pageOf{tenant, "decisions", same}
	if err := db.cursors.open(of, after, &before); err != nil {
		return nil, "", err
	}
	before = min(before, last+1)
	var found []decisionRow
	for range auditWindows {
		floor := first - 1
		if !servedByIndex(f) {
			floor = max(floor, before-1-auditWindow)
		}
		rows, err := ask(ctx, db, tenant, list[decisionRow], "AuditDecisions", append(auditMatch(tenant, f, floor, before), limit+1-len(found))...)
		if err != nil {
			return nil, "", err
		}
		if found = append(found, rows...); len(found) > limit {
			found, before = found[:limit], found[limit-1].N
			break
		}
		if before = floor + 1; floor < first {
			page, err = decidedCalls(found)
			return page, "", err
		}
	}
	if page, err = decidedCalls(found); err == nil {
		next, err = db.cursors.seal(of, before)
	}
	return page, next, err
}

// DecisionsOf returns the latest decisions about a call, the latest first. They outlive its session.
func (db *DB) DecisionsOf(ctx context.Context, tenant, id, callID string) ([]jig.Pending, error) {
	rows, err := ask(ctx, db, tenant, list[decisionRow], "AuditDecisionsOfCall", tenant, text(id), text(callID), maxDecisions)
	if err != nil {
		return nil, err
	}
	return decidedCalls(rows)
}

// maxDecisions is how many decisions about a call are shown.
const maxDecisions = 50

func boundAudit(limit int) int {
	if limit <= 0 {
		return auditRows
	}
	return min(limit, auditRows)
}

// AuditHead returns the number and the hash (in hex) of the last row of a tenant's chain. For an empty chain it returns 0 and the hash
// that precedes the first row.
func (db *DB) AuditHead(ctx context.Context, tenant string) (n int64, hash string, err error) {
	type auditHead struct {
		N    int64
		Hash string
	}
	head, err := ask(ctx, db, tenant, first[auditHead], "AuditHead", tenant)
	if err != nil {
		return 0, "", err
	}
	if head == nil {
		genesis := audit.Genesis(tenant)
		return 0, hex.EncodeToString(genesis[:]), nil
	}
	return head.N, head.Hash, nil
}
