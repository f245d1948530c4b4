package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/embed"
	"github.com/jig-run/jig/internal/identity/history"
)

// embedRow is a row of the queries EmbedTokenInsert, EmbedTokenFind and EmbedTokensOf.
type embedRow struct {
	TenantID  string
	TokenID   string
	SessionID string
	Tool      string
	Origin    string
	Principal string
	MakerKind string
	MakerID   string
	Issuer    string
	Subject   string
	Groups    []string
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt *time.Time
	RevokedBy string
}

func (r *embedRow) token() embed.Token {
	return embed.Token{
		Tenant: r.TenantID, ID: r.TokenID, Session: r.SessionID, Tool: r.Tool, Origin: r.Origin, Principal: r.Principal,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), RevokedAt: utc(r.RevokedAt), RevokedBy: r.RevokedBy,
		Maker: embed.Maker{Kind: r.MakerKind, ID: r.MakerID, Issuer: r.Issuer, Subject: r.Subject, Groups: r.Groups},
	}
}

// CreateEmbedToken stores a token with the hash of its text, and returns it as stored. It ends after [embed.Lifetime], or at until if that comes
// earlier.
func (db *DB) CreateEmbedToken(ctx context.Context, e embed.Token, hash []byte, until *time.Time) (embed.Token, error) {
	var row *embedRow
	err := db.once(ctx, e.Tenant, func(t *tx) {
		t.queue("EmbedTokensPrune", e.Tenant)
		first(t.queue("EmbedTokenInsert", e.Tenant, e.ID, hash, text(e.Session), text(e.Tool), text(e.Origin), text(e.Principal), e.Maker.Kind, text(e.Maker.ID),
			text(e.Maker.Issuer), text(e.Maker.Subject), texts(e.Maker.Groups), embed.Lifetime, until), &row)
		t.note(embedEvent(ctx, history.EmbedCreated, e.ID, e.Principal))
	})
	if err != nil {
		return embed.Token{}, err
	}
	return row.token(), nil
}

// EmbedToken returns the token with an id and a hash, whatever its tenant. A token that does not exist or has ended, also together with the
// credential that made it, is NOT_FOUND.
func (db *DB) EmbedToken(ctx context.Context, id string, hash []byte) (embed.Token, error) {
	var row *struct {
		embedRow
		Links identity.Lineage
	}
	if err := db.once(ctx, "", func(t *tx) { first(t.queue("EmbedTokenFind", id, hash), &row) }); err != nil {
		return embed.Token{}, err
	}
	if row == nil {
		return embed.Token{}, jig.Errorf(jig.CodeNotFound, "there is no such embed token, or it has ended")
	}
	found := row.token()
	found.Lineage = row.Links
	return found, nil
}

// ValidEmbedTokens returns those of the given tokens, of all tenants, that are valid now.
func (db *DB) ValidEmbedTokens(ctx context.Context, ids []string) ([]string, error) {
	var valid []string
	err := db.once(ctx, "", func(t *tx) { column(t.queue("EmbedTokensValid", ids), &valid) })
	return valid, err
}

// EmbedOrigin reports whether any tenant has a valid token for the pages of an origin.
func (db *DB) EmbedOrigin(ctx context.Context, origin string) (bool, error) {
	var known *bool
	err := db.once(ctx, "", func(t *tx) { value(t.queue("EmbedOrigin", text(origin)), &known) })
	return known != nil && *known, err
}

// embedCursor is the position where a page of embed tokens ended.
type embedCursor struct {
	At    time.Time `json:"at"`
	Token string    `json:"token"`
}

// EmbedTokens lists a tenant's tokens of the last week, the newest first, after a cursor ("" for the first page); next is "" at the end. A page has
// at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) EmbedTokens(ctx context.Context, tenant, after string, limit int) (tokens []embed.Token, next string, err error) {
	from := embedCursor{At: farFuture}
	if err := decodeCursor(after, &from); err != nil {
		return nil, "", err
	}
	limit = pendingLimit(limit)
	var rows []embedRow
	err = db.once(ctx, tenant, func(t *tx) { list(t.queue("EmbedTokensOf", tenant, from.At, text(from.Token), limit+1), &rows) })
	if err != nil {
		return nil, "", err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next, err = encodeCursor(embedCursor{rows[limit-1].CreatedAt, rows[limit-1].TokenID})
	}
	tokens = make([]embed.Token, len(rows))
	for i := range rows {
		tokens[i] = rows[i].token()
	}
	return tokens, next, err
}

// RevokeEmbedToken ends a token on behalf of a principal. A token that the tenant does not have is NOT_FOUND; revoking one again changes nothing.
func (db *DB) RevokeEmbedToken(ctx context.Context, tenant, id, by string) error {
	var valid *bool
	return db.transact(ctx, tenant, func(t *tx) error {
		value(t.queue("EmbedTokenRevoke", tenant, text(id), text(by)), &valid)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if valid == nil {
			return jig.Errorf(jig.CodeNotFound, "tenant %s has no embed token with this id", tenant).WithField("id")
		}
		if *valid {
			t.note(embedEvent(ctx, history.EmbedRevoked, id, by))
		}
		return t.commit(ctx)
	})
}

// embedEvent returns the event of an embed token that a principal created or revoked.
func embedEvent(ctx context.Context, kind, id, by string) history.CredentialEvent {
	return history.CredentialEvent{Kind: kind, CredentialKind: history.KindEmbed, CredentialID: id, Principal: by, Address: history.ActorOf(ctx).Address}
}
