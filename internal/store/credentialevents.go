package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/history"
	"github.com/jig-run/jig/internal/identity/login"
)

// recordedRunes is the maximum length of each text of a credential event, in characters.
const recordedRunes = 500

// endedCredentialRow is a row of the query CredentialEnded.
type endedCredentialRow struct {
	TenantID, Kind, Reason, Principal, Issuer, Subject string
}

// credentialEventRow is a row of the query CredentialEventsOf.
type credentialEventRow struct {
	ID                                                             int64
	Kind, Reason, CredentialKind, CredentialID, Principal, Address string
	Count                                                          int64
	Minute, LastAt                                                 time.Time
}

// note queues the statements that record a credential event of the transaction's tenant and delete old ones.
func (t *tx) note(e history.CredentialEvent) {
	fields := []string{e.Reason, e.CredentialKind, e.CredentialID, e.Principal, e.Address}
	for i, f := range fields {
		runes := []rune(text(f))
		fields[i] = string(runes[:min(len(runes), recordedRunes)])
	}
	digest := sha256.Sum256([]byte(strings.Join(fields, "\x00"))) // no text has this character
	t.queue("CredentialEventsForget")
	t.queue("CredentialEventPut", t.tenant, e.Kind, fields[0], fields[1], fields[2], fields[3], fields[4], digest[:])
}

// RecordCredential records a credential event. It needs the server's role.
func (db *DB) RecordCredential(ctx context.Context, e history.CredentialEvent) error {
	return db.once(ctx, e.Tenant, func(t *tx) { t.note(e) })
}

// EndedCredential returns the credential of any tenant with an id and a hash if it is no longer valid. The error is NOT_FOUND if it is valid, does
// not exist, or has another hash.
func (db *DB) EndedCredential(ctx context.Context, id string, hash []byte) (history.Ended, error) {
	var row *endedCredentialRow
	if err := db.once(ctx, "", func(t *tx) { first(t.queue("CredentialEnded", id, hash, login.Idle), &row) }); err != nil {
		return history.Ended{}, err
	}
	if row == nil {
		return history.Ended{}, jig.Errorf(jig.CodeNotFound, "no revoked or expired credential has this id")
	}
	return history.Ended{
		Tenant: row.TenantID, Kind: row.Kind, ID: id, Reason: row.Reason, Principal: row.Principal, Issuer: row.Issuer, Subject: row.Subject,
	}, nil
}

// credentialCursor is the position where a page of credential events ended. Filter identifies the filter of that page.
type credentialCursor struct {
	ID     int64  `json:"id"`
	Filter string `json:"filter"`
}

// CredentialEvents lists a tenant's credential events after a cursor ("" for the first page), newest first. An empty kind or principal means all.
// A page has at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) CredentialEvents(ctx context.Context, tenant, kind, principal, after string, limit int) (history.Page, error) {
	sum := sha256.Sum256([]byte(kind + "\x00" + principal))
	fingerprint := hex.EncodeToString(sum[:8])
	from := credentialCursor{math.MaxInt64, fingerprint}
	if err := decodeCursor(after, &from); err != nil {
		return history.Page{}, err
	}
	if from.Filter != fingerprint {
		return history.Page{}, otherFilter()
	}
	limit = pendingLimit(limit)
	var rows []credentialEventRow
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("CredentialEventsOf", tenant, text(kind), text(principal), from.ID, limit+1), &rows)
	})
	if err != nil {
		return history.Page{}, err
	}
	page := history.Page{Events: []history.CredentialEvent{}}
	if len(rows) > limit {
		rows, from.ID = rows[:limit], rows[limit-1].ID
		if page.Next, err = encodeCursor(from); err != nil {
			return history.Page{}, err
		}
	}
	for _, r := range rows {
		page.Events = append(page.Events, history.CredentialEvent{
			Tenant: tenant, Kind: r.Kind, Reason: r.Reason, CredentialKind: r.CredentialKind, CredentialID: r.CredentialID, Principal: r.Principal,
			Address: r.Address, Count: r.Count, Minute: r.Minute.UTC(), LastAt: r.LastAt.UTC(),
		})
	}
	return page, nil
}
