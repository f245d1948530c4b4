package selfcheck

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// place is a part of a request that names something of a tenant.
type place struct {
	// in and at are those of a [Text].
	in, at string
	// kind is the kind of the named thing.
	kind string
	// by is the parameter or the member beside it that holds the kind; empty if the kind is always the same.
	by string
}

// places lists the places of an operation, in headers too. One that names things of several kinds is there once for each.
func (d *Document) places(op *Operation) []place {
	var list []place
	for _, p := range op.Parameters {
		if kind := text(p.Schema["x-names"]); p.In == "header" && kind != "" {
			list = append(list, place{in: p.In, at: p.Name, kind: kind})
		}
	}
	texts := d.Texts(op)
	for _, one := range texts {
		kind := text(one.Schema["x-names"])
		by, other := strings.CutPrefix(strings.TrimSuffix(kind, "}"), "{")
		if !other {
			if kind != "" {
				list = append(list, place{in: one.In, at: one.At, kind: kind})
			}
			continue
		}
		beside := slices.IndexFunc(texts, func(t Text) bool { return t.In == one.In && t.At == one.beside(by) })
		if beside < 0 {
			continue
		}
		kinds, _ := texts[beside].Schema["enum"].([]any) //nolint:errcheck // without an enumeration there are no kinds
		for _, kind := range kinds {
			list = append(list, place{one.In, one.At, text(kind), by})
		}
	}
	return list
}

// prepared is a request without its credential.
type prepared struct {
	method, path string
	headers      http.Header
	body         any
}

// draft is a request that is being built.
type draft struct {
	*Document

	places []place
	// target is a place that the request contains even if it is optional. Other places are filled in only if they are required.
	target place
	// id returns the id to use for a place.
	id func(place) string
}

// request returns a small valid request of an operation.
func (d *Document) request(op *Operation, target place, id func(place) string) prepared {
	w := draft{d, d.places(op), target, id}
	path, query, headers := op.Path, url.Values{}, http.Header{}
	for _, p := range op.Parameters {
		value := fmt.Sprint(d.Sample(p.Schema))
		switch here, named := w.place(p.In, p.Name); {
		case named:
			value = id(here)
		case p.In == target.in && p.Name == target.by:
			value = target.kind
		}
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && (p.Required || target.in == p.In && target.at == p.Name):
			query.Set(p.Name, value)
		case p.In == "header" && target.in == p.In && target.at == p.Name: // it is an entity tag
			headers.Set(p.Name, `"`+value+`"`)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request := prepared{method: op.Method, path: path, headers: headers}
	if schema := d.BodySchema(op); schema != nil {
		request.body = w.fill(schema, d.Sample(schema), "")
	}
	return request
}

// place returns what a parameter or a member names in the request. named reports whether it names anything.
func (w draft) place(in, at string) (here place, named bool) {
	if w.target.in == in && w.target.at == at {
		return w.target, true
	}
	i := slices.IndexFunc(w.places, func(p place) bool { return p.in == in && p.at == at })
	if i < 0 {
		return here, false
	}
	return w.places[i], true
}

// fill writes ids into a value that fits a schema, and adds the optional parts that the target is in.
func (w draft) fill(s Schema, value any, at string) any {
	switch value := value.(type) {
	case []any:
		items := member(w.resolve(s)["items"])
		if len(value) == 0 && w.target.within(at+"[]") {
			value = []any{w.Sample(items)}
		}
		for i := range value {
			value[i] = w.fill(items, value[i], at+"[]")
		}
		return value
	case map[string]any:
		kinds := map[string]any{}
		for name, property := range w.Properties(s) {
			below := at + "." + name
			if value[name] == nil && w.target.within(below) {
				value[name] = w.Sample(property)
			}
			if value[name] == nil {
				continue
			}
			here, named := w.place("body", below)
			if !named {
				value[name] = w.fill(property, value[name], below)
				continue
			}
			value[name] = w.id(here)
			if here.by != "" {
				kinds[here.by] = here.kind
			}
		}
		maps.Copy(value, kinds)
		return value
	}
	return value
}

// within reports whether the place is at or below a member of the body.
func (p place) within(at string) bool {
	rest, found := strings.CutPrefix(p.at, at)
	return p.in == "body" && found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
