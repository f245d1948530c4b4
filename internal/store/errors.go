package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jig-run/jig"
)

// SQLSTATE codes that the store handles.
const (
	stateUniqueViolation     = "23505"
	stateNotNullViolation    = "23502"
	stateForeignKeyViolation = "23503"
	// stateBudgetExceeded is raised by jig_count.
	stateBudgetExceeded       = "JGB01"
	stateSerializationFailure = "40001"
	stateDeadlock             = "40P01"
	stateLockNotAvailable     = "55P03"
	stateQueryCanceled        = "57014"
	stateNotPermitted         = "42501"
)

// Absent reports whether err means that PostgreSQL does not answer, is starting or stopping, or has no room for a connection. A wrong password or
// a database that does not exist is no such error.
func Absent(err error) bool {
	var pg *pgconn.PgError
	var n net.Error
	switch {
	case errors.As(err, &pg):
		return translateState(pg).Code == jig.CodeUnavailable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it accepted the connection and ended
		return connecting(err)
	}
	return connecting(err) && (errors.As(err, &n) || errors.Is(err, context.DeadlineExceeded))
}

// translate turns any error of PostgreSQL or of the connection into a [*jig.Error]. Errors of this package pass through.
func (db *DB) translate(err error) error {
	return translate(err, db.pool.Config().ConnConfig, db.options.Setting)
}

// setting is the name of the setting that the URL comes from.
func translate(err error, config *pgx.ConnConfig, setting string) error {
	var own *jig.Error
	var pg *pgconn.PgError
	var unreadable pgx.ScanArgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &pg) && !connecting(err):
		return translateState(pg)
	case errors.Is(err, context.Canceled):
		return jig.Errorf(jig.CodeCanceled, "the request was canceled").CausedBy(context.Canceled)
	case errors.Is(err, context.DeadlineExceeded) && !connecting(err):
		return jig.Errorf(jig.CodeTimeout, "the database did not answer in time").CausedBy(context.DeadlineExceeded)
	case errors.Is(err, pgx.ErrNoRows):
		return jig.Errorf(jig.CodeNotFound, "there is no such row")
	case broken(err):
		return unavailable(config, setting, err)
	case errors.As(err, &unreadable):
		return jig.Errorf(jig.CodeInternal, "a stored value cannot be read: %w", err)
	}
	return &jig.Error{Code: jig.CodeInternal, Message: err.Error(), Cause: err}
}

func translateState(pg *pgconn.PgError) *jig.Error {
	code := jig.CodeInternal
	switch {
	case pg.Code == stateSerializationFailure, pg.Code == stateDeadlock, pg.Code == stateLockNotAvailable, pg.Code == stateQueryCanceled:
		code = jig.CodeUnavailable
	case strings.HasPrefix(pg.Code, "22"):
		code = jig.CodeInvalidInput // a value that does not fit a column
	case pg.Code == stateUniqueViolation:
		code = jig.CodeConflict
	case pg.Code == stateNotPermitted:
		code = jig.CodeNotPermitted
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57P"), strings.HasPrefix(pg.Code, "25P0"):
		code = jig.CodeUnavailable // connection, resources, shutdown
	}
	// The detail is left out because it quotes values.
	return jig.Errorf(code, "the database says %s: %s", jig.Known(pg.Code), pg.Message).CausedBy(pg)
}

// connecting reports whether err arose while a connection was being made.
func connecting(err error) bool {
	var c *pgconn.ConnectError
	return errors.As(err, &c)
}

// broken reports whether err concerns the connection rather than the request.
func broken(err error) bool {
	var n net.Error
	return connecting(err) || errors.As(err, &n) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool") ||
		strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "connection reset") ||
		strings.Contains(err.Error(), "broken pipe")
}

// unavailable returns the error for a server that could not be used. It names the server and never shows the password.
func unavailable(config *pgx.ConnConfig, setting string, err error) *jig.Error {
	where := config.Host
	if !strings.HasPrefix(where, "/") {
		where = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	}
	why := err.Error()
	var pg *pgconn.PgError
	var op *net.OpError
	switch {
	case errors.As(err, &pg):
		why = pg.Message
	case errors.As(err, &op) && op.Err != nil:
		why = op.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	}
	if config.Password != "" {
		why = strings.ReplaceAll(why, config.Password, "…")
	}
	return &jig.Error{
		Code: jig.CodeUnavailable, Message: "cannot use PostgreSQL at " + where + ", database " + config.Database + ", as " + config.User + ": " + why,
		Hint: "check that the server runs and that " + setting + " is right", Cause: err,
	}
}

func badURL(name string) *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, "%s is not a PostgreSQL URL", name).WithField(name).
		WithHint("write it as postgres://user:password@host:5432/database")
}

// state returns the SQLSTATE of err, or "" when it has none.
func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func noSession(id string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no session %q", id).WithField("session_id")
}

func noCall(session, call string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "session %q has no call %q", session, call).WithField("call")
}
