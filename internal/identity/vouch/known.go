package vouch

import (
	"context"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// reread is how long a known key is taken to be unchanged.
const reread = time.Second

// Known verifies statements with the servers' keys in a database. It is safe for concurrent use.
type Known struct {
	roots [][]byte
	read  func(context.Context) ([]Stored, error)

	mu   sync.Mutex
	at   time.Time
	keys map[string]known
}

// known is a key whose certificate is valid.
type known struct {
	Key
	revoked bool
}

// NewKnown returns a verifier. roots are the public root keys; without one, no statement counts. read reads the servers' keys.
func NewKnown(roots [][]byte, read func(context.Context) ([]Stored, error)) *Known {
	return &Known{roots: roots, read: read}
}

// Verify verifies a statement; see the function [Verify]. A key that was revoked counts for nothing, whenever it signed.
func (k *Known) Verify(ctx context.Context, text string, want protocol.Statement, at time.Time) (protocol.Statement, error) {
	if len(k.roots) == 0 {
		return protocol.Statement{}, jig.Errorf(jig.CodeNotPermitted, "this worker cannot check the server's statement about the principal").WithField("proof").
			WithHint("set JIG_ROOT_KEY for the workers, or start the server without JIG_SERVER_KEY")
	}
	key, err := k.key(ctx, KeyOf(text))
	if err != nil {
		return protocol.Statement{}, err
	}
	return Verify(text, key, want, at)
}

// key returns the key with an id, if a root key certified it and nobody revoked it.
func (k *Known) key(ctx context.Context, id string) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.keys[id]
	if !ok || time.Since(k.at) > reread { // a server that has just started may use a new key
		rows, err := k.read(ctx)
		if err != nil {
			return Key{}, err
		}
		k.at, k.keys = time.Now(), certifiedKeys(k.roots, rows)
		found, ok = k.keys[id]
	}
	switch {
	case !ok:
		return Key{}, refused("its server's key is not known, or no root key of this worker certified it")
	case found.revoked:
		return Key{}, refused("its server's key was revoked")
	}
	return found.Key, nil
}

// certifiedKeys returns the keys whose certificates are valid, by id.
func certifiedKeys(roots [][]byte, rows []Stored) map[string]known {
	keys := map[string]known{}
	for _, row := range rows {
		for _, root := range roots {
			if key, err := ReadCertificate(root, row.Certificate); err == nil && key.ID == row.ID {
				keys[key.ID] = known{Key: key, revoked: row.RevokedAt != nil}
			}
		}
	}
	return keys
}
