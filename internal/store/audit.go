package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	previews "github.com/jig-run/jig/internal/preview"
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
	t.queue("AuditAppend", string(entry), text(string(e.Kind)), text(e.SessionID), text(e.Call))
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
	shown := &audit.Shown{Summary: stored.Cut(e.Shown.Summary, room), Input: e.Shown.Input, Truncated: e.Shown.Truncated}
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

// FindAudit works like [DB.AuditRows], limited to one session unless session is "", and to rows written at or after since and before
// until by the database's clock. A zero time means no limit.
func (db *DB) FindAudit(ctx context.Context, tenant, session string, since, until time.Time, after int64, limit int) ([]audit.Row, error) {
	var rows []audit.Row
	err := db.once(ctx, tenant, func(t *tx) {
		args := []any{tenant, after, boundAudit(limit), moment(since), moment(until)}
		if session == "" {
			list(t.queue("AuditFind", args...), &rows)
		} else {
			list(t.queue("AuditFindSession", append(args, text(session))...), &rows)
		}
	})
	return rows, err
}

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
