package store_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestReadArtifact_ReturnsRanges(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	const size = 5*store.ChunkBytes + 17
	value := []byte(big(size))
	id, err := db.PutArtifact(t.Context(), tenant, "", "text/plain", value)
	require.NoError(t, err)
	for _, r := range []struct{ offset, limit, begin, end int }{
		{0, 10, 0, 10},
		{0, size * 2, 0, size},
		{store.ChunkBytes - 3, 6, store.ChunkBytes - 3, store.ChunkBytes + 3},
		{store.ChunkBytes, store.ChunkBytes, store.ChunkBytes, 2 * store.ChunkBytes},
		{10, 3 * store.ChunkBytes, 10, 10 + 3*store.ChunkBytes},
		{size - 5, 100, size - 5, size},
		{5, 0, 5, 5},
		{size, 10, size, size},
		{size + 1000, 10, size, size},
	} {
		piece, whole, err := db.ReadArtifact(t.Context(), tenant, id, int64(r.offset), r.limit)
		require.NoError(t, err)
		require.Equal(t, int64(size), whole)
		require.True(t, bytes.Equal(value[r.begin:r.end], piece), "%+v gave %d bytes", r, len(piece))
	}
	for _, at := range [][2]int{{-1, 1}, {0, -1}} {
		_, _, err = db.ReadArtifact(t.Context(), tenant, id, int64(at[0]), at[1])
		requireCode(t, jig.CodeInvalidInput, err)
	}
	_, _, err = db.ReadArtifact(t.Context(), tenant, "art_none", 0, 1)
	requireCode(t, jig.CodeNotFound, err)
	requireCode(t, jig.CodeConflict, db.AppendArtifact(t.Context(), tenant, id, size, []byte("x")))

	empty, err := db.PutArtifact(t.Context(), tenant, "", "", nil)
	require.NoError(t, err)
	piece, whole, err := db.ReadArtifact(t.Context(), tenant, empty, 0, 10)
	require.NoError(t, err)
	require.Zero(t, whole)
	require.Empty(t, piece)
}

func TestAppendArtifact_TakesChunksInOrder(t *testing.T) {
	t.Parallel()
	db, tenant, id := storetest.New(t), storetest.Tenant(t), jig.NewArtifactID()
	add := func(offset int64, chunk string) error {
		return db.AppendArtifact(t.Context(), tenant, id, offset, []byte(chunk))
	}
	requireCode(t, jig.CodeConflict, add(4, "late"))
	_, _, err := db.ReadArtifact(t.Context(), tenant, id, 0, 1)
	requireCode(t, jig.CodeNotFound, err)
	require.NoError(t, add(0, "abcd"))
	require.NoError(t, add(0, "abcd"), "an existing chunk is left alone")
	require.NoError(t, add(4, "ef"))
	require.NoError(t, add(0, "abcd"), "also if other chunks followed")
	require.NoError(t, add(4, "ef"))
	for offset, chunk := range map[int64]string{0: "ABCD", 2: "cd", 4: "efg", 7: "h", 5: "fg"} {
		requireCode(t, jig.CodeConflict, add(offset, chunk))
	}
	for _, err := range []error{add(6, ""), add(-1, "x"), add(6, big(store.MaxChunkBytes+1))} {
		requireCode(t, jig.CodeInvalidInput, err)
	}
	require.NoError(t, add(6, big(store.MaxChunkBytes)))
	all, size, err := db.ReadArtifact(t.Context(), tenant, id, 0, 2<<20)
	require.NoError(t, err)
	require.Equal(t, int64(6+store.MaxChunkBytes), size)
	requireSame(t, "abcdef"+big(store.MaxChunkBytes), string(all))
	tail, _, err := db.ReadArtifact(t.Context(), tenant, id, size-4, 100)
	require.NoError(t, err)
	require.Equal(t, big(store.MaxChunkBytes)[store.MaxChunkBytes-4:], string(tail))
}
