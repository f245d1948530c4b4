package store_test

import (
	"fmt"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// unchecked names the functions that run statements which [TestQueries_FitTheirCallers] cannot compare with the code, and why.
func unchecked() map[string]string {
	return map[string]string{
		"queue":          "runs what its callers name; they are checked",
		"ask":            "runs what its callers name; they are checked",
		"check":          "runs while the store opens, before there is a transaction",
		"checkVersion":   "runs while the store opens, before there is a transaction",
		"identify":       "runs while the store opens, before there is a transaction",
		"FilterEntities": "appends conditions to the statement, which depend on the filter",
		"ExportTenant":   "reads all tables in one transaction without a batch",
		"exportRows":     "copies the JSON of many statements, each with a tenant and one column",
	}
}

// goTypes returns the Go types that may stand for a type of PostgreSQL, as arguments and as results.
func goTypes(postgres string) []string {
	if element, ok := strings.CutPrefix(postgres, "_"); ok {
		list := goTypes(element)
		for i := range list {
			list[i] = "[]" + list[i]
		}
		return list
	}
	return map[string][]string{
		"bool": {"bool"}, "bytea": {"[]byte", "document"}, "float8": {"float64"}, "int4": {"int", "int32"}, "int8": {"int", "int64"},
		"interval": {"time.Duration"}, "json": {"[]byte", "string", "[]string", "document", "[]document"}, "jsonb": {"[]byte", "string", "[]string", "document", "[]document"},
		"text": {"string"}, "timestamptz": {"time.Time"},
	}[postgres]
}

// goType reduces a type to one that goTypes knows: without names and pointers, which pgx looks through. Structs and maps, which pgx reads from and
// writes as JSON, are documents.
func goType(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return goType(t.Elem())
	case *types.Named:
		if name := t.String(); name == "time.Time" || name == "time.Duration" {
			return name
		}
		return goType(t.Underlying())
	case *types.Slice:
		return "[]" + goType(t.Elem())
	case *types.Struct, *types.Map:
		return "document"
	case *types.Basic:
		if t.Kind() == types.Uint8 {
			return "byte"
		}
		return types.Default(t).String()
	}
	return t.String()
}

// holdsNull reports whether a variable of a type can be set to null. A time is then zero.
func holdsNull(t types.Type) bool {
	if t.String() == "time.Time" {
		return true
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map:
		return true
	}
	return false
}

// unstored lists the fields of domain types that no statement fills: the store or its callers set them, or they are not kept.
func unstored() []string {
	return []string{
		"chat.Message.Sender", "identity.CredentialEvent.Source", "jig.Call.Paused", "jig.Call.Result", "jig.Call.RetryOf", "jig.CallView.DurationMS", "jig.Grant.Ended",
		"jig.Pending.Decided",
		"jig.Pending.NextAt", "jig.Pending.Via", "jig.Session.Paused", "jig.Session.TriggeredBy", "ledger.Origins.Calls", "ledger.Origins.Events",
		"ledger.Origins.Messages", "ledger.Origins.More", "plan.Frame.Received", "plan.ReceivedEvent.Claimed", "protocol.SessionItem.ClientID",
	}
}

// statement is a query as PostgreSQL describes it.
type statement struct {
	parameters []string
	columns    []column
}

type column struct {
	name, kind string
	// nullable means that the column comes from a table that allows null, or from one that the statement joins from the left.
	nullable bool
}

var leftJoin = regexp.MustCompile(`left join (\w+)`)

// describe has PostgreSQL prepare every statement as the application role.
func describe(t *testing.T) map[string]statement {
	t.Helper()
	storetest.New(t) // so that it is migrated
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	kind := func(oid uint32) string { // "_text" is an array of text
		if known, ok := conn.TypeMap().TypeForOID(oid); ok {
			return known.Name
		}
		return fmt.Sprint(oid)
	}
	rows, err := conn.Query(t.Context(), `select attrelid, attnum, relname, attnotnull from pg_attribute join pg_class c on c.oid = attrelid
		where relnamespace = current_schema()::regnamespace and attnum > 0`)
	require.NoError(t, err)
	type place struct {
		table uint32
		n     uint16
	}
	required, tables := map[place]bool{}, map[uint32]string{}
	var at place
	var table string
	var notNull bool
	_, err = pgx.ForEachRow(rows, []any{&at.table, &at.n, &table, &notNull}, func() error {
		required[at], tables[at.table] = notNull, table
		return nil
	})
	require.NoError(t, err)

	queries, err := store.Queries()
	require.NoError(t, err)
	all := map[string]statement{}
	for name, text := range queries {
		require.NotContains(t, text, "{{", name)
		prepared, err := conn.Prepare(t.Context(), name, text)
		require.NoError(t, err, name)
		var s statement
		for _, oid := range prepared.ParamOIDs {
			s.parameters = append(s.parameters, kind(oid))
		}
		joined := leftJoin.FindAllStringSubmatch(text, -1)
		for _, f := range prepared.Fields {
			c := column{name: f.Name, kind: kind(f.DataTypeOID)}
			if table, ok := tables[f.TableOID]; ok {
				c.nullable = !required[place{f.TableOID, f.TableAttributeNumber}] ||
					slices.ContainsFunc(joined, func(m []string) bool { return m[1] == table })
			}
			s.columns = append(s.columns, c)
		}
		all[name] = s
	}
	return all
}

