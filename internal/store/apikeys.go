package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/history"
)

// apiKeyRow holds the columns that the queries APIKeyFind and APIKeysOf begin with.
type apiKeyRow struct {
	TenantID  string
	KeyID     string
	Name      string
	Principal string
	Scopes    []string
	CreatedAt time.Time
	ExpiresAt *time.Time
	Maker     string
}

type foundKeyRow struct {
	apiKeyRow
	Links identity.Lineage
}

type listedKeyRow struct {
	apiKeyRow
	RevokedAt    *time.Time
	UsedAt       *time.Time
	CreatedBy    string
	RevokedBy    string
	MadeWithKind string
	MadeWithID   string
	Persons      []string
}

func (r *apiKeyRow) key() apikey.Key {
	return apikey.Key{
		Tenant: r.TenantID, ID: r.KeyID, Name: r.Name, Principal: r.Principal, Scopes: r.Scopes, CreatedAt: r.CreatedAt.UTC(), ExpiresAt: utc(r.ExpiresAt), Maker: r.Maker,
	}
}

// CreateAPIKey stores an API key with the hash of its text, and returns it as stored. Only the server's role may do so.
func (db *DB) CreateAPIKey(ctx context.Context, k apikey.Key, hash []byte) (apikey.Key, error) {
	var created *time.Time
	err := db.once(ctx, k.Tenant, func(t *tx) {
		value(t.queue("APIKeyInsert", k.Tenant, k.ID, text(k.Name), text(k.Principal), k.Scopes, hash, k.ExpiresAt, text(k.CreatedBy),
			text(k.Maker), k.MadeWith.Kind, text(k.MadeWith.ID), texts(k.Persons)), &created)
		t.note(keyEvent(ctx, history.KeyCreated, k.ID, k.CreatedBy))
	})
	if err != nil {
		return apikey.Key{}, err
	}
	k.CreatedAt = created.UTC()
	return k, nil
}

// APIKey returns the key with an id and a hash, whatever its tenant. A key that does not exist, was revoked or has expired is NOT_FOUND.
func (db *DB) APIKey(ctx context.Context, id string, hash []byte) (apikey.Key, error) {
	var row *foundKeyRow
	if err := db.once(ctx, "", func(t *tx) { first(t.queue("APIKeyFind", id, hash), &row) }); err != nil {
		return apikey.Key{}, err
	}
	if row == nil {
		return apikey.Key{}, jig.Errorf(jig.CodeNotFound, "there is no such API key, or it is no longer valid")
	}
	key := row.key()
	key.Lineage = row.Links
	return key, nil
}

// NotePersons stores who of a key's principals is a person of the tenant, so that the key ends when they leave.
func (db *DB) NotePersons(ctx context.Context, tenant, id string, persons []string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("APIKeyPersons", tenant, text(id), texts(persons)) })
}

// KeyLineage returns an API key of a tenant with those that made it. The error is NOT_FOUND if one of them was revoked or has expired, or if the
// tenant has no such key.
func (db *DB) KeyLineage(ctx context.Context, tenant, id string) (identity.Lineage, error) {
	var row *struct {
		Stands bool
		Links  identity.Lineage
	}
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("APIKeyLineage", tenant, text(id)), &row) }); err != nil {
		return nil, err
	}
	if row == nil || !row.Stands {
		return nil, jig.Errorf(jig.CodeNotFound, "the API key %s, or one that made it, is no longer valid", id)
	}
	return row.Links, nil
}

// ValidAPIKeys returns those of the given keys, of all tenants, that are valid now.
func (db *DB) ValidAPIKeys(ctx context.Context, ids []string) ([]string, error) {
	var valid []string
	err := db.once(ctx, "", func(t *tx) { column(t.queue("APIKeysValid", ids), &valid) })
	return valid, err
}

// APIKeys lists a tenant's API keys, the oldest first, including those that are no longer valid.
func (db *DB) APIKeys(ctx context.Context, tenant string) ([]apikey.Key, error) {
	var rows []listedKeyRow
	if err := db.once(ctx, tenant, func(t *tx) { list(t.queue("APIKeysOf", tenant), &rows) }); err != nil {
		return nil, err
	}
	keys := make([]apikey.Key, len(rows))
	for i := range rows {
		keys[i] = rows[i].key()
		keys[i].RevokedAt, keys[i].UsedAt = utc(rows[i].RevokedAt), utc(rows[i].UsedAt)
		keys[i].CreatedBy, keys[i].RevokedBy, keys[i].Persons = rows[i].CreatedBy, rows[i].RevokedBy, rows[i].Persons
		keys[i].MadeWith = identity.CredentialRef{Kind: rows[i].MadeWithKind, ID: rows[i].MadeWithID}
	}
	return keys, nil
}

// RevokeAPIKey ends a key on behalf of a principal, which is empty for the operator. A key that the tenant does not have is NOT_FOUND; revoking one again changes nothing.
func (db *DB) RevokeAPIKey(ctx context.Context, tenant, id, by string) error {
	var valid *bool
	return db.transact(ctx, tenant, func(t *tx) error {
		value(t.queue("APIKeyRevoke", tenant, text(id), text(by)), &valid)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if valid == nil {
			return jig.Errorf(jig.CodeNotFound, "tenant %s has no API key with this id", tenant).WithField("id").WithHint("`jig api-key list` shows them")
		}
		if *valid {
			t.note(keyEvent(ctx, history.KeyRevoked, id, by))
		}
		return t.commit(ctx)
	})
}

// TakeOverAPIKey stores that another credential than before made a key, so that the key ends with that one, and records it. It also replaces
// the hash of the key's text, because whoever made the key knows the old text. The error is CONFLICT if the key is not valid.
func (db *DB) TakeOverAPIKey(ctx context.Context, k apikey.Key, hash []byte) error {
	var id *string
	return db.transact(ctx, k.Tenant, func(t *tx) error {
		value(t.queue("APIKeyTakeOver", k.Tenant, text(k.ID), text(k.Maker), k.MadeWith.Kind, text(k.MadeWith.ID), text(k.CreatedBy), texts(k.Persons), hash), &id)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if id == nil {
			return jig.Errorf(jig.CodeConflict, "the key was revoked or has expired").WithField("key").WithHint("create a new key")
		}
		t.note(keyEvent(ctx, history.KeyTakenOver, k.ID, k.CreatedBy))
		return t.commit(ctx)
	})
}

// keyEvent returns the event of an API key that a principal created, took over or revoked.
func keyEvent(ctx context.Context, kind, id, by string) history.CredentialEvent {
	return history.CredentialEvent{Kind: kind, CredentialKind: history.KindAPIKey, CredentialID: id, Principal: by, Address: history.ActorOf(ctx).Address}
}

// RevokeAPIKeysNamed ends all of a tenant's keys with a name.
func (db *DB) RevokeAPIKeysNamed(ctx context.Context, tenant, name string) error {
	var ids []string
	return db.transact(ctx, tenant, func(t *tx) error {
		column(t.queue("APIKeysRevokeNamed", tenant, text(name)), &ids)
		if err := t.flush(ctx); err != nil {
			return err
		}
		for _, id := range ids {
			t.note(keyEvent(ctx, history.KeyRevoked, id, ""))
		}
		return t.commit(ctx)
	})
}
