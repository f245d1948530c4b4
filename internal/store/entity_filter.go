package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// FilterEntities returns a page of the entities of a type that match a filter. f.Type may be empty. INVALID_INPUT names the part of the
// filter that does not fit the type's fields; NOT_FOUND means that the workspace does not exist.
func (db *DB) FilterEntities(ctx context.Context, tenant string, t entity.Type, f entity.Filter) (entity.Page, error) {
	q, err := compileFilter(tenant, t, f)
	if err != nil {
		return entity.Page{}, err
	}
	same := f
	same.Limit, same.Cursor, same.Type = 0, "", t.Name
	of := pageOf{tenant, "entities", same}
	var from filterCursor
	if err := db.cursors.open(of, f.Cursor, &from); err != nil {
		return entity.Page{}, err
	}
	if f.Cursor != "" {
		if err := q.after(from); err != nil {
			return entity.Page{}, err
		}
	}
	if err := db.checkWorkspace(ctx, tenant, f.Workspace); err != nil {
		return entity.Page{}, err
	}
	limit := f.Limit
	if limit <= 0 {
		limit = entity.DefaultFilterLimit
	}
	limit = min(limit, entity.MaxFilterLimit)
	sql := db.queries["EntitiesFiltered"] + q.conditions() + " order by " + q.order() + " limit " + q.arg(limit+1)
	var rows []entityRow
	if err := db.once(ctx, tenant, func(t *tx) { list(t.batch.Queue(sql, q.args...), &rows) }); err != nil {
		return entity.Page{}, err
	}
	more := len(rows) > limit
	page := entity.Page{Entities: entities(ctx, rows[:min(len(rows), limit)])}
	if more {
		if from, err = q.cursor(page.Entities[limit-1]); err == nil {
			page.Next, err = db.cursors.seal(of, from)
		}
	}
	return page, err
}

// filterQuery is a filter that is being compiled to SQL. The SQL text consists only of constants from this file and of placeholders ($n).
// Everything that comes from outside, including the paths of fields, is an argument.
type filterQuery struct {
	t     entity.Type
	args  []any
	where []string
	sort  []sortKey
}

// sortKey is a column to sort by.
type sortKey struct {
	filterColumn
	desc bool
}

// filterCursor is the position where a page ended.
type filterCursor struct {
	// Keys are the values of the sort columns; nil means that the entity has no value.
	Keys []*string `json:"k"`
	ID   string    `json:"id"`
}

func compileFilter(tenant string, t entity.Type, f entity.Filter) (*filterQuery, error) {
	if f.Type != "" && f.Type != t.Name {
		return nil, badFilter("/type", "the filter is for the type %q, not for %q", text(f.Type), t.Name)
	}
	q := &filterQuery{t: t, args: []any{tenant, text(t.Name)}}
	if err := q.clauses(f); err != nil {
		return nil, err
	}
	if f.Workspace != "" {
		q.where = append(q.where, "exists (select from workspaces w where w.tenant_id = e.tenant_id and w.workspace = "+
			q.arg(text(f.Workspace))+"::text and w.entity_id = e.entity_id and w.removed_at is null)")
	}
	return q, q.sorting(f.Sort)
}

func badFilter(at, format string, args ...any) *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField(at)
}

// arg adds an argument and returns its placeholder.
func (q *filterQuery) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *filterQuery) conditions() string {
	var b strings.Builder
	for _, condition := range q.where {
		b.WriteString(" and (" + condition + ")")
	}
	return b.String()
}

func (q *filterQuery) order() string {
	var b strings.Builder
	for _, key := range q.sort {
		if !key.always {
			b.WriteString(key.sql + " is null, ")
		}
		b.WriteString(key.sql)
		if key.desc {
			b.WriteString(" desc")
		}
		b.WriteString(", ")
	}
	return b.String() + idColumn
}

