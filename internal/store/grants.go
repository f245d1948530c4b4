package store

import (
	"context"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
)

// grantColumns returns the arguments of GrantInsert.
func grantColumns(tenant string, g jig.Grant) []any {
	return []any{
		tenant, g.ID, text(g.Tool), text(g.Agent), text(g.When), g.MaxUses, g.ExpiresAt, g.By, g.Claimed, text(g.Note),
		text(g.SessionID), text(g.Call), g.CreatedAt, g.Meaning, string(g.Proof), g.Makers,
	}
}

// PutGrant stores a grant, with the makers of the credentials of those who approved the call that gives it. An existing grant with the same id is
// left alone.
func (db *DB) PutGrant(ctx context.Context, g jig.Grant) error {
	if g.CreatedAt.IsZero() {
		g.CreatedAt = time.Now()
	}
	return db.transact(ctx, g.Tenant, func(t *tx) error {
		var stored int64
		if g.Makers == nil && g.Call != "" {
			votes, err := t.votes(ctx, g.SessionID, g.Call)
			if err != nil {
				return err
			}
			g.Makers = approval.MakersOf(votes)
		}
		t.queue("TenantEnsure", g.Tenant)
		affected(t.queue("GrantInsert", grantColumns(g.Tenant, g)...), &stored)
		if err := t.flush(ctx); err != nil {
			return err
		}
		l := &log{}
		if stored > 0 {
			l.audits = append(l.audits, approval.GrantEntry(g, jig.Principal{ID: strings.Join(g.By, ", "), Claimed: g.Claimed}, nil))
		}
		return t.finish(ctx, l, g.SessionID)
	})
}

// LiveGrants returns the grants that may cover calls of some tools, oldest first, at most 1,000.
func (db *DB) LiveGrants(ctx context.Context, tenant string, tools []string, now time.Time) ([]jig.Grant, error) {
	var live []jig.Grant
	if len(tools) == 0 {
		return nil, nil
	}
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("GrantsLive", tenant, tools, now), &live) })
	return live, err
}

// Grant returns a grant, whether it can still be used or not. The error is NOT_FOUND when the tenant has no such grant.
func (db *DB) Grant(ctx context.Context, tenant, id string) (jig.Grant, error) {
	row, err := ask(ctx, db, tenant, first[jig.Grant], "GrantGet", tenant, text(id))
	if err != nil {
		return jig.Grant{}, err
	}
	if row == nil {
		return jig.Grant{}, noGrant(id)
	}
	return *row, nil
}

func noGrant(id string) error {
	return jig.Errorf(jig.CodeNotFound, "there is no grant %q", id).WithField("grant").WithHint("`jig grant list` shows them")
}

// grantCursor is the position where a page of grants ended.
type grantCursor struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// Grants lists a tenant's grants, latest first, after a cursor ("" for the first page); next is "" at the end. A page has at most limit
// entries; a limit below 1 or above 1,000 means 1,000. If all is set, the list includes grants that are used up, expired or revoked.
func (db *DB) Grants(ctx context.Context, tenant, after string, limit int, all bool, now time.Time) (found []jig.Grant, next string, err error) {
	from := grantCursor{At: farFuture}
	of := pageOf{tenant, "grants", all}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	limit = page(limit)
	if err := db.once(ctx, tenant, func(t *tx) { list(t.queue("Grants", tenant, from.At, from.ID, all, now, limit+1), &found) }); err != nil {
		return nil, "", err
	}
	if len(found) > limit {
		found = found[:limit]
		next, err = db.cursors.seal(of, grantCursor{found[limit-1].CreatedAt, found[limit-1].ID})
	}
	return found, next, err
}

// RevokeGrant ends a grant, so that it no longer covers calls, not even admitted ones that have not begun. It returns the revoked grant,
// even when somebody else had already revoked it. The error is NOT_FOUND when there is no such grant, and NOT_PERMITTED when the token was
// used for another request.
func (db *DB) RevokeGrant(ctx context.Context, tenant, id string, who jig.Principal, evidence *identity.Evidence, now time.Time) (jig.Grant, error) {
	var row *jig.Grant
	err := db.transact(ctx, tenant, func(t *tx) error {
		var use *tokenUse
		first(t.queue("GrantLock", tenant, id), &row)
		t.usedToken(evidence, &use)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noGrant(id)
		}
		e := audit.By(who, evidence, "")
		e.Kind, e.Subject, e.Tool = audit.AuditRevoked, id, row.Tool
		switch {
		case use.again(evidence):
			return t.reused(ctx, e)
		case use != nil:
			return nil
		}
		t.useToken(evidence, row.RevokedAt == nil)
		if row.RevokedAt != nil {
			return t.commit(ctx)
		}
		row.RevokedAt, row.RevokedBy = &now, text(who.ID)
		t.queue("GrantRevoke", tenant, id, now, row.RevokedBy)
		return t.finish(ctx, &log{audits: []audit.Entry{e}}, "")
	})
	if err != nil {
		return jig.Grant{}, err
	}
	return *row, nil
}
