package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// CreateAPIKey makes an API key with the given properties and stores its hash. It returns the key's text, which cannot be found again.
func CreateAPIKey(ctx context.Context, s Settings, logger *slog.Logger, k credential.Credential) (text string, created credential.Credential, err error) {
	k.Kind = identity.KindAPIKey
	if err := k.CheckKey(time.Now()); err != nil {
		return "", k, err
	}
	err = withStore(ctx, s, logger, func(db *store.DB) error {
		settings, err := tenants(db, s).Settings(ctx, k.Tenant)
		if err != nil {
			return err
		}
		if err := settings.CheckNew(k.Principal); err != nil {
			return err
		}
		k.Maker = jig.MakerOperator
		k.Persons = settings.Persons(k.Link())
		var hash []byte
		text, k.ID, hash = credential.KeyForm.New()
		created, err = db.CreateCredential(ctx, credential.New{Credential: k, Hash: hash})
		return err
	})
	return text, created, err
}

// APIKeys lists a tenant's API keys, the oldest first, including those that are no longer valid.
func APIKeys(ctx context.Context, s Settings, logger *slog.Logger, tenant string) (keys []credential.Credential, err error) {
	err = withStore(ctx, s, logger, func(db *store.DB) error {
		keys, err = db.Credentials(ctx, tenant, identity.KindAPIKey)
		return err
	})
	return keys, err
}

// RevokeAPIKey ends a key. Requests that use it are refused from then on, and its open streams end within a second.
func RevokeAPIKey(ctx context.Context, s Settings, logger *slog.Logger, tenant, id string) error {
	return withStore(ctx, s, logger, func(db *store.DB) error {
		return db.RevokeCredential(ctx, tenant, identity.CredentialRef{Kind: identity.KindAPIKey, ID: id}, "")
	})
}

// Dependents returns what ends with an API key, besides the key itself. If Temporal cannot be reached, it warns and leaves out schedules.
func Dependents(ctx context.Context, s Settings, logger *slog.Logger, tenant, key string) (list []identity.Dependent, err error) {
	err = withStore(ctx, s, logger, func(db *store.DB) error {
		o := httpapi.Options{Credentials: db, Tenants: tenants(db, s)}
		c, err := client.Dial(ctx, client.Options{Temporal: s.Temporal.Temporal, TaskQueue: s.Temporal.TaskQueue})
		if err != nil {
			logger.WarnContext(ctx, "schedules cannot be listed", slog.Any("error", err))
		} else {
			defer c.Close()
			o.Engine.Schedules = c
		}
		list, err = o.Dependents(ctx, tenant, "", key)
		return err
	})
	return list, err
}

func withStore(ctx context.Context, s Settings, logger *slog.Logger, do func(db *store.DB) error) error {
	db, err := openStore(ctx, s, logger)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

// voucher signs statements about the principals of requests.
type voucher struct{ key vouch.Signer }

// Vouch implements [protocol.Voucher]. Tenant and principal are those of the request's credential, whatever the statement says.
func (v voucher) Vouch(ctx context.Context, s protocol.Statement) (string, error) {
	tenant, who := httpapi.Caller(ctx)
	switch {
	case who.ID == "":
		return "", nil // nobody asks: the server looks whether a worker answers
	case s.Tenant != tenant, s.Principal.ID != "" && s.Principal.ID != who.ID:
		return "", jig.Errorf(jig.CodeInternal, "the request is for another tenant or principal than its credential")
	}
	s.Principal = who
	return v.key.Sign(s, time.Now())
}

// readKey reads the server's key and publishes it, so that workers find it. It returns nil if the server has none.
func readKey(ctx context.Context, s Settings, db *store.DB, logger *slog.Logger) (protocol.Voucher, error) {
	if s.KeyFile == "" {
		return nil, nil
	}
	file, err := os.ReadFile(s.KeyFile)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the server's key cannot be read: %w", err).WithField(EnvServerKey)
	}
	key, err := vouch.ReadSigner(file)
	if err != nil {
		return nil, jig.AsError(err).WithField(EnvServerKey)
	}
	left := time.Until(key.Until())
	switch {
	case left <= 0:
		return nil, jig.Errorf(jig.CodeInvalidInput, "the server's key expired at %s", key.Until().Format(time.DateTime)).WithField(EnvServerKey).
			WithHint("make a new one with `jig server-key new`")
	case left < expiresSoon:
		logger.WarnContext(ctx, "the server's key expires soon: make a new one with `jig server-key new`", slog.Time("expires", key.Until()))
	}
	return voucher{key}, db.PutServerKey(ctx, key.ID(), key.Certificate())
}

// expiresSoon is how long before its end the server warns about its key.
const expiresSoon = 14 * 24 * time.Hour

// VouchingKeys lists the keys of all servers, the oldest first, including those that are no longer valid.
func VouchingKeys(ctx context.Context, s Settings, logger *slog.Logger) (keys []vouch.Stored, err error) {
	err = withStore(ctx, s, logger, func(db *store.DB) error {
		keys, err = db.ServerKeys(ctx)
		return err
	})
	return keys, err
}

// RevokeVouchingKey ends a server's key: within a second, nothing that it signed counts any more.
func RevokeVouchingKey(ctx context.Context, s Settings, logger *slog.Logger, id string) error {
	return withStore(ctx, s, logger, func(db *store.DB) error { return db.RevokeServerKey(ctx, id) })
}
