package selfcheck

// maxDepth bounds how deep ids in a body are looked for.
const maxDepth = 6

// memberKind returns the kind of the id that a member of an object takes; empty if it takes none. A name beside a kind is that of a document.
func (r *run) memberKind(object map[string]Schema, name string) string {
	if _, typed := object["kind"]; typed && name == "name" {
		return "document"
	}
	if r.document.TypeOf(object[name]) != "string" {
		return ""
	}
	return r.kindOf(name)
}

// kindsIn returns the kinds of the ids that values of a schema take, however deep.
func (r *run) kindsIn(s Schema, depth int) map[string]bool {
	all := map[string]bool{}
	if depth > maxDepth {
		return all
	}
	object := r.document.Properties(s)
	for name, property := range object {
		if kind := r.memberKind(object, name); kind != "" {
			all[kind] = true
		}
		for kind := range r.kindsIn(property, depth+1) {
			all[kind] = true
		}
	}
	if items := member(r.document.resolve(s)["items"]); items != nil {
		for kind := range r.kindsIn(items, depth+1) {
			all[kind] = true
		}
	}
	return all
}

// fill writes ids into a value that fits a schema, and adds the optional parts that take an id of the kind about.
func (r *run) fill(s Schema, value any, about string, id func(kind string) string) any {
	if items := member(r.document.resolve(s)["items"]); items != nil {
		list, ok := value.([]any)
		if !ok {
			return value
		}
		if len(list) == 0 && r.kindsIn(items, 0)[about] {
			list = []any{r.document.Sample(items)}
		}
		for i := range list {
			list[i] = r.fill(items, list[i], about, id)
		}
		return list
	}
	into, ok := value.(map[string]any)
	if !ok {
		return value
	}
	object := r.document.Properties(s)
	for name, property := range object {
		kind := r.memberKind(object, name)
		switch {
		case kind != "":
			into[name] = id(kind)
			if name == "name" {
				into["kind"] = r.kindOfDocuments()
			}
		case into[name] != nil:
			into[name] = r.fill(property, into[name], about, id)
		case r.kindsIn(property, 0)[about]:
			into[name] = r.fill(property, r.document.Sample(property), about, id)
		}
	}
	return into
}

// kindOfDocuments returns the kind of the documents that requests name.
func (r *run) kindOfDocuments() any {
	for _, op := range r.document.Operations() {
		for _, p := range op.Parameters {
			if p.In == "path" && p.Name == "kind" {
				return r.document.Sample(p.Schema)
			}
		}
	}
	return ""
}
