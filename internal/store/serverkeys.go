package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/vouch"
)

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
