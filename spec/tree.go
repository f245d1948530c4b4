package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
)

// Limits of a document, checked before anything is made from it.
const (
	// MaxDocumentBytes limits the size of the file.
	MaxDocumentBytes = 256 << 10
	// MaxDepth limits how deep values nest: ten blocks of steps at four values each, plus what the innermost step contains.
	MaxDepth = 64
	// MaxValues limits the values of a document after aliases are expanded. Their text may then have up to four times the file's size limit.
	MaxValues = 20_000
)

// limits are the limits of a document's size in bytes and of its values.
type limits struct{ bytes, values int }

// splitHint is the hint for a document that is too large.
const splitHint = "split it into several documents"

// kind is the type of a value: JSON's types, with integers as a separate type.
type kind string

const (
	kindNull   kind = "nothing"
	kindBool   kind = "true or false"
	kindInt    kind = "a whole number"
	kindFloat  kind = "a number"
	kindString kind = "text"
	kindList   kind = "a list"
	kindMap    kind = "a mapping"
	// kindBroken is a value with a problem that was already reported. Nothing more is reported about it.
	kindBroken kind = "broken"
)

// node is a value of a document with its position. Aliases are expanded, and tags and merge keys are refused, so every node has a JSON form.
type node struct {
	kind         kind
	line, column int
	// text is the value of a scalar: a number as JSON writes it, or a string without its quotes.
	text string
	// unquoted is the text in lower case if it is written without quotes and may be a word for true or false.
	unquoted string
	items    []*node
	entries  []entry
}

// entry is one key of a mapping, with its value.
type entry struct {
	key          string
	line, column int
	value        *node
}

// get returns the value of a mapping's key, or nil if there is none.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// json returns the value as JSON.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.appendJSON(&b)
	return b.Bytes()
}

func (n *node) appendJSON(b *bytes.Buffer) {
	switch n.kind {
	case kindNull, kindBroken:
		b.WriteString("null")
	case kindBool, kindInt, kindFloat:
		b.WriteString(n.text)
	case kindString:
		appendJSONString(b, n.text)
	case kindList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.appendJSON(b)
		}
		b.WriteByte(']')
	case kindMap:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteByte(',')
			}
			appendJSONString(b, e.key)
			b.WriteByte(':')
			e.value.appendJSON(b)
		}
		b.WriteByte('}')
	}
}

// appendJSONString writes text without escaping <, > and &, so that templates stay readable.
func appendJSONString(b *bytes.Buffer, text string) {
	_ = jsontext.Write(b, text) //nolint:errcheck // encoding a string and writing to a buffer never fail
}

// grower builds the tree and enforces the limits.
type grower struct {
	add    func(Problem)
	limits limits
	values int
	bytes  int
	paths  int // the total length of the paths to all values, which stay in memory
	full   bool
}

// pathsPerByte limits the total length of the paths to all values, for each byte that a document may have.
const pathsPerByte = 32

// parseTree parses YAML (JSON is YAML, too). It returns nil, with the problems reported, if the text cannot be read at all.
func (d *decoder) parseTree(text []byte) *node { return d.parseWithin(limits{}, text) }

// parseWithin parses a document within limits; by default those of most documents.
func (d *decoder) parseWithin(most limits, text []byte) *node {
	most = cmp.Or(most, limits{bytes: MaxDocumentBytes, values: MaxValues})
	if len(text) > most.bytes {
		d.add(Problem{Code: ProblemTooLarge, Hint: splitHint}.saying("the document has %d bytes; at most %d are allowed", len(text), jig.Known(most.bytes)))
		return nil
	}
	if separators(text) > 2*most.values { // before the parser spends memory on each of them
		d.add(Problem{Code: ProblemTooMany, Line: 1, Column: 1, Hint: splitHint}.saying("the document has more than %d values", jig.Known(most.values)))
		return nil
	}
	if p := notUTF8(text); p != nil {
		d.add(*p)
		return nil
	}
	tooDeep := false
	depth := loaderlimits.New(loaderlimits.DepthFunc(func(depth int, _ *loaderlimits.DepthContext) error {
		if depth > 4*MaxDepth {
			tooDeep = true
			return errors.New("nested too deeply")
		}
		return nil
	}), loaderlimits.AliasNone())
	var root yaml.Node
	if err := yaml.Load(text, &root, yaml.WithPlugin(depth)); err != nil {
		d.syntaxProblem(err, tooDeep)
		return nil
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = *root.Content[0]
	}
	g := &grower{limits: most, add: d.add}
	tree := g.grow(&root, "", 0)
	if g.full {
		return nil
	}
	return tree
}

// separators counts the characters that separate values. The number of values in a document is not much larger.
func separators(text []byte) int {
	n := 0
	for _, c := range text {
		switch c {
		case ',', ':', '[', ']', '{', '}', '?', '\n':
			n++
		}
	}
	return n
}

func (d *decoder) syntaxProblem(err error, tooDeep bool) {
	p, message := Problem{Line: 1, Column: 1, Code: ProblemSyntax}, strings.TrimPrefix(err.Error(), "yaml: ")
	var load *yaml.LoadError
	if errors.As(err, &load) {
		message = load.Message
		p.Line, p.Column = max(load.Mark.Line, 1), max(load.Mark.Column, 1)
	}
	p = p.saying("not YAML: %s", jig.Words(expr.Quoted(message)))
	if tooDeep {
		p.Code, p.Hint = ProblemTooDeep, splitHint
		p = p.saying("values are nested more than %d levels deep", MaxDepth)
	}
	d.add(p)
}

