package store

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/jig-run/jig"
)

// Rows are read into the types of the domain packages: a column fills the field of its name, without underscores and regardless of case. A field
// without a column keeps its zero value; the test of the queries knows which these are. Where a column does not fit a field as it is, a row type
// embeds the domain type and declares the field again after it.

// list reads all rows of a queued query.
func list[T any](q *pgx.QueuedQuery, into *[]T) {
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[T])
		*into = all
		return err //nolint:wrapcheck // translated by retried
	})
}

// first reads the first row of a queued query; into stays nil when there is no row.
func first[T any](q *pgx.QueuedQuery, into **T) {
	*into = nil
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByNameLax[T])
		if len(all) > 0 {
			*into = all[0]
		}
		return err //nolint:wrapcheck // translated by retried
	})
}

// value reads the first column of the first row of a queued query; into stays nil when there is no row or the column is null.
func value[T any](q *pgx.QueuedQuery, into **T) {
	*into = nil
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowTo[*T])
		if len(all) > 0 {
			*into = all[0]
		}
		return err //nolint:wrapcheck // translated by retried
	})
}

// column reads the first column of all rows of a queued query.
func column[T any](q *pgx.QueuedQuery, into *[]T) {
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowTo[T])
		*into = all
		return err //nolint:wrapcheck // translated by retried
	})
}

// affected reads how many rows a queued statement changed.
func affected(q *pgx.QueuedQuery, into *int64) {
	q.Exec(func(tag pgconn.CommandTag) error {
		*into = tag.RowsAffected()
		return nil
	})
}

// decode reads a stored JSON value. An empty value leaves into unchanged.
func decode(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return jig.Errorf(jig.CodeInternal, "a stored value cannot be read: %w", err)
	}
	return nil
}

// registerTypes sets how a connection reads values.
func registerTypes(m *pgtype.Map) {
	m.RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: timeCodec{&pgtype.TimestamptzCodec{ScanLocation: time.UTC}}})
	m.RegisterType(&pgtype.Type{Name: "bytea", OID: pgtype.ByteaOID, Codec: byteaCodec{}})
}

// timeCodec reads times in UTC, and null as the zero time.
type timeCodec struct{ *pgtype.TimestamptzCodec }

// PlanScan implements [pgtype.Codec].
func (c timeCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*time.Time); ok {
		return timePlan{c.TimestamptzCodec.PlanScan(m, oid, format, &pgtype.Timestamptz{})}
	}
	return c.TimestamptzCodec.PlanScan(m, oid, format, target)
}

type timePlan struct{ pgtype.ScanPlan }

// Scan implements [pgtype.ScanPlan].
func (p timePlan) Scan(source []byte, target any) error {
	var read pgtype.Timestamptz
	err := p.ScanPlan.Scan(source, &read)
	*target.(*time.Time) = read.Time //nolint:forcetypeassert // the plan was made for this type
	return err                       //nolint:wrapcheck // translated by retried
}

// byteaCodec also reads JSON into structs, as from a column of type json. Texts that must stay exactly as they are, or that are long, are
// stored as bytea.
type byteaCodec struct{ pgtype.ByteaCodec }

// PlanScan implements [pgtype.Codec].
func (c byteaCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if plan := c.ByteaCodec.PlanScan(m, oid, format, target); plan != nil {
		return plan
	}
	if t := reflect.TypeOf(target); format == pgtype.BinaryFormatCode && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		return documentPlan{}
	}
	return nil
}

type documentPlan struct{}

// Scan implements [pgtype.ScanPlan].
func (documentPlan) Scan(source []byte, target any) error { return decode(source, target) }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
