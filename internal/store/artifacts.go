package store

import (
	"context"

	"github.com/jig-run/jig"
)

// ChunkBytes is the size of the chunks in which a value is stored. A chunk from a caller may have up to MaxChunkBytes.
const (
	ChunkBytes    = 256 << 10
	MaxChunkBytes = 1 << 20
)

// keep queues the statements that store a value as an artifact, and returns its id.
func (t *tx) keep(session, mediaType string, body []byte) string {
	id := jig.NewArtifactID()
	t.keepAs(id, session, mediaType, body)
	return id
}

// keepAs is keep with a given id.
func (t *tx) keepAs(id, session, mediaType string, body []byte) {
	t.queue("ArtifactInsert", t.tenant, id, session, text(mediaType), len(body))
	var offsets []int64
	var chunks [][]byte
	for at := 0; at < len(body); at += ChunkBytes {
		offsets = append(offsets, int64(at))
		chunks = append(chunks, body[at:min(at+ChunkBytes, len(body))])
		if len(chunks) == 16 { // at most 4 MiB per statement
			t.queue("ArtifactChunks", t.tenant, id, offsets, chunks)
			offsets, chunks = nil, nil
		}
	}
	if len(chunks) > 0 {
		t.queue("ArtifactChunks", t.tenant, id, offsets, chunks)
	}
}

// PutArtifact stores a value and returns its id.
func (db *DB) PutArtifact(ctx context.Context, tenant, sessionID, mediaType string, value []byte) (string, error) {
	if err := jig.CheckTenant(tenant); err != nil {
		return "", err
	}
	var id string
	err := db.once(ctx, tenant, func(t *tx) {
		t.queue("TenantEnsure", tenant)
		id = t.keep(sessionID, mediaType, value)
	})
	return id, err
}

// ArtifactSession returns the session that an artifact belongs to, or "" if a client uploaded the artifact. It returns NOT_FOUND when the
// tenant has no such artifact.
func (db *DB) ArtifactSession(ctx context.Context, tenant, id string) (string, error) {
	session, err := ask(ctx, db, tenant, value[string], "ArtifactSession", tenant, text(id))
	if err != nil {
		return "", err
	}
	if session == nil {
		return "", jig.Errorf(jig.CodeNotFound, "there is no artifact %q", id).WithField("id")
	}
	return *session, nil
}

// ValueElsewhere reports whether another tenant has an artifact or a session with these ids.
func (db *DB) ValueElsewhere(ctx context.Context, tenant, artifact, session string) (bool, error) {
	elsewhere, err := ask(ctx, db, tenant, value[bool], "ValueElsewhere", text(artifact), text(session))
	return orZero(elsewhere), err
}

// lockedArtifact is the row of the query ArtifactLock.
type lockedArtifact struct {
	Size   int64
	Sealed bool
}

// AppendArtifact writes a chunk (1 byte to 1 MiB) at an offset of an artifact whose id the caller chose. Writing a chunk again changes
// nothing. Chunks must come in order: a chunk that leaves a gap or overlaps another is a CONFLICT.
func (db *DB) AppendArtifact(ctx context.Context, tenant, id string, offset int64, chunk []byte) error {
	if err := jig.CheckTenant(tenant); err != nil {
		return err
	}
	if len(chunk) == 0 || len(chunk) > MaxChunkBytes || offset < 0 {
		return jig.Errorf(jig.CodeInvalidInput, "a chunk of %d bytes at offset %d cannot be stored", len(chunk), offset).
			WithHint("send 1 byte to 1 MiB at a time")
	}
	return db.transact(ctx, tenant, func(t *tx) error {
		var have *lockedArtifact
		var same *bool
		t.queue("TenantEnsure", tenant)
		t.queue("ArtifactOpen", tenant, id)
		first(t.queue("ArtifactLock", tenant, id), &have)
		value(t.queue("ArtifactHas", tenant, id, offset, chunk), &same)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case same != nil && *same:
			return nil
		case have.Sealed:
			return jig.Errorf(jig.CodeConflict, "artifact %q is complete: nothing can be added", id)
		case have.Size != offset:
			return jig.Errorf(jig.CodeConflict, "artifact %q has %d bytes: a chunk at %d does not fit", id, have.Size, offset)
		}
		t.queue("ArtifactAppend", tenant, id, offset, chunk)
		return t.commit(ctx)
	})
}

// artifactPiece is the row of the query ArtifactRead.
type artifactPiece struct {
	Size int64
	Data []byte
}

// ReadArtifact returns up to limit bytes from offset, and the total size. It returns NOT_FOUND when the tenant has no such artifact.
func (db *DB) ReadArtifact(ctx context.Context, tenant, id string, offset int64, limit int) ([]byte, int64, error) {
	if offset < 0 || limit < 0 {
		return nil, 0, jig.Errorf(jig.CodeInvalidInput, "offset and limit must not be negative")
	}
	piece, err := ask(ctx, db, tenant, first[artifactPiece], "ArtifactRead", tenant, id, offset, int64(limit))
	if err != nil {
		return nil, 0, err
	}
	if piece == nil {
		return nil, 0, jig.Errorf(jig.CodeNotFound, "there is no artifact %q", id).WithField("id")
	}
	return piece.Data, piece.Size, nil
}
