package store

import (
	"context"
	"crypto/sha256"
	"math"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/vouch"
)

// credentialKind says how people call a kind of credential, and which events record that one begins and ends.
type credentialKind struct{ name, hint, begins, ends string }

func credentialKindOf(kind string) credentialKind {
	switch kind {
	case identity.KindAPIKey:
		return credentialKind{"API key", "`jig api-key list` shows them", identity.EventKeyCreated, identity.EventKeyRevoked}
	case identity.KindEmbed:
		return credentialKind{"embed token", "GET /v1/embed-tokens lists them", identity.EventEmbedCreated, identity.EventEmbedRevoked}
	}
	return credentialKind{"login", "", identity.EventLoggedIn, identity.EventLoggedOut}
}

// CreateCredential stores a credential and returns it as stored. It ends after [credential.Credential.Lifetime], or at its ExpiresAt if that comes
// earlier. A login whose attempt had a login before is a CONFLICT. Only the server's role may create credentials.
func (db *DB) CreateCredential(ctx context.Context, n credential.New) (credential.Credential, error) {
	var created *credential.Credential
	err := db.transact(ctx, n.Tenant, func(t *tx) error {
		t.queue("CredentialsForget", credential.LoginIdle)
		first(t.queue("CredentialInsert", n.Tenant, n.ID, n.Kind, n.Hash, text(n.Name), text(n.Principal), texts(n.Scopes), n.ExpiresAt, n.Lifetime(), text(n.CreatedBy),
			text(n.Maker), n.MadeWith.Kind, text(n.MadeWith.ID), texts(n.Persons), text(n.Issuer), text(n.Subject), texts(n.Groups), n.Attempt,
			text(n.Session), text(n.Tool), text(n.Origin)), &created)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if created == nil {
			return jig.Errorf(jig.CodeConflict, "this attempt was already used to log in")
		}
		t.note(credentialEvent(ctx, credentialKindOf(n.Kind).begins, identity.CredentialRef{Kind: n.Kind, ID: n.ID}, n.CreatedBy))
		return t.commit(ctx)
	})
	if err != nil {
		return credential.Credential{}, err
	}
	return *created, nil
}

// Credential returns the credential with an id and a hash, whatever its tenant. One that does not exist or has ended, also together with another in its
// lineage, is NOT_FOUND.
func (db *DB) Credential(ctx context.Context, id string, hash []byte) (credential.Credential, error) {
	found, err := ask(ctx, db, "", first[credential.Credential], "CredentialFind", id, hash, credential.LoginIdle)
	if err != nil {
		return credential.Credential{}, err
	}
	if found == nil {
		return credential.Credential{}, jig.Errorf(jig.CodeNotFound, "there is no such credential, or it is no longer valid")
	}
	return *found, nil
}

// ValidCredentials returns those of the given credentials, of all tenants, that are valid now.
func (db *DB) ValidCredentials(ctx context.Context, ids []string) ([]string, error) {
	return ask(ctx, db, "", column[string], "CredentialsValid", ids, credential.LoginIdle)
}

// Credentials lists a tenant's credentials of the given kinds, the oldest first, including those that are no longer valid.
func (db *DB) Credentials(ctx context.Context, tenant string, kinds ...string) ([]credential.Credential, error) {
	return ask(ctx, db, tenant, list[credential.Credential], "CredentialsOf", tenant, kinds)
}

// RevokeCredential ends a credential on behalf of a principal, which is empty for the operator. One that the tenant does not have is NOT_FOUND; revoking
// one again changes nothing.
func (db *DB) RevokeCredential(ctx context.Context, tenant string, c identity.CredentialRef, by string) error {
	var valid *bool
	kind := credentialKindOf(c.Kind)
	return db.transact(ctx, tenant, func(t *tx) error {
		value(t.queue("CredentialRevoke", tenant, c.Kind, text(c.ID), text(by)), &valid)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if valid == nil {
			return jig.Errorf(jig.CodeNotFound, "tenant %s has no %s with this id", jig.Known(tenant), jig.Known(kind.name)).WithField("id").WithHint(kind.hint)
		}
		if *valid {
			t.note(credentialEvent(ctx, kind.ends, c, by))
		}
		return t.commit(ctx)
	})
}

