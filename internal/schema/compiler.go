package schema

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// base is the URL against which schemas without an $id resolve their references. Nothing can be loaded from it. negated is the URL of the
// schema that accepts exactly what base rejects.
const (
	base    = "jig:///schema.json"
	negated = "jig:///negated.json"
)

// Limits on schemas, in addition to those in Options. A compiled schema takes about a kilobyte for each value in it, and stores the path to
// each value as text.
const (
	MaxSchemaValues = 20_000
	MaxSchemaPaths  = 8 << 20
	// MaxCachedValues bounds the total number of values in all cached schemas.
	MaxCachedValues = 200_000
)

// Options are the settings of a [Compiler]. The zero value refuses every reference to another document.
type Options struct {
	// MaxSchemaBytes and MaxSchemaDepth bound a schema; default 1 MiB and 64 levels.
	MaxSchemaBytes, MaxSchemaDepth int
	// MaxInstanceBytes and MaxInstanceDepth bound a value to be validated; default 64 MiB and 128 levels.
	MaxInstanceBytes, MaxInstanceDepth int
	// ExactNumbers refuses numbers beyond 2^53 with more than 15 significant digits, because two of them may be the same double, and two
	// different inputs would then share a digest. Default: any number is accepted.
	ExactNumbers bool
	// AssertFormats validates `format` (date-time, email, uri …). Default: format is only an annotation, as in draft 2020-12.
	AssertFormats bool
	// Load returns the schema for an absolute URL. Default: all remote and file references are refused.
	Load func(url string) ([]byte, error)
	// CacheSize is the number of compiled schemas to keep; the least recently used are dropped first. Default 1,024.
	CacheSize int
}

