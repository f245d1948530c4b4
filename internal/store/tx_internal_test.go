package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// Only an answer from PostgreSQL proves that a transaction's last statements were rolled back; a broken connection proves nothing.
func TestRefused_OnlyIfPostgreSQLRejected(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&pgconn.PgError{Code: "23503", SeverityUnlocalized: "ERROR"}, jig.Errorf(jig.CodeConflict, "no"), fmt.Errorf("x: %w", jig.Errorf(jig.CodeConflict, "no")),
	} {
		require.True(t, refused(err), err)
	}
	for _, err := range []error{
		&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("conn closed"),
	} {
		require.False(t, refused(err), err)
	}
}
