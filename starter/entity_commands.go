package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

func (a *app) entityCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "entity",
		Short:   "List and show entities",
		Example: "  jig entity list company\n  jig entity show \"Acme Ltd\"",
	}, a.entityListCommand(), a.entityShowCommand())
}

// entityListFlags narrow and order a list of entities.
type entityListFlags struct {
	filters, fields, sort []string
	partial               bool
	after                 string
	limit                 int
}

func (a *app) entityListCommand() *cobra.Command {
	var f entityListFlags
	cmd := &cobra.Command{
		Use:   "list TYPE",
		Short: "List the entities of a type",
		Long: `List the entities of a type that you may read. --filter compares a field with a value: =, !=, <, <=, >, >=, or ~ for "contains"; all
filters must hold. Besides the fields of the type there are $id, $title, $created_at, $updated_at and $failed_tasks; the value null stands for
"has no value". --partial keeps the entities of which tasks failed. --limit prints one page; pass its cursor to --after, with the same filters,
to get the next one. JSON output: {"entities": […], "next_cursor"?}.`,
		Example: `  jig entity list company
  jig entity list company --filter risk=high --filter 'employees>=50' --field employees --sort=-employees
  jig entity list company --partial`,
		Args: arguments(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error { return a.listEntities(ctx, e, args[0], &f) }),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.filters, "filter", nil, "only entities whose field compares with the value, e.g. risk=high (repeatable)")
	flags.StringArrayVar(&f.fields, "field", nil, "also print this field (repeatable)")
	flags.StringArrayVar(&f.sort, "sort", nil, "sort by this field, with a leading - for descending order (repeatable)")
	flags.BoolVar(&f.partial, "partial", false, "only entities of which tasks failed")
	flags.IntVar(&f.limit, "limit", 0, "print at most this many (default 20, at most 100)")
	flags.StringVar(&f.after, "after", "", "continue after this cursor")
	return cmd
}

// condition reads the value of a --filter flag. A value that is JSON is taken as such; any other value is a text.
func condition(flag string) (entity.FilterClause, error) {
	signs := map[string]entity.FilterOp{
		"!=": entity.FilterNeq, ">=": entity.FilterGte, "<=": entity.FilterLte, "=": entity.FilterEq, ">": entity.FilterGt, "<": entity.FilterLt,
		"~": entity.FilterContains,
	}
	at := max(0, strings.IndexAny(flag, "!><=~"))
	field, rest := strings.TrimSpace(flag[:at]), flag[at:]
	for _, length := range []int{2, 1} {
		op, ok := signs[rest[:min(length, len(rest))]]
		if !ok || field == "" {
			continue
		}
		value := json.RawMessage(rest[length:])
		var err error
		if !json.Valid(value) {
			value, err = jsontext.Encode(rest[length:])
		}
		return entity.FilterClause{Field: field, Op: op, Value: value}, err
	}
	return entity.FilterClause{}, usagef("--filter is %q; write FIELD=VALUE, or !=, <, <=, >, >=, ~ in place of =", flag)
}

// entityFilter is the input of entities.filter.
type entityFilter struct {
	Type   string                `json:"type"`
	Where  []entity.FilterClause `json:"where,omitempty"`
	Sort   []entity.FilterSort   `json:"sort,omitempty"`
	Fields []string              `json:"fields,omitempty"`
	Cursor string                `json:"cursor,omitempty"`
	Limit  int                   `json:"limit,omitempty"`
}

func (a *app) listEntities(ctx context.Context, e engine, kind string, f *entityListFlags) error {
	in := entityFilter{Type: kind, Fields: f.fields, Cursor: f.after, Limit: f.limit}
	for _, flag := range f.filters {
		clause, err := condition(flag)
		if err != nil {
			return err
		}
		in.Where = append(in.Where, clause)
	}
	if f.partial {
		in.Where = append(in.Where, entity.FilterClause{Field: entity.FilterFailedTasks, Op: entity.FilterNeq, Value: json.RawMessage(`null`)})
	}
	for _, s := range f.sort {
		field, descends := strings.CutPrefix(s, "-")
		in.Sort = append(in.Sort, entity.FilterSort{Field: field, Desc: descends})
	}
	page, err := readEntities[entity.RowPage](ctx, a, e, toolname.EntitiesFilter, in)
	if err != nil {
		return err
	}
	page.Entities = append([]entity.Row{}, page.Entities...)
	return a.output(page, func() error {
		rows := [][]string{slices.Concat([]string{"ID", "TITLE", "UPDATED"}, upper(f.fields))}
		for _, row := range page.Entities {
			cells := []string{row.ID, oneLine(row.Title, 60), moment(row.UpdatedAt)}
			for _, field := range f.fields {
				cells = append(cells, valueText(row.Values[field], slices.Contains(row.Large, field), 40))
			}
			rows = append(rows, cells)
		}
		if len(page.Entities) > 0 {
			a.table(rows)
		}
		a.say("%s", page.Summary())
		if page.Next != "" {
			a.say("more: add --after %s", page.Next)
		}
		return a.failed
	})
}

func upper(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strings.ToUpper(name)
	}
	return list
}