// credentialEvent returns the event of a credential that a principal created, took over or revoked.
func credentialEvent(ctx context.Context, kind string, c identity.CredentialRef, by string) identity.CredentialEvent {
	return identity.CredentialEvent{Kind: kind, CredentialKind: c.Kind, CredentialID: c.ID, Principal: by, Address: identity.AddressOf(ctx), Source: identity.SourceOf(ctx)}
}

// NotePersons stores who of a key's principals is a person of the tenant, so that the key ends when they leave.
func (db *DB) NotePersons(ctx context.Context, tenant, id string, persons []string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("CredentialPersons", tenant, text(id), texts(persons)) })
}

// KeyLineage returns an API key of a tenant with those that made it. The error is NOT_FOUND if one of them was revoked or has expired, or if the
// tenant has no such key.
func (db *DB) KeyLineage(ctx context.Context, tenant, id string) (identity.Lineage, error) {
	type lineageRow struct {
		Valid   bool
		Lineage identity.Lineage
	}
	row, err := ask(ctx, db, tenant, first[lineageRow], "APIKeyLineage", tenant, text(id))
	if err != nil {
		return nil, err
	}
	if row == nil || !row.Valid {
		return nil, jig.Errorf(jig.CodeNotFound, "the API key %s, or one that made it, is no longer valid", id)
	}
	return row.Lineage, nil
}

// TakeOverAPIKey stores that another credential than before made a key, so that the key ends with that one, and records it. It also replaces
// the hash of the key's text, because whoever made the key knows the old text. The error is CONFLICT if the key is not valid.
func (db *DB) TakeOverAPIKey(ctx context.Context, k credential.Credential, hash []byte) error {
	var id *string
	return db.transact(ctx, k.Tenant, func(t *tx) error {
		value(t.queue("APIKeyTakeOver", k.Tenant, text(k.ID), text(k.Maker), k.MadeWith.Kind, text(k.MadeWith.ID), text(k.CreatedBy), texts(k.Persons), hash), &id)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if id == nil {
			return jig.Errorf(jig.CodeConflict, "the key was revoked or has expired").WithField("key").WithHint("create a new key")
		}
		t.note(credentialEvent(ctx, identity.EventKeyTakenOver, identity.CredentialRef{Kind: identity.KindAPIKey, ID: k.ID}, k.CreatedBy))
		return t.commit(ctx)
	})
}

// embedCursor is the position where a page of embed tokens ended.
type embedCursor struct {
	At    time.Time `json:"at"`
	Token string    `json:"token"`
}

// EmbedTokens lists a tenant's embed tokens of the last week, the newest first, after a cursor ("" for the first page); next is "" at the end. A page has
// at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) EmbedTokens(ctx context.Context, tenant, after string, limit int) (tokens []credential.Credential, next string, err error) {
	from := embedCursor{At: farFuture}
	of := pageOf{Tenant: tenant, List: "embed_tokens"}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	limit = pendingLimit(limit)
	tokens, err = ask(ctx, db, tenant, list[credential.Credential], "EmbedTokensOf", tenant, from.At, text(from.Token), limit+1)
	if err == nil && len(tokens) > limit {
		tokens = tokens[:limit]
		next, err = db.cursors.seal(of, embedCursor{tokens[limit-1].CreatedAt, tokens[limit-1].ID})
	}
	return tokens, next, err
}

// recordedRunes is the maximum length of each text of a credential event, in characters.
const recordedRunes = 500