func (g *grower) report(at yaml.Node, path string, code ProblemCode, message, hint string) {
	g.add(Problem{Path: path, Line: at.Line, Column: at.Column, Code: code, Hint: hint}.saying("%s", jig.Words(expr.Quoted(message))))
}

// grow turns a YAML node into a value. A node that cannot be a value is reported and becomes kindBroken.
func (g *grower) grow(y *yaml.Node, path string, depth int) *node {
	n := &node{kind: kindNull, line: y.Line, column: y.Column}
	g.values++
	g.bytes += len(y.Value)
	g.paths += len(path)
	switch {
	case g.full:
		return n
	case g.paths > pathsPerByte*g.limits.bytes:
		g.full = true
		g.report(*y, "", ProblemTooMany, fmt.Sprintf("the paths to all values add up to more than %d MiB", pathsPerByte*g.limits.bytes>>20), "shorten the long keys")
		return n
	case g.values > g.limits.values || g.bytes > 4*g.limits.bytes:
		g.full = true
		g.report(*y, "", ProblemTooMany, fmt.Sprintf("the document has more than %d values, or %d bytes of text, once its aliases are expanded", g.limits.values, 4*g.limits.bytes), splitHint)
		return n
	case depth > MaxDepth:
		g.full = true
		g.report(*y, "", ProblemTooDeep, fmt.Sprintf("values are nested more than %d levels deep", MaxDepth), splitHint)
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		if y.Alias == nil {
			return n
		}
		return g.grow(y.Alias, path, depth+1) // depth limits an alias that contains itself
	case yaml.SequenceNode:
		n.kind = kindList
		for i, item := range y.Content {
			if g.full {
				break
			}
			n.items = append(n.items, g.grow(item, indexPath(path, i), depth+1))
		}
	case yaml.MappingNode:
		n.kind = kindMap
		g.growEntries(n, y, path, depth)
	case yaml.ScalarNode:
		g.growScalar(n, y, path)
	case yaml.DocumentNode, yaml.StreamNode: // only at the top, and parseTree has unwrapped it
	}
	return n
}

func (g *grower) growEntries(n *node, y *yaml.Node, path string, depth int) {
	seen := map[string]int{}
	for i := 0; i+1 < len(y.Content) && !g.full; i += 2 {
		key := y.Content[i]
		switch line, again := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			g.report(*key, path, ProblemSyntax, "a key must be text", "")
			continue
		case key.ShortTag() == "!!merge":
			g.report(*key, path, ProblemSyntax, "merge keys (<<) are not supported", "write the keys out")
			continue
		case again:
			g.report(*key, keyPath(path, key.Value), ProblemDuplicateKey, fmt.Sprintf("the key %q is already on line %d", key.Value, line), "remove one of them")
			continue
		}
		seen[key.Value] = key.Line
		g.values++
		g.bytes += len(key.Value)
		value := g.grow(y.Content[i+1], keyPath(path, key.Value), depth+1)
		n.entries = append(n.entries, entry{key: key.Value, line: key.Line, column: key.Column, value: value})
	}
}

func (g *grower) growScalar(n *node, y *yaml.Node, path string) {
	switch y.ShortTag() {
	case "!!null":
	case "!!bool":
		n.kind, n.text = kindBool, strings.ToLower(y.Value)
	case "!!int":
		var i int64
		if err := y.Decode(&i); err != nil {
			n.kind = kindBroken
			g.report(*y, path, ProblemOutOfRange, "the number "+y.Value+" does not fit in 64 bits", "")
			return
		}
		n.kind, n.text = kindInt, strconv.FormatInt(i, 10)
		g.leadingZero(n, y, path)
	case "!!float":
		var f float64
		if err := y.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			n.kind = kindBroken
			g.report(*y, path, ProblemBadValue, y.Value+" is not a number that JSON can hold", "")
			return
		}
		b, err := json.Marshal(f)
		if err != nil {
			return
		}
		n.kind, n.text = kindFloat, string(b)
		g.leadingZero(n, y, path)
	case "!!str", "!!timestamp":
		n.kind, n.text = kindString, y.Value
		if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 && len(y.Value) <= len("off") {
			n.unquoted = strings.ToLower(y.Value)
		}
	default:
		n.kind = kindBroken
		g.report(*y, path, ProblemSyntax, "the tag "+y.Tag+" is not supported", "remove it")
	}
}

// saysYesOrNo maps the words that YAML 1.1 takes for true or false to the one that they mean. YAML 1.2, which jig reads, takes them for text.
var saysYesOrNo = map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}

var zeroFirst = regexp.MustCompile(`^[-+]?0_*[0-9]`)

// leadingZero warns of a number that begins with a zero: it is read as octal, or loses the zero.
func (g *grower) leadingZero(n *node, y *yaml.Node, path string) {
	if !zeroFirst.MatchString(y.Value) {
		return
	}
	g.add(Problem{
		Path: path, Line: y.Line, Column: y.Column, Code: ProblemAmbiguousValue, Severity: SeverityWarning,
	}.hinting(jig.Templatef("write %s, or %q if it is text", n.text, y.Value)).
		saying("%s is read as the number %s, because it begins with 0", y.Value, n.text))
}

func keyPath(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".[] \"\n") {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