// valueText formats the value of a field on one line. Texts stand without quotes.
func valueText(raw json.RawMessage, large bool, limit int) string {
	var text string
	switch {
	case large:
		return "…"
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return oneLine(text, limit)
	}
	return compact(raw, limit)
}

// readEntities reads entities with a built-in tool, as the user.
func readEntities[R any](ctx context.Context, a *app, e engine, tool string, input any) (result R, err error) {
	raw, err := jsontext.Encode(input)
	if err != nil {
		return result, err
	}
	data, err := e.ReadWithTool(ctx, protocol.ToolReadRequest{Tenant: a.flags.tenant, Principal: a.principal(), Tool: tool, Input: raw})
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return result, jig.Errorf(jig.CodeInternal, "decoding the answer of %s: %w", tool, err)
	}
	return result, nil
}

// entityShowFlags say what of an entity is shown.
type entityShowFlags struct {
	kind       string
	provenance bool
}

func (a *app) entityShowCommand() *cobra.Command {
	var f entityShowFlags
	cmd := &cobra.Command{
		Use:   "show ID|TITLE",
		Short: "Show an entity: its fields, its texts and, with --provenance, where the values come from",
		Long: `Show an entity that you may read, by its id or its title. Longer values are cut; "jig trigger entities.get --input id=… --input field=…" reads one in
full. "jig status ID" shows its latest extraction. JSON output is that of the tool entities.get.`,
		Example: `  jig entity show ent_…
  jig entity show "Acme Ltd" --type company --provenance`,
		Args: arguments(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			id, err := a.entityNamed(ctx, e, args[0], f.kind)
			if err != nil {
				return err
			}
			in := map[string]any{"id": id}
			if f.provenance {
				in["provenance"] = true
			}
			found, err := readEntities[entity.Reading](ctx, a, e, toolname.EntitiesGet, in)
			if err != nil {
				return err
			}
			if !f.provenance {
				found.Provenance = nil // a server sends it unasked
			}
			return a.output(found, func() error { return a.printReading(found) })
		}),
	}
	cmd.Flags().StringVar(&f.kind, "type", "", "look for the title among entities of this type")
	cmd.Flags().BoolVar(&f.provenance, "provenance", false, "also show which task made each value, and from which sources")
	return cmd
}

// entityNamed returns the id of the entity with a title. An id is returned as it is.
func (a *app) entityNamed(ctx context.Context, e engine, title, kind string) (string, error) {
	if isEntity(title) {
		return title, nil
	}
	in := map[string]any{"query": title, "limit": 100}
	if kind != "" {
		in["types"] = []string{kind}
	}
	found, err := readEntities[entity.HitList](ctx, a, e, toolname.EntitiesSearch, in)
	if err != nil {
		return "", err
	}
	ids, near := map[string]string{}, []string{}
	for _, hit := range found.Hits {
		if strings.EqualFold(hit.Title, title) {
			ids[hit.EntityID] = hit.Type
		} else if line := fmt.Sprintf("%q", hit.Title); len(near) < 5 && hit.Title != "" && !slices.Contains(near, line) {
			near = append(near, line)
		}
	}
	switch {
	case len(ids) == 1:
		for id := range ids {
			return id, nil
		}
	case len(ids) > 1:
		return "", usage(jig.Errorf(jig.CodeInvalidInput, "%d entities have the title %q", len(ids), title).WithField("title").
			WithHint("name one by its id: " + strings.Join(slices.Sorted(maps.Keys(ids)), ", ")))
	}
	hint := "`" + a.command("entity", "list", "TYPE") + "` lists the entities of a type"
	if len(near) > 0 {
		hint = "similar: " + strings.Join(near, ", ")
	}
	return "", jig.Errorf(jig.CodeNotFound, "no entity that you may read has the title %q", title).WithField("title").WithHint(hint)
}

func (a *app) printReading(r entity.Reading) error {
	rows := [][]string{{"entity", a.out.bold(r.ID)}, {"type", r.Type}}
	if r.Title != "" {
		rows = append(rows, []string{"title", oneLine(r.Title, 100)})
	}
	rows = append(rows, []string{"revision", fmt.Sprintf("%d, %s", r.Revision, moment(r.UpdatedAt))})
	for _, field := range r.Fields {
		value := valueText(field.Value, false, 200)
		if len(field.Value) == 0 {
			value = oneLine(field.Beginning, 160) + a.out.dim(fmt.Sprintf(" (%d bytes)", field.Size))
		}
		rows = append(rows, []string{field.Name, value})
	}
	if len(r.Missing) > 0 {
		rows = append(rows, []string{"without a value", strings.Join(r.Missing, ", ")})
	}
	for _, text := range r.Texts {
		rows = append(rows, []string{"text", text.ID + " " + oneLine(text.Title, 80)})
	}
	a.table(rows)
	if len(r.Provenance) == 0 {
		return a.failed
	}
	a.line("")
	made := [][]string{{"FIELD", "TASK", "CALL", "MODEL", "SOURCES"}}
	for _, field := range slices.Sorted(maps.Keys(r.Provenance)) {
		p := r.Provenance[field]
		made = append(made, []string{field, p.Task, p.Call, p.Model, oneLine(strings.Join(p.Sources, ", "), 120)})
	}
	return a.printTable(made)
}
