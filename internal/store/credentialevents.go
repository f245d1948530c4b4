package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
)

// recordedRunes is the maximum length of each text of a credential event, in characters.
const recordedRunes = 500

// note queues the statements that record a credential event of the transaction's tenant and delete old ones.
func (t *tx) note(e identity.CredentialEvent) {
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
func (db *DB) RecordCredential(ctx context.Context, e identity.CredentialEvent) error {
	return db.once(ctx, e.Tenant, func(t *tx) { t.note(e) })
}

// EndedCredential returns the credential of any tenant with an id and a hash if it is no longer valid, and the reason: revoked or expired. The error is
// NOT_FOUND if it is valid, does not exist, or has another hash.
func (db *DB) EndedCredential(ctx context.Context, id string, hash []byte) (ended credential.Credential, reason string, err error) {
	var row *struct {
		credential.Credential
		Reason string
	}
	if err := db.once(ctx, "", func(t *tx) { first(t.queue("CredentialEnded", id, hash, credential.LoginIdle), &row) }); err != nil {
		return credential.Credential{}, "", err
	}
	if row == nil {
		return credential.Credential{}, "", jig.Errorf(jig.CodeNotFound, "no revoked or expired credential has this id")
	}
	return row.Credential, row.Reason, nil
}

// credentialCursor is the position where a page of credential events ended. Filter identifies the filter of that page.
type credentialCursor struct {
	ID     int64  `json:"id"`
	Filter string `json:"filter"`
}

// CredentialEvents lists a tenant's credential events after a cursor ("" for the first page), newest first. An empty kind or principal means all.
// A page has at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) CredentialEvents(ctx context.Context, tenant, kind, principal, after string, limit int) (identity.CredentialEvents, error) {
	sum := sha256.Sum256([]byte(kind + "\x00" + principal))
	fingerprint := hex.EncodeToString(sum[:8])
	from := credentialCursor{math.MaxInt64, fingerprint}
	if err := decodeCursor(after, &from); err != nil {
		return identity.CredentialEvents{}, err
	}
	if from.Filter != fingerprint {
		return identity.CredentialEvents{}, otherFilter()
	}
	limit = pendingLimit(limit)
	var rows []struct {
		ID int64
		identity.CredentialEvent
	}
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("CredentialEventsOf", tenant, text(kind), text(principal), from.ID, limit+1), &rows)
	})
	if err != nil {
		return identity.CredentialEvents{}, err
	}
	page := identity.CredentialEvents{Events: []identity.CredentialEvent{}}
	if len(rows) > limit {
		rows, from.ID = rows[:limit], rows[limit-1].ID
		if page.Next, err = encodeCursor(from); err != nil {
			return identity.CredentialEvents{}, err
		}
	}
	for _, r := range rows {
		page.Events = append(page.Events, r.CredentialEvent)
	}
	return page, nil
}
