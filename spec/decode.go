package spec

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/suggest"
)

// Expression is CEL source. In a document, it may be a value without quotes, such as true or 3.
type Expression string

// decoder reads one document into a Go value and collects all problems. Field names come from `json` tags. `spec` tags add
// constraints: required; min= and max= (the value of numbers, the length of texts and lists, durations such as "1s"); form= (one of forms
// or, for values that are kept as raw JSON, a case of constrainValue).
type decoder struct {
	document string
	problems Problems
	// errors counts the problems that are errors.
	errors int
	// places maps each path to its node, so that later checks can report positions.
	places map[string]*node
	fields map[reflect.Type]fieldSet
	// patterns are the regular expressions in the document's schemas and fields.
	patterns pattern.Set
	// schemas are the JSON Schemas in the document.
	schemas []placedSchema
}

// fieldSet holds the rules from a struct type's tags. It is computed once per document.
type fieldSet struct {
	list   []field
	byName map[string]field
	names  []string
}

func newDecoder(document string) *decoder {
	return &decoder{document: document, places: map[string]*node{}, fields: map[reflect.Type]fieldSet{}}
}

// has reports whether the document has a value at a path.
func (d *decoder) has(path string) bool { return d.places[path] != nil }

func (d *decoder) fieldSet(t reflect.Type) fieldSet {
	if set, ok := d.fields[t]; ok {
		return set
	}
	set := fieldSet{list: fieldsOf(t), byName: map[string]field{}}
	for _, f := range set.list {
		set.byName[f.name] = f
		set.names = append(set.names, f.name)
	}
	d.fields[t] = set
	return set
}

// maxProblems limits how many problems of a document are listed.
const maxProblems = 1_000

// add reports a problem. It is an error unless the problem has another severity.
func (d *decoder) add(p Problem) {
	switch {
	case len(d.problems) > maxProblems:
		return
	case len(d.problems) == maxProblems:
		p = Problem{Line: p.Line, Column: p.Column, Code: ProblemTooMany}.saying("the document has more than %d problems", jig.Known(maxProblems))
	}
	p.Document = d.document
	if p.Severity == "" {
		p.Severity = SeverityError
	}
	if p.Severity == SeverityError {
		d.errors++
	}
	d.problems = append(d.problems, p)
}