// clauses adds the condition for the filter's clauses.
func (q *filterQuery) clauses(f entity.Filter) error {
	join := " and "
	switch f.Match {
	case "", entity.MatchAll:
	case entity.MatchAny:
		join = " or "
	default:
		return badFilter("/match", "%q is not a way to match", text(string(f.Match))).WithHint("use all or any")
	}
	var all []string
	count := 0
	for i, c := range f.Where {
		sql, n, err := q.clause(fmt.Sprintf("/where/%d", i), c)
		if err != nil {
			return err
		}
		if count += n; count > entity.MaxFilterConditions {
			return badFilter("/where", "the filter has more than %d conditions", entity.MaxFilterConditions)
		}
		all = append(all, sql)
	}
	if len(all) > 0 {
		q.where = append(q.where, strings.Join(all, join))
	}
	return nil
}

// clause compiles a condition or a group of conditions, and counts them.
func (q *filterQuery) clause(at string, c entity.FilterClause) (sql string, count int, err error) {
	group, name, join := c.Any, "any", " or "
	if len(c.All) > 0 {
		group, name, join = c.All, "all", " and "
	}
	alone := c.Field != "" || c.Op != "" || len(c.Value) > 0
	if len(c.Any) > 0 && len(c.All) > 0 || alone && len(group) > 0 || !alone && len(group) == 0 {
		return "", 0, badFilter(at, "a clause has either one condition or a group of them").WithHint("set field, op and value, or only any, or only all")
	}
	if alone {
		sql, err = q.condition(at, entity.FilterCondition{Field: c.Field, Op: c.Op, Value: c.Value})
		return sql, 1, err
	}
	if len(group) > entity.MaxFilterConditions {
		return "", 0, badFilter(at, "the filter has more than %d conditions", entity.MaxFilterConditions)
	}
	parts := make([]string, len(group))
	for i, condition := range group {
		if parts[i], err = q.condition(fmt.Sprintf("%s/%s/%d", at, name, i), condition); err != nil {
			return "", 0, err
		}
	}
	return "(" + strings.Join(parts, join) + ")", len(group), nil
}

// comparisons maps operators to SQL operators.
var comparisons = map[entity.FilterOp]string{
	entity.FilterEq: " = ", entity.FilterNeq: " is distinct from ", entity.FilterGt: " > ", entity.FilterLt: " < ", entity.FilterGte: " >= ", entity.FilterLte: " <= ",
}

// condition compiles one comparison.
func (q *filterQuery) condition(at string, c entity.FilterCondition) (string, error) {
	column, err := q.column(at+"/field", c.Field)
	if err != nil {
		return "", err
	}
	if !slices.Contains(entity.FilterOps(), c.Op) {
		return "", badFilter(at+"/op", "%q is not an operator", text(string(c.Op))).WithHint("use " + oneOf(entity.FilterOps()))
	}
	null := isNull(c.Value)
	ops := column.ops()
	if !slices.Contains(ops, c.Op) && (!null || c.Op != entity.FilterEq && c.Op != entity.FilterNeq) {
		return "", badFilter(at+"/op", "%s cannot be compared by %s: it is %s", column.name, c.Op, jig.Known(column.what())).WithHint("use " + oneOf(ops))
	}
	wrong := func(why string) error {
		return badFilter(at+"/value", "%s %s: %s", column.name, c.Op, why)
	}
	switch {
	case len(c.Value) == 0:
		return "", wrong("there is no value")
	case null && c.Op == entity.FilterEq:
		return column.missing, nil
	case null && c.Op == entity.FilterNeq:
		return column.has(), nil
	case null:
		return "", wrong("null can only be compared by eq, neq and in")
	case c.Op == entity.FilterIn:
		return q.in(column, c.Value, wrong)
	case c.Op == entity.FilterContains:
		return q.contains(column, c.Value, wrong)
	}
	v, why := column.operand(c.Value)
	if why != "" {
		return "", wrong(why)
	}
	return column.sql + comparisons[c.Op] + q.arg(v) + column.cast(), nil
}

// has returns the condition that an entity has a value.
func (c filterColumn) has() string { return cmp.Or(c.present, "not ("+c.missing+")") }

