package expr

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/jig-run/jig"
)

// Document is a JSON document whose strings are templates.
type Document struct {
	root  any
	limit int
}

// Problem is what is wrong with one string of a document.
type Problem struct {
	// Path names the string from the document's root, e.g. "files[2].name"; empty for the root itself.
	Path string
	Err  *jig.Error
}

// maxDocumentDepth bounds the nesting of a document of templates.
const maxDocumentDepth = 100

// Document compiles every string of a JSON document (keys are left as they are) and reports all that do not compile.
func (e *Env) Document(raw json.RawMessage) (*Document, []Problem) {
	v, err := decode(raw)
	if err != nil {
		return nil, []Problem{{Err: jig.AsError(err)}}
	}
	c := &documentCompiler{template: func(source string) (any, error) {
		t, err := e.Template(source)
		if err == nil && t.Constant() {
			return t.constant(), nil
		}
		return t, err
	}}
	root := c.value(v, "", 0)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Document{root: root, limit: e.use.Limits.Result}, nil
}

type documentCompiler struct {
	template func(source string) (any, error)
	problems []Problem
}

func (c *documentCompiler) value(v any, path string, depth int) any {
	if depth > maxDocumentDepth {
		c.problems = append(c.problems, Problem{Path: path, Err: jig.Errorf(jig.CodeInvalidInput, "nested more than %d levels deep", maxDocumentDepth)})
		return nil
	}
	switch x := v.(type) {
	case string:
		t, err := c.template(x)
		if err != nil {
			c.problems = append(c.problems, Problem{Path: path, Err: jig.AsError(err)})
			return nil
		}
		return t
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = c.value(item, indexPath(path, i), depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for _, key := range keysOf(x) {
			out[key] = c.value(x[key], keyPath(path, key), depth+1)
		}
		return out
	}
	return v
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func keyPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func keysOf(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Render evaluates the document's templates and returns it as JSON; an error names the path of the string as its Field.
func (d *Document) Render(ctx context.Context, vars map[string]any) (json.RawMessage, error) {
	v, err := render(ctx, d.root, vars, "")
	if err != nil {
		return nil, err
	}
	raw, err := marshal(v)
	if err == nil && len(raw) > d.limit {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the rendered document is larger than %d KiB", d.limit>>10)
	}
	return raw, err
}

func render(ctx context.Context, v any, vars map[string]any, path string) (any, error) {
	switch x := v.(type) {
	case *Template:
		out, err := x.Eval(ctx, vars)
		if err != nil {
			return nil, jig.AsError(err).WithField(path)
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			rendered, err := render(ctx, item, vars, indexPath(path, i))
			if err != nil {
				return nil, err
			}
			out[i] = rendered
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(x))
		for _, key := range keysOf(x) {
			rendered, err := render(ctx, x[key], vars, keyPath(path, key))
			if err != nil {
				return nil, err
			}
			out[key] = rendered
		}
		return out, nil
	}
	return v, nil
}
