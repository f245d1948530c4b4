package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

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