// note queues the statements that record a credential event of the transaction's tenant and delete old ones.
func (t *tx) note(e identity.CredentialEvent) {
	fields := []string{e.Reason, e.CredentialKind, e.CredentialID, e.Principal, e.Address, e.Source}
	for i, f := range fields {
		runes := []rune(text(f))
		fields[i] = string(runes[:min(len(runes), recordedRunes)])
	}
	digest := sha256.Sum256([]byte(strings.Join(fields, "\x00"))) // no text has this character
	t.queue("CredentialEventsForget")
	t.queue("CredentialEventPut", t.tenant, e.Kind, fields[0], fields[1], fields[2], fields[3], fields[4], digest[:], fields[5])
}

// RecordCredential records a credential event. It needs the server's role.
func (db *DB) RecordCredential(ctx context.Context, e identity.CredentialEvent) error {
	return db.once(ctx, e.Tenant, func(t *tx) { t.note(e) })
}

// EndedCredential returns the credential of any tenant with an id and a hash if it is no longer valid, and the reason: revoked or expired. The error is
// NOT_FOUND if it is valid, does not exist, or has another hash.
func (db *DB) EndedCredential(ctx context.Context, id string, hash []byte) (ended credential.Credential, reason string, err error) {
	type endedRow struct {
		credential.Credential
		Reason string
	}
	row, err := ask(ctx, db, "", first[endedRow], "CredentialEnded", id, hash, credential.LoginIdle)
	if err != nil {
		return credential.Credential{}, "", err
	}
	if row == nil {
		return credential.Credential{}, "", jig.Errorf(jig.CodeNotFound, "no revoked or expired credential has this id")
	}
	return row.Credential, row.Reason, nil
}

// CredentialEvents lists a tenant's credential events after a cursor ("" for the first page), newest first. An empty kind or principal means all.
// A page has at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) CredentialEvents(ctx context.Context, tenant, kind, principal, after string, limit int) (identity.CredentialEvents, error) {
	from, of := int64(math.MaxInt64), pageOf{tenant, "credential_events", []string{kind, principal}}
	if err := db.cursors.open(of, after, &from); err != nil {
		return identity.CredentialEvents{}, err
	}
	limit = pendingLimit(limit)
	type eventRow struct {
		ID int64
		identity.CredentialEvent
	}
	rows, err := ask(ctx, db, tenant, list[eventRow], "CredentialEventsOf", tenant, text(kind), text(principal), from, limit+1)
	if err != nil {
		return identity.CredentialEvents{}, err
	}
	page := identity.CredentialEvents{Events: []identity.CredentialEvent{}}
	if len(rows) > limit {
		rows = rows[:limit]
		if page.Next, err = db.cursors.seal(of, rows[limit-1].ID); err != nil {
			return identity.CredentialEvents{}, err
		}
	}
	for _, r := range rows {
		page.Events = append(page.Events, r.CredentialEvent)
	}
	return page, nil
}

// PutServerKey stores the key of a server with its certificate. A key that is stored already stays as it is. Only the server's role may do so.
func (db *DB) PutServerKey(ctx context.Context, id, certificate string) error {
	return db.once(ctx, "", func(t *tx) { t.queue("ServerKeyPut", text(id), text(certificate)) })
}

// ServerKeys returns the keys of all servers, the oldest first, including those that are no longer valid.
func (db *DB) ServerKeys(ctx context.Context) ([]vouch.Stored, error) {
	var keys []vouch.Stored
	err := db.once(ctx, "", func(t *tx) { list(t.queue("ServerKeys"), &keys) })
	return keys, err
}

// RevokeServerKey ends the key of a server: nothing that it signed counts any more. The error is NOT_FOUND if there is no such key.
func (db *DB) RevokeServerKey(ctx context.Context, id string) error {
	var changed int64
	if err := db.once(ctx, "", func(t *tx) { affected(t.queue("ServerKeyRevoke", text(id)), &changed) }); err != nil {
		return err
	}
	if changed == 0 {
		return jig.Errorf(jig.CodeNotFound, "no server has a key with this id").WithField("id").WithHint("`jig server-key list` shows them")
	}
	return nil
}
