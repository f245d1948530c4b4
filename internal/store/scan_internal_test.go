package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func scanned[T any](t *testing.T, oid uint32, value any) (read T) {
	t.Helper()
	m := pgtype.NewMap()
	registerTypes(m)
	source, err := m.Encode(oid, pgtype.BinaryFormatCode, value, nil)
	require.NoError(t, err)
	require.NoError(t, m.Scan(oid, pgtype.BinaryFormatCode, source, &read))
	return read
}

func TestScan_ReadsTimesInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	read := scanned[time.Time](t, pgtype.TimestamptzOID, at)
	require.True(t, read.Equal(at))
	require.Same(t, time.UTC, read.Location())
	pointer := scanned[*time.Time](t, pgtype.TimestamptzOID, at)
	require.Same(t, time.UTC, pointer.Location())
}

func TestScan_ReadsNullAsTheZeroTime(t *testing.T) {
	t.Parallel()
	require.Zero(t, scanned[time.Time](t, pgtype.TimestamptzOID, nil))
	require.Nil(t, scanned[*time.Time](t, pgtype.TimestamptzOID, nil))
}

func TestScan_ReadsJSONFromBytes(t *testing.T) {
	t.Parallel()
	text := []byte(`{"code":"DENIED","message":"no"}`)
	require.Equal(t, jig.CodeDenied, scanned[jig.Error](t, pgtype.ByteaOID, text).Code)
	require.Equal(t, "no", scanned[*jig.Error](t, pgtype.ByteaOID, text).Message)
	require.Nil(t, scanned[*jig.Error](t, pgtype.ByteaOID, nil))
	require.Equal(t, text, scanned[[]byte](t, pgtype.ByteaOID, text))
}