// in compiles a comparison with a list of values, which may include null.
func (q *filterQuery) in(column filterColumn, raw json.RawMessage, wrong func(string) error) (string, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return "", wrong("want an array of values, not " + jsonKind(raw))
	}
	if len(items) > entity.MaxFilterValues {
		return "", wrong(fmt.Sprintf("there are more than %d values", entity.MaxFilterValues))
	}
	var parts []string
	var values []any
	for i, item := range items {
		if isNull(item) {
			parts = append(parts, column.missing)
			continue
		}
		v, why := column.operand(item)
		if why != "" {
			return "", wrong(fmt.Sprintf("value %d: %s", i, why))
		}
		values = append(values, v)
	}
	parts = append(parts, column.sql+" = any("+q.arg(column.slice(values))+column.list()+")")
	return "(" + strings.Join(parts, " or ") + ")", nil
}

// contains compiles the contains operator for a text, a list or an object.
func (q *filterQuery) contains(column filterColumn, raw json.RawMessage, wrong func(string) error) (string, error) {
	if column.kind == kindText {
		v, why := column.operand(raw)
		if why != "" {
			return "", wrong(why)
		}
		return "strpos(lower(" + column.sql + "), lower(" + q.arg(v) + `::text collate "C")) > 0`, nil
	}
	part, why := column.part(raw)
	if why != "" {
		return "", wrong(why)
	}
	return "(" + column.has() + " and " + column.json + " @> " + q.arg(part) + "::jsonb)", nil
}

// sorting resolves the columns to sort by.
func (q *filterQuery) sorting(keys []entity.FilterSort) error {
	if len(keys) == 0 {
		keys = []entity.FilterSort{{Field: entity.FilterCreatedAt}}
	}
	if len(keys) > entity.MaxFilterSort {
		return badFilter("/sort", "the filter sorts by more than %d fields", entity.MaxFilterSort)
	}
	for i, key := range keys {
		at := fmt.Sprintf("/sort/%d/field", i)
		column, err := q.column(at, key.Field)
		if err != nil {
			return err
		}
		if column.kind == kindList || column.kind == kindObject {
			return badFilter(at, "entities cannot be sorted by %s: it is %s", column.name, jig.Known(column.what()))
		}
		q.sort = append(q.sort, sortKey{column, key.Desc})
	}
	return nil
}

// after adds the condition that a row comes after the end of the previous page.
func (q *filterQuery) after(from filterCursor) error {
	if len(from.Keys) != len(q.sort) {
		return badFilter("/cursor", "the cursor is not valid")
	}
	values := make([]any, len(q.sort))
	for i, key := range q.sort {
		if from.Keys[i] == nil {
			continue
		}
		var ok bool
		if values[i], ok = key.parse(*from.Keys[i]); !ok {
			return badFilter("/cursor", "the cursor is not valid")
		}
	}
	id := q.arg(text(from.ID)) + "::text"
	if only := q.sort[0]; len(q.sort) == 1 && only.always && !only.desc && values[0] != nil { // a single range of the index
		q.where = append(q.where, "("+only.sql+", "+idColumn+") > ("+q.arg(values[0])+only.cast()+", "+id+")")
		return nil
	}
	rest := idColumn + " > " + id
	for i, key := range slices.Backward(q.sort) {
		if values[i] == nil { // nulls come last: only further rows without a value follow
			rest = "(" + key.sql + " is null and " + rest + ")"
			continue
		}
		v, beyond := q.arg(values[i])+key.cast(), " > "
		if key.desc {
			beyond = " < "
		}
		rest = "(" + key.sql + beyond + v + " or " + key.sql + " is null or (" + key.sql + " = " + v + " and " + rest + "))"
	}
	q.where = append(q.where, rest)
	return nil
}

// cursor returns the position of a page that ended with e.
func (q *filterQuery) cursor(e entity.Entity) (filterCursor, error) {
	content, err := contentMap(e.Content)
	if err != nil {
		return filterCursor{}, err
	}
	c := filterCursor{ID: e.ID, Keys: make([]*string, len(q.sort))}
	for i, key := range q.sort {
		c.Keys[i] = key.keyOf(e, content)
	}
	return c, nil
}
