package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
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

// ReplaceAPIKey is like [CreateAPIKey], but first revokes all keys of the tenant with the same name.
func ReplaceAPIKey(ctx context.Context, s Settings, logger *slog.Logger, k credential.Credential) (text string, created credential.Credential, err error) {
	err = withStore(ctx, s, logger, func(db *store.DB) error { return db.RevokeAPIKeysNamed(ctx, k.Tenant, k.Name) })
	if err != nil {
		return "", k, err
	}
	return CreateAPIKey(ctx, s, logger, k)
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