// Every statement is valid, and its parameters and columns fit the Go values that the package sends and reads.
func TestQueries_FitTheirCallers(t *testing.T) {
	t.Parallel()
	statements := describe(t)
	code := loadPackage(t)
	literals := code.literals()
	for name := range statements {
		require.True(t, literals[name], "no code runs the query %s", name)
	}
	var problems []string
	excused, filled := map[string]bool{}, map[string]bool{}
	for _, u := range code.uses() {
		if _, skip := unchecked()[u.function]; skip {
			excused[u.function] = true
			continue
		}
		for _, p := range code.problems(u, statements, filled) {
			problems = append(problems, fmt.Sprintf("%s: %s: %s", u.at, u.name, p))
		}
	}
	slices.Sort(problems)
	require.Empty(t, problems, "%s", strings.Join(problems, "\n"))
	require.Len(t, excused, len(unchecked()), "unchecked names a function that runs no statement")
	empty := slices.DeleteFunc(slices.Sorted(maps.Keys(filled)), func(field string) bool { return filled[field] })
	require.Equal(t, unstored(), empty, "fields of domain types that no statement fills")
}

// problems says in what a use of a statement and the statement disagree. It adds the fields of domain types that the use reads to filled, with
// whether the statement has a column for them.
func (s *source) problems(u use, statements map[string]statement, filled map[string]bool) []string {
	have, ok := statements[u.name]
	if !ok {
		return []string{"the statement is not known before the code runs"}
	}
	var list []string
	args, err := s.arguments(u.call, u.after)
	if err != nil {
		return []string{err.Error()}
	}
	if len(args) != len(have.parameters) {
		list = append(list, fmt.Sprintf("%d arguments for %d parameters", len(args), len(have.parameters)))
	}
	for i := range min(len(args), len(have.parameters)) {
		if args[i] != types.Typ[types.UntypedNil] && !slices.Contains(goTypes(have.parameters[i]), goType(args[i])) {
			list = append(list, fmt.Sprintf("$%d is %s, and the argument is %s", i+1, have.parameters[i], args[i]))
		}
	}
	if u.into == nil {
		return list
	}
	return append(list, misfits(u, have.columns, filled)...)
}

// misfits says in what the columns of a statement and the variable that receives them disagree.
func misfits(u use, columns []column, filled map[string]bool) []string {
	fields := map[string]rowField{}
	record, isStruct := u.into.Underlying().(*types.Struct)
	switch {
	case u.reader == "list", u.reader == "first":
		if !isStruct {
			return []string{u.into.String() + " is not a struct"}
		}
		fields = fieldsOf(u.into.String(), record)
	case len(columns) != 1:
		return []string{fmt.Sprintf("%d columns for one variable", len(columns))}
	default:
		fields[plain(columns[0].name)] = rowField{kind: u.into}
	}
	var list []string
	for _, c := range columns {
		field, ok := fields[plain(c.name)]
		into := field.kind
		delete(fields, plain(c.name))
		if field.domain != "" {
			filled[field.domain] = true
		}
		switch {
		case !ok:
			list = append(list, "no field takes the column "+c.name)
		case !slices.Contains(goTypes(c.kind), goType(into)):
			list = append(list, fmt.Sprintf("the column %s is %s, and its variable is %s", c.name, c.kind, into))
		case c.nullable && !holdsNull(into) && u.reader != "value":
			list = append(list, fmt.Sprintf("the column %s can be null, and its variable is %s", c.name, into))
		}
	}
	for name, field := range fields {
		if field.domain == "" {
			list = append(list, "no column for the field "+name)
		} else if !filled[field.domain] {
			filled[field.domain] = false
		}
	}
	return list
}

// rowField is a field that rows are read into. domain names it if its type belongs to a domain package: such a type may have fields that a statement
// does not fill.
type rowField struct {
	kind   types.Type
	domain string
}

// fieldsOf returns the fields of a struct type by their names in lower case. Those of an embedded struct count as its own, unless a later field has
// the same name.
func fieldsOf(name string, record *types.Struct) map[string]rowField {
	fields := map[string]rowField{}
	for field := range record.Fields() {
		if inner, ok := field.Type().Underlying().(*types.Struct); ok && field.Embedded() {
			maps.Copy(fields, fieldsOf(field.Type().String(), inner))
			continue
		}
		f := rowField{kind: field.Type()}
		if domain, ok := strings.CutPrefix(name, "github.com/jig-run/"); ok {
			f.domain = path.Base(domain) + "." + field.Name()
		}
		fields[strings.ToLower(field.Name())] = f
	}
	return fields
}

// plain returns the name of the field that takes a column.
func plain(column string) string { return strings.ReplaceAll(column, "_", "") }
