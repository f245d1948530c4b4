package store

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/jig-run/jig"
)

//go:embed queries/*.sql
var queryFiles embed.FS

var (
	queryHead    = regexp.MustCompile(`(?m)^-- (name|fragment): (\w+)\n`)
	fragmentMark = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// queries maps the names of the statements in queries/*.sql to their text.
type queries map[string]string

// customPlan marks, as a comment line of its own, a statement that PostgreSQL plans for the values of each execution. Statements with optional
// filters need that: which index helps depends on the filters that are given. All other statements have one generic plan, see [tune].
const customPlan = "-- plan: custom\n"

// orderedPlan marks, as another such line, a statement that reads the first rows of a list. PostgreSQL must read them in the order of an index: it
// would rather collect all rows and sort them if it underestimates how many there are, or if the table is small.
const orderedPlan = "-- plan: ordered\n"

// loadQueries reads every embedded file. A statement begins with a line "-- name: TheName". "{{the_name}}" in a statement is replaced by
// the fragment that begins with the line "-- fragment: the_name".
func loadQueries() (queries, error) {
	entries, err := queryFiles.ReadDir("queries")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded queries: %w", err)
	}
	list, fragments := queries{}, queries{}
	for _, entry := range entries {
		text, err := queryFiles.ReadFile("queries/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded queries: %w", err)
		}
		heads := queryHead.FindAllStringSubmatchIndex(string(text), -1)
		for i, h := range heads {
			end := len(text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			into := list
			if string(text[h[2]:h[3]]) == "fragment" {
				into = fragments
			}
			name := string(text[h[4]:h[5]])
			if _, twice := into[name]; twice {
				return nil, fmt.Errorf("query %s is defined twice", name)
			}
			into[name] = strings.TrimSpace(string(text[h[1]:end]))
		}
	}
	for name, text := range list {
		list[name] = fragmentMark.ReplaceAllStringFunc(text, func(mark string) string {
			return fragments[fragmentMark.FindStringSubmatch(mark)[1]]
		})
	}
	return list, nil
}

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

// orZero returns what a value read by [value] or [first] points to; the zero value if there is none.
func orZero[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// affected reads how many rows a queued statement changed.
func affected(q *pgx.QueuedQuery, into *int64) {
	q.Exec(func(tag pgconn.CommandTag) error {
		*into = tag.RowsAffected()
		return nil
	})
}

// ask runs one statement as a transaction and reads its answer with list, first, value, column or affected.
func ask[T any](ctx context.Context, db *DB, tenant string, read func(*pgx.QueuedQuery, *T), query string, args ...any) (answer T, err error) {
	err = db.once(ctx, tenant, func(t *tx) { read(t.queue(query, args...), &answer) })
	return answer, err
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
	if into, ok := target.(*time.Time); ok {
		*into = read.Time
	}
	return err //nolint:wrapcheck // translated by retried
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
