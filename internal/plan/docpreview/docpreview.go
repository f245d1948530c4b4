// Package docpreview computes the previews that documents describe: from the input of a call and, if the document asks for it, from the output
// of one call that only reads. It must not know how that call is made or where previews are shown.
package docpreview

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/spec"
)

// Program is the preview of a document with its expressions compiled. It is safe for concurrent use.
type Program struct {
	title, markdown *expr.Template
	changes         *expr.Document
	// tool is the tool to call first, with this input; empty for none.
	tool  string
	input *expr.Document
}

// Compile compiles the preview of a document. It returns nil if the document has none.
func Compile(x spec.Execution) (*Program, error) {
	p := x.Preview
	if p == nil {
		return nil, nil // the document has no preview
	}
	env, err := expr.PreviewUse().Env()
	if err != nil {
		return nil, err
	}
	var first error
	c := expr.Compiler{Env: env, Report: func(at string, err error) { first = cmp.Or(first, fault(jig.CodeInvalidInput, at, err)) }}
	program := &Program{title: c.Template("title", p.Title), markdown: c.Template("markdown", p.Markdown), changes: c.Document("changes", p.Changes)}
	if p.Read != nil {
		program.tool, program.input = p.Read.Tool, c.Document("read.input", p.Read.Input)
	}
	return program, first //nolint:wrapcheck // fault has wrapped it
}

// Preview computes the preview of a call. read makes the call that the document asks for.
func (p *Program) Preview(ctx context.Context, inv jig.Invocation, input []byte, read plan.Read) (jig.Preview, error) {
	vars, err := variables(inv, input)
	if err != nil {
		return jig.Preview{}, err
	}
	if err := p.read(ctx, vars, read); err != nil {
		return jig.Preview{}, err
	}
	var out jig.Preview
	if out.Title, err = p.title.EvalText(ctx, vars); err != nil {
		return out, fault(jig.CodeOf(err), "title", err)
	}
	if p.markdown != nil {
		if out.Markdown, err = p.markdown.EvalText(ctx, vars); err != nil {
			return out, fault(jig.CodeOf(err), "markdown", err)
		}
	}
	if p.changes == nil {
		return out, nil
	}
	var changes []*string
	if err := render(ctx, p.changes, vars, "changes", &changes); err != nil {
		return out, err
	}
	for _, change := range changes {
		if change != nil {
			out.Changes = append(out.Changes, *change)
		}
	}
	return out, nil
}

// read makes the call of the preview and keeps its output as read.data.
func (p *Program) read(ctx context.Context, vars map[string]any, read plan.Read) error {
	if p.tool == "" {
		return nil
	}
	input := json.RawMessage(`{}`)
	if p.input != nil {
		if err := render(ctx, p.input, vars, "read.input", &input); err != nil {
			return err
		}
	}
	data, err := read(ctx, p.tool, input)
	if err != nil {
		return fault(jig.CodeOf(err), "read", err)
	}
	ready, err := expr.FromJSON(data)
	vars["read"] = map[string]any{"data": ready}
	return err
}

func variables(inv jig.Invocation, input []byte) (map[string]any, error) {
	given, err := expr.FromJSON(input)
	if err != nil {
		return nil, err
	}
	who := inv.Principal
	return map[string]any{
		"input": given, "read": map[string]any{}, "tenant": inv.Tenant,
		"principal": map[string]any{"id": who.ID, "groups": anyList(who.Groups), "permissions": anyList(who.Permissions)},
	}, nil
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, t := range texts {
		list[i] = t
	}
	return list
}

func render(ctx context.Context, d *expr.Document, vars map[string]any, at string, v any) error {
	raw, err := d.Render(ctx, vars)
	if err != nil {
		return fault(jig.CodeOf(err), at, err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the result has the wrong form: %w", err).WithField("preview." + at)
	}
	return nil
}

// fault returns an error with the place in the document at which it happened.
func fault(code jig.Code, at string, err error) error {
	e := jig.AsError(err)
	e = e.Reworded("preview.%s: %s", jig.Known(at), e.Words())
	e.Code, e.Field = code, "preview."+at
	return e
}
