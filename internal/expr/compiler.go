package expr

import "encoding/json"

// Compiler compiles the expressions of a document and reports the errors with their paths. What it returns is nil if the source is empty or
// wrong.
type Compiler struct {
	Env    *Env
	Report func(path string, err error)
}

// Program compiles an expression whose result must have a type; see [Env.CompileAs].
func (c Compiler) Program(path, source string, want Type) *Program {
	if source == "" {
		return nil
	}
	p, err := c.Env.CompileAs(source, want)
	if err != nil {
		c.Report(path, err)
	}
	return p
}

// Template compiles a template; see [Env.Template].
func (c Compiler) Template(path, source string) *Template {
	if source == "" {
		return nil
	}
	t, err := c.Env.Template(source)
	if err != nil {
		c.Report(path, err)
	}
	return t
}

// Document compiles the strings of a JSON document; see [Env.Document]. Each of them that is wrong is reported.
func (c Compiler) Document(path string, raw json.RawMessage) *Document {
	if len(raw) == 0 {
		return nil
	}
	d, problems := c.Env.Document(raw)
	for _, p := range problems {
		c.Report(JoinPath(path, p.Path), p.Err)
	}
	return d
}
