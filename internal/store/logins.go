package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/history"
	"github.com/jig-run/jig/internal/identity/login"
)

// loginRow is a row of the queries LoginInsert and LoginFind.
type loginRow struct {
	TenantID  string
	LoginID   string
	Issuer    string
	Subject   string
	Name      string
	Groups    []string
	CreatedAt time.Time
	ExpiresAt time.Time
}

func (r *loginRow) login() login.Login {
	return login.Login{
		Tenant: r.TenantID, ID: r.LoginID, Issuer: r.Issuer, Subject: r.Subject, Name: r.Name, Groups: r.Groups,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
	}
}

// LoginsOf returns a tenant's logins that have not ended, the oldest first.
func (db *DB) LoginsOf(ctx context.Context, tenant string) ([]login.Login, error) {
	var rows []loginRow
	if err := db.once(ctx, tenant, func(t *tx) { list(t.queue("LoginsOf", tenant, login.Idle), &rows) }); err != nil {
		return nil, err
	}
	logins := make([]login.Login, len(rows))
	for i := range rows {
		logins[i] = rows[i].login()
	}
	return logins, nil
}

// CreateLogin stores a login with the hash of its cookie, and returns it as stored. An attempt of which a login came before is a CONFLICT.
func (db *DB) CreateLogin(ctx context.Context, l login.Login, hash, attempt []byte) (login.Login, error) {
	var row *loginRow
	err := db.transact(ctx, l.Tenant, func(t *tx) error {
		t.queue("LoginsPrune", l.Tenant, login.Idle)
		first(t.queue("LoginInsert", l.Tenant, l.ID, hash, attempt, text(l.Issuer), text(l.Subject), text(l.Name), texts(l.Groups), login.Lifetime), &row)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return jig.Errorf(jig.CodeConflict, "this attempt was already used to log in")
		}
		kind := history.KindLogin
		if l.Issuer == "" {
			kind = history.KindDevLogin
		}
		t.note(loginEvent(ctx, history.LoggedIn, kind, l.ID))
		return t.commit(ctx)
	})
	if err != nil {
		return login.Login{}, err
	}
	return row.login(), nil
}

// Login returns the login with an id and a hash, whatever its tenant. A login that does not exist or has ended is NOT_FOUND.
func (db *DB) Login(ctx context.Context, id string, hash []byte) (login.Login, error) {
	var row *loginRow
	if err := db.once(ctx, "", func(t *tx) { first(t.queue("LoginFind", id, hash, login.Idle), &row) }); err != nil {
		return login.Login{}, err
	}
	if row == nil {
		return login.Login{}, jig.Errorf(jig.CodeNotFound, "there is no such login, or it has ended")
	}
	return row.login(), nil
}

// ValidLogins returns those of the given logins, of all tenants, that are valid now.
func (db *DB) ValidLogins(ctx context.Context, ids []string) ([]string, error) {
	var valid []string
	err := db.once(ctx, "", func(t *tx) { column(t.queue("LoginsValid", ids, login.Idle), &valid) })
	return valid, err
}

// EndLogin ends a login. Ending one again changes nothing.
func (db *DB) EndLogin(ctx context.Context, tenant, id string) error {
	var kind *string
	return db.transact(ctx, tenant, func(t *tx) error {
		value(t.queue("LoginEnd", tenant, text(id)), &kind)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if kind != nil {
			t.note(loginEvent(ctx, history.LoggedOut, *kind, id))
		}
		return t.commit(ctx)
	})
}

// loginEvent returns the event of a login or logout.
func loginEvent(ctx context.Context, what, kind, id string) history.CredentialEvent {
	by := history.ActorOf(ctx)
	return history.CredentialEvent{Kind: what, CredentialKind: kind, CredentialID: id, Principal: by.Principal, Address: by.Address}
}
