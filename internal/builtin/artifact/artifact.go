// Package artifact contains the tool artifact.read, which lets a model read values that are too large for its prompt. It reads them in
// chunks through an interface and must not know where they are stored.
//
// A call selects a part of a value: lines from its beginning or its end, lines that match a regular expression, or the values at a JSONPath.
// Lines and results are cut, so that a prompt never grows beyond its bounds, and the result says whether there is more. Values are
// streamed. Only JSONPaths with filters, slices or .. need the whole value in memory, so a lower size limit applies to them ([MaxTree]).
//
// Begin with [Tools]. reader.go reads the pieces and collects the lines.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsonpath"
	"github.com/jig-run/jig/tools"
)

// The limits of the tools.
const (
	// MaxContent is the longest content returned, in bytes.
	MaxContent = 32 << 10
	// MaxScan is the size of the largest artifact that is searched by grep or by a streaming JSONPath, in bytes.
	MaxScan = 64 << 20
	// MaxTree is the size of the largest artifact for a JSONPath with filters, slices or .., in bytes: such a path needs the whole value in
	// memory.
	MaxTree = 16 << 20

	// chunk is the number of bytes read at once.
	chunk = 256 << 10
	// maxLine is the number of bytes of a line that are searched.
	maxLine = 64 << 10
	// maxShown is the number of bytes of a matching line that are shown.
	maxShown = 2000
)

// Store reads artifacts.
type Store interface {
	// ReadArtifact returns at most limit bytes from offset, and the total size. It returns NOT_FOUND if the artifact does not exist or the
	// caller may not see it.
	ReadArtifact(ctx context.Context, inv jig.Invocation, id string, offset int64, limit int) (chunk []byte, size int64, err error)
}

// Options are the settings of the tools.
type Options struct {
	// Store reads artifacts; required.
	Store Store
}

// Tools returns the tools of this package.
func Tools(options Options) []tools.Tool {
	f := family{store: options.Store}
	return []tools.Tool{tools.New(jig.Tool{
		Name: "artifact.read",
		Description: "Reads a part of an artifact: a large result that was stored separately and has an id. Use it when a result names an artifact and " +
			"its summary is not enough. Choose the part: head or tail count lines, grep (RE2) gives matching lines as number:line, jsonpath selects from JSON, one value a " +
			"line; head and tail also cut what grep and jsonpath found. Without any of them you get the beginning. At most 32 KiB come back (truncated says that there is more).",
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"results"},
		Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate, jig.ReadsUntrusted}},
	}, f.read)}
}

// family holds what the handler needs.
type family struct{ store Store }

type input struct {
	ID       string `json:"id"                 jsonschema:"id of the artifact"                                       minLength:"1" maxLength:"1000"`
	Head     int    `json:"head,omitempty"     jsonschema:"return this many lines from the beginning"                                  minimum:"1"   maximum:"100000"`
	Tail     int    `json:"tail,omitempty"     jsonschema:"return this many lines from the end; not together with head"           minimum:"1"   maximum:"100000"`
	Grep     string `json:"grep,omitempty"     jsonschema:"lines that match this regular expression (RE2)"           maxLength:"1000"`
	JSONPath string `json:"jsonpath,omitempty" jsonschema:"values at this JSONPath, e.g. $.items[*].id; not together with grep" maxLength:"1000"`
}

type output struct {
	Content   string `json:"content"   jsonschema:"the text that was asked for"`
	Truncated bool   `json:"truncated" jsonschema:"there is more than the content shows"`
}

// Summary implements tools.Summarizer.
func (o output) Summary() string {
	if o.Truncated {
		return "a part of the artifact"
	}
	return "all that was asked for"
}

func (f family) read(ctx context.Context, inv jig.Invocation, in input) (output, error) {
	switch {
	case in.Head > 0 && in.Tail > 0:
		return output{}, jig.Errorf(jig.CodeInvalidInput, "head and tail cannot be combined").WithField("/tail")
	case in.Grep != "" && in.JSONPath != "":
		return output{}, jig.Errorf(jig.CodeInvalidInput, "grep and jsonpath cannot be combined").WithField("/jsonpath")
	}
	source := &reader{ctx: ctx, store: f.store, inv: inv, id: in.ID}
	if err := source.open(); err != nil {
		return output{}, err
	}
	switch {
	case in.JSONPath != "":
		return query(source, in)
	case in.Grep != "":
		return search(source, in)
	case in.Tail > 0:
		return tail(source, in.Tail)
	case in.Head > 0:
		return lines(source, in)
	}
	return beginning(source)
}

// query returns the values at a JSONPath, one per line. A path of names, indices and wildcards is followed while the text is read; any
// other path needs the whole value in memory.
func query(r *reader, in input) (output, error) {
	path, err := jsonpath.Parse(in.JSONPath)
	if err != nil {
		return output{}, jig.Errorf(jig.CodeInvalidInput, "jsonpath cannot be used: %w", err).WithField("/jsonpath").
			WithHint("e.g. $.items[*].id or $.items[?(@.price > 5)].name")
	}
	limit := int64(MaxTree)
	if path.Streams() {
		limit = MaxScan
	}
	if err := r.within(limit); err != nil {
		return output{}, err
	}
	source := &noting{r: r}
	c := collectorFor(in)
	err = path.Select(r.ctx, source, MaxContent, func(text string) bool { return !c.add(text) })
	var exceeded *jsonpath.LimitError
	switch {
	case err == nil:
		return c.output(), nil
	case errors.As(err, &exceeded):
		e := jig.Errorf(jig.CodeInvalidInput, "%w", err).WithReason("limit_exceeded")
		if exceeded.OfDocument {
			return output{}, e.WithField("/id").WithHint("use head, tail or grep")
		}
		return output{}, e.WithField("/jsonpath").WithHint("select less: name members and indices, and use .. or * once")
	case source.failed != nil:
		return output{}, source.failed
	case r.ctx.Err() != nil:
		return output{}, fmt.Errorf("search the artifact: %w", r.ctx.Err())
	}
	return output{}, jig.Errorf(jig.CodeInvalidInput, "the artifact is not JSON: %w", err).WithField("/id").
		WithReason("not_json").WithHint("use head, tail or grep")
}