func (o Options) withDefaults() Options {
	o.MaxSchemaBytes = orDefault(o.MaxSchemaBytes, 1<<20)
	o.MaxSchemaDepth = orDefault(o.MaxSchemaDepth, 64)
	o.MaxInstanceBytes = orDefault(o.MaxInstanceBytes, 64<<20)
	o.MaxInstanceDepth = orDefault(o.MaxInstanceDepth, 128)
	o.CacheSize = orDefault(o.CacheSize, 1024)
	return o
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// Compiler compiles schemas, once per content hash, and keeps them in a bounded cache. It is safe for concurrent use.
type Compiler struct {
	options Options

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*list.Element
	recent *list.List // of *entry, most recently used first
	values int
}

type entry struct {
	hash   [sha256.Size]byte
	values int // an upper bound, estimated from the text
	once   sync.Once
	schema *Schema
	err    error
}

// NewCompiler returns a compiler with an empty cache.
func NewCompiler(options Options) *Compiler {
	return &Compiler{options: options.withDefaults(), byHash: map[[sha256.Size]byte]*list.Element{}, recent: list.New()}
}

// Compile returns a compiled schema. The error is an INVALID_INPUT with all violations of the metaschema; their pointers point into the
// schema.
func (c *Compiler) Compile(raw []byte) (*Schema, error) {
	if len(raw) > c.options.MaxSchemaBytes {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the schema has %d bytes, at most %d are allowed", len(raw), c.options.MaxSchemaBytes)
	}
	e := c.entry(raw)
	e.once.Do(func() { e.schema, e.err = c.compile(raw) })
	return e.schema, e.err
}

// entry returns the cache entry for a schema and creates it if necessary.
func (c *Compiler) entry(raw []byte) *entry {
	hash := sha256.Sum256(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.byHash[hash]; ok {
		c.recent.MoveToFront(found)
		return found.Value.(*entry) //nolint:errcheck // the list holds only *entry
	}
	e := &entry{hash: hash, values: min(1+bytes.Count(raw, []byte(":"))+bytes.Count(raw, []byte(",")), MaxSchemaValues)}
	c.byHash[hash] = c.recent.PushFront(e)
	c.values += e.values
	for c.recent.Len() > c.options.CacheSize || c.values > MaxCachedValues {
		last := c.recent.Remove(c.recent.Back()).(*entry) //nolint:errcheck // the list holds only *entry
		delete(c.byHash, last.hash)
		c.values -= last.values
	}
	return e
}

func (c *Compiler) compile(raw []byte) (*Schema, error) {
	document, err := strictjson.Decode(raw, strictjson.Limits{Depth: c.options.MaxSchemaDepth, Values: MaxSchemaValues})
	if err != nil {
		return nil, notJSON("the schema", err)
	}
	if paths(document, 0) > MaxSchemaPaths {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the paths to all parts of the schema have more than %d MiB together", MaxSchemaPaths>>20).
			WithReason("limit_exceeded").WithHint("shorten the names of properties")
	}
	compiler := jsonschema.NewCompiler()
	patterns, compiled := engine()
	compiler.UseRegexpEngine(patterns)
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(loader{options: c.options})
	if c.options.AssertFormats {
		compiler.AssertFormat()
	}
	if err := compiler.AddResource(base, document); err != nil {
		return nil, refused(err)
	}
	root, err := compiler.Compile(base)
	if err != nil {
		return nil, refused(err)
	}
	if err := compiler.AddResource(negated, map[string]any{"not": map[string]any{"$ref": base}}); err != nil {
		return nil, refused(err)
	}
	not, err := compiler.Compile(negated)
	if err != nil {
		return nil, refused(err)
	}
	compiled()
	return &Schema{
		compiled: root, negated: not, document: document, options: c.options, dynamic: dynamic(root), simple: simple(root),
	}, nil
}

// paths returns the total length of the pointers to all parts of a document, including what escaping may add.
func paths(v any, above int) int {
	sum := above
	switch x := v.(type) {
	case map[string]any:
		for key, member := range x {
			sum += paths(member, above+2+len(key))
		}
	case []any:
		for _, item := range x {
			sum += paths(item, above+5)
		}
	}
	return sum
}

// refused translates the library's error for a schema that does not compile.
func refused(err error) error {
	var violation *jsonschema.ValidationError
	if errors.As(err, &violation) {
		return report("the schema", violation, nil)
	}
	var mismatch *jsonschema.SchemaValidationError
	if errors.As(err, &mismatch) && errors.As(mismatch.Err, &violation) {
		return report("the schema", violation, nil)
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return jig.Errorf(jig.CodeInvalidInput, "the schema refers to %s: %w", clip(load.URL), load.Err).
			WithHint("put the referenced schema under $defs").WithReason("reference_refused")
	}
	return jig.Errorf(jig.CodeInvalidInput, "the schema does not compile: %w", err)
}

// notJSON translates an error of strictjson.Decode. what names the text, e.g. "the schema".
func notJSON(what string, err error) *jig.Error {
	e := jig.Errorf(jig.CodeInvalidInput, "%s cannot be read: %w", what, err)
	var s *strictjson.SyntaxError
	if errors.As(err, &s) {
		e.Field = s.Pointer
		e.Violations = []jig.Violation{{Pointer: s.Pointer, Message: s.Message, Template: s.Words}}
	}
	return e
}

var errRemote = errors.New("references to other documents are not followed")

// loader loads referenced schemas only through the caller's option.
type loader struct{ options Options }

// Load implements jsonschema.URLLoader.
func (l loader) Load(url string) (any, error) {
	if l.options.Load == nil {
		return nil, errRemote
	}
	raw, err := l.options.Load(url)
	if err != nil {
		return nil, err
	}
	if len(raw) > l.options.MaxSchemaBytes {
		return nil, fmt.Errorf("the referenced schema has %d bytes, at most %d are allowed", len(raw), l.options.MaxSchemaBytes)
	}
	return strictjson.Decode(raw, strictjson.Limits{Depth: l.options.MaxSchemaDepth, Values: MaxSchemaValues})
}