// at reports a problem with the value at a path, at the position of that value or its nearest existing parent.
func (d *decoder) at(path string, code ProblemCode, hint, format string, args ...any) {
	if n := d.places[path]; n != nil && n.kind == kindBroken {
		return // reported when the value was read
	}
	p := Problem{Path: path, Code: code}.hinting(hint).saying(format, args...)
	for at := path; ; {
		if n, ok := d.places[at]; ok {
			p.Line, p.Column = n.line, n.column
			break
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut <= 0 {
			if n, ok := d.places[""]; ok {
				p.Line, p.Column = n.line, n.column
			}
			break
		}
		at = at[:cut]
	}
	d.add(p)
}

// into reads n into v, which must be settable.
func (d *decoder) into(n *node, path string, v reflect.Value) {
	d.places[path] = n
	if n.kind == kindBroken {
		return
	}
	switch v.Interface().(type) {
	case json.RawMessage:
		d.remember(n, path, false)
		v.SetBytes(n.json())
		return
	case Expression:
		switch n.kind {
		case kindString, kindBool, kindInt, kindFloat:
			v.SetString(n.text)
		case kindNull, kindList, kindMap, kindBroken:
			d.at(path, ProblemWrongType, "write CEL in quotes", "this must be an expression (text), not %s", jig.Known(n.kind))
		}
		return
	case Duration:
		d.duration(n, path, v)
		return
	case passes:
		if n.kind == kindInt || d.is(n, path, kindString) {
			v.SetString(n.text)
		}
		return
	case OnError:
		if d.onErrorWord(n, path, v) {
			return
		}
	}
	switch v.Kind() { //nolint:exhaustive // document types contain only these kinds
	case reflect.String:
		if d.is(n, path, kindString) {
			v.SetString(n.text)
		}
	case reflect.Bool:
		if d.is(n, path, kindBool) {
			v.SetBool(n.text == "true")
		}
	case reflect.Int, reflect.Int64:
		d.integer(n, path, v)
	case reflect.Float64:
		d.float(n, path, v)
	case reflect.Slice:
		if d.is(n, path, kindList) {
			v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
			for i, item := range n.items {
				d.into(item, indexPath(path, i), v.Index(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.into(n, path, v.Elem())
	case reflect.Struct:
		switch wanted := d.fieldSet(v.Type()).requiredTexts(); {
		case n.kind == kindString && wanted != "":
			d.at(path, ProblemWrongType, "write {"+wanted+"}", "this must be %s, not %s", jig.Known(kindMap), jig.Known(n.kind))
		case d.is(n, path, kindMap):
			d.structure(n, path, v)
		}
	default:
		panic("spec: a document type has a field of kind " + v.Kind().String())
	}
}

// onErrorWord reads the words that on_error accepts instead of a mapping.
func (d *decoder) onErrorWord(n *node, path string, v reflect.Value) bool {
	if n.kind != kindString {
		return false
	}
	switch n.text {
	case "fail":
	case "continue":
		v.Set(reflect.ValueOf(OnError{Continue: true}))
	default:
		d.at(path, ProblemBadValue, "use fail, continue or {catch: [steps]}", "%q is not a way to handle a failure", n.text)
	}
	return true
}

// requiredTexts returns the required keys of a mapping as they would be written if all their values are texts. Otherwise it returns an empty
// string.
func (s fieldSet) requiredTexts() string {
	var keys []string
	for _, f := range s.list {
		if f.required && f.kind.Kind() != reflect.String {
			return ""
		}
		if f.required {
			keys = append(keys, f.name+": …")
		}
	}
	return strings.Join(keys, ", ")
}

// remember records the places inside a value that is kept as raw JSON, and warns of words in it that YAML 1.1 takes for true or false. In the
// values of an enumeration, which are nearly always texts, they are no surprise.
func (d *decoder) remember(n *node, path string, enumerated bool) {
	d.places[path] = n
	if meant := saysYesOrNo[n.unquoted]; meant != "" && !enumerated {
		d.add(Problem{
			Path: path, Line: n.line, Column: n.column, Code: ProblemAmbiguousValue, Severity: SeverityWarning,
		}.hinting(jig.Templatef("write %s, or %q if it is text", jig.Known(meant), n.text)).
			saying("%s is the text %q here, not %s", n.text, n.text, jig.Known(meant)))
	}
	for i, item := range n.items {
		d.remember(item, indexPath(path, i), enumerated)
	}
	for _, e := range n.entries {
		d.remember(e.value, keyPath(path, e.key), e.key == "enum" || e.key == "examples")
	}
}

func (d *decoder) structure(n *node, path string, v reflect.Value) {
	fields := d.fieldSet(v.Type())
	given := map[string]bool{}
	for _, e := range n.entries {
		f, ok := fields.byName[e.key]
		if !ok && len(d.problems) <= maxProblems {
			d.add(Problem{
				Path: keyPath(path, e.key), Line: e.line, Column: e.column, Code: ProblemUnknownKey, Hint: cmp.Or(suggest.OrKnown(e.key, fields.names), "remove it"),
			}.saying("unknown key %q", jig.Known(e.key)))
		}
		if !ok {
			continue
		}
		given[e.key] = true
		before := d.errors
		d.into(e.value, keyPath(path, e.key), v.FieldByIndex(f.index))
		if d.errors == before {
			d.check(keyPath(path, e.key), v.FieldByIndex(f.index), f)
		}
	}
	for _, f := range fields.list {
		if f.required && !given[f.name] {
			d.at(keyPath(path, f.name), ProblemMissingKey, cmp.Or(f.hint, "add "+f.name+": …"), "the key %q is missing", jig.Known(f.name))
		}
	}
}

// is returns whether n has the wanted kind, and reports a problem if it does not.
func (d *decoder) is(n *node, path string, want kind) bool {
	if n.kind == want {
		return true
	}
	d.wrongType(n, path, string(want))
	return false
}

// howToWrite holds hints that show how to write a value of a kind. Other kinds need no hint.
var howToWrite = map[kind]string{
	kindList: "write [ … ], or one - for each entry", kindMap: "write { … }, or its keys on lines of their own",
	kindString: "write text", kindInt: "write a whole number", kindFloat: "write a number", kindBool: "write true or false",
}

func (d *decoder) wrongType(n *node, path, want string) {
	hint := ""
	switch {
	case n.kind == kindNull:
		hint = "give it a value, or remove the key"
	case want == string(kindString) && (n.kind == kindBool || n.kind == kindInt || n.kind == kindFloat):
		hint = jig.Templatef("quote it: %q", n.text)
	case want == string(kindList) && n.kind == kindString:
		hint = jig.Templatef("write [%s]", n.text)
	default:
		hint = howToWrite[kind(want)]
	}
	d.at(path, ProblemWrongType, hint, "this must be %s, not %s", jig.Known(want), jig.Known(n.kind))
}

func (d *decoder) integer(n *node, path string, v reflect.Value) {
	if !d.is(n, path, kindInt) {
		return
	}
	i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
	if err != nil {
		d.at(path, ProblemOutOfRange, "", "%s is too large", n.text)
		return
	}
	v.SetInt(i)
}

func (d *decoder) float(n *node, path string, v reflect.Value) {
	if n.kind != kindInt && !d.is(n, path, kindFloat) {
		return
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		d.at(path, ProblemOutOfRange, "", "%s is too large", n.text)
		return
	}
	v.SetFloat(f)
}

func (d *decoder) duration(n *node, path string, v reflect.Value) {
	const hint = `e.g. "90s", "48h" or "3d"`
	if n.kind != kindString {
		d.at(path, ProblemWrongType, hint, "this must be a duration, not %s", jig.Known(n.kind))
		return
	}
	parsed, err := duration.Parse(n.text)
	if err != nil {
		d.at(path, ProblemBadValue, hint, "%q is not a duration", n.text)
		return
	}
	v.SetInt(int64(parsed))
}
