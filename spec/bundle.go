package spec

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/canonical"
)

// The problems that reading a bundle can find in addition to those of its documents.
const (
	ProblemNoManifest ProblemCode = "NO_MANIFEST"
	ProblemNotInside  ProblemCode = "NOT_IN_BUNDLE"
)

// BundleFile is the manifest at the top of a bundle's folder.
const BundleFile = "bundle.yaml"

// bundleHead is a document of kind bundle.
type bundleHead struct {
	Kind        string   `json:"kind" spec:"required" jsonschema:"bundle."`
	Name        string   `json:"name" spec:"required,max=64,form=bundle" hint:"add e.g. name: dependency-review" jsonschema:"The bundle's name."`
	Version     string   `json:"version" spec:"required,max=96,form=semver" hint:"add e.g. version: 1.0.0" jsonschema:"The bundle's version, MAJOR.MINOR.PATCH (semver.org)."`
	Title       string   `json:"title,omitempty" spec:"max=128" jsonschema:"What people call it."`
	Description string   `json:"description,omitempty" spec:"max=4096" jsonschema:"What it contains, and for whom."`
	Requires    []string `json:"requires,omitempty" spec:"max=50,form=bundle" jsonschema:"The bundles that must be installed before it."`
}

// Bundle is a parsed bundle: its manifest and its documents.
type Bundle struct {
	Manifest bundle.Manifest
	// Documents are all documents except the manifest, in the order in which they were read.
	Documents []Document
	// Hash identifies the content of the bundle: it covers the manifest's version and the kind, name and version of each document.
	Hash string
}

func (d *decoder) bundle(h bundleHead, _ source) bundle.Manifest {
	d.distinct("requires", h.Requires)
	for i, name := range h.Requires {
		if name == h.Name && name != "" {
			d.at(indexPath("requires", i), ProblemCycle, "remove it", "the bundle requires itself")
		}
	}
	return bundle.Manifest{Name: h.Name, Version: h.Version, Title: h.Title, Description: h.Description, Requires: h.Requires}
}

// LoadBundle reads the bundle in a folder of a file system: its bundle.yaml and every document below the folder. A root of "." means the
// whole file system. LoadBundle finds the documents and writes their paths as [LoadFS] does. The bundle is usable only if no problem is an
// error.
func LoadBundle(fsys fs.FS, root string) (Bundle, Problems) {
	docs, problems := LoadFS(fsys, root)
	top := path.Join(root, BundleFile)
	if i := slices.IndexFunc(docs, func(doc Document) bool { return doc.Path == top }); i < 0 || docs[i].Bundle() == nil {
		problems = append(problems, noManifest(top))
		problems.Sort()
		return Bundle{Documents: docs}, problems
	}
	b, found := bundleOf(docs, func(doc *Document) bool { return doc.Path == top })
	problems = append(problems, found...)
	problems.Sort()
	return b, problems
}

// BundleOf makes a bundle from parsed documents, exactly one of which must be of kind bundle. It does not repeat problems that were reported
// when the documents were read.
func BundleOf(docs []Document) (Bundle, Problems) {
	if !slices.ContainsFunc(docs, func(doc Document) bool { return doc.Bundle() != nil }) {
		return Bundle{Documents: docs}, Problems{noManifest(BundleFile)}
	}
	first := true
	return bundleOf(docs, func(doc *Document) bool {
		is := doc.Bundle() != nil && first
		first = first && !is
		return is
	})
}

func noManifest(file string) Problem {
	return Problem{
		Document: file, Code: ProblemNoManifest, Severity: SeverityError, Message: "this is not a bundle: " + BundleFile + " is missing at the top of the folder, or is not of kind bundle",
		Hint: "add " + BundleFile + " with kind: bundle, a name, and a version such as 1.0.0",
	}
}

// bundleOf makes a bundle from documents, one of which is the manifest.
func bundleOf(docs []Document, isManifest func(*Document) bool) (Bundle, Problems) {
	var b Bundle
	var manifest *Document
	var problems Problems
	for i := range docs {
		if doc := &docs[i]; manifest == nil && isManifest(doc) {
			manifest = doc
			b.Manifest = *doc.Bundle()
		}
	}
	report := func(doc *Document, key, hint, format string, args ...any) {
		problems = append(problems, problemAt(doc, (*place)(nil).key(key), ProblemNotInside, hint, format, args...))
	}
	for i := range docs {
		doc := &docs[i]
		if doc == manifest {
			continue
		}
		if no := doc.Kind.row().unbundled; no.why != "" {
			report(doc, "kind", fmt.Sprintf(no.hint, doc.Path, manifest.Path), "%s", no.why)
		}
		if name := doc.bundle(); name != "" && !manifest.broken && name != b.Manifest.Name && !slices.Contains(b.Manifest.Requires, name) {
			report(doc, "bundle", "write bundle: "+b.Manifest.Name+", or add "+name+" to requires of "+manifest.Path,
				"the tool belongs to the bundle %q, which this bundle does not require", name)
		}
		if doc.Bundle() == nil {
			b.Documents = append(b.Documents, *doc)
		}
	}
	if len(b.Documents) == 0 {
		report(manifest, "name", "put documents into the folder, next to "+BundleFile+" or below it", "the bundle has no documents")
	}
	b.Hash = bundleHash(*manifest, b.Documents)
	problems.Sort()
	return b, problems
}

// bundle returns the bundle that an execution spec belongs to; "" if it says none.
func (d Document) bundle() string {
	x := d.Execution()
	if x == nil || x.Kind.execution().bundle == nil {
		return ""
	}
	return x.Kind.execution().bundle(*x)
}

// bundleHash returns the hash of a bundle: the SHA-256 of the RFC 8785 JSON of {"documents": [{"kind", "name", "version"}, …], "manifest":
// the manifest's version}. The documents are sorted by kind and name.
func bundleHash(manifest Document, docs []Document) string {
	list := make([]bundle.DocumentVersion, len(docs))
	for i, doc := range docs {
		list[i] = bundle.DocumentVersion{Kind: string(doc.Kind), Name: doc.Name, Version: doc.Version}
	}
	slices.SortFunc(list, func(a, b bundle.DocumentVersion) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	hash, err := canonical.Hash(map[string]any{"documents": list, "manifest": manifest.Version})
	if err != nil {
		panic("spec: cannot put a bundle into canonical form: " + err.Error()) // only texts
	}
	return hash
}

func explainBundle(doc Document, beside []Document, _ []jig.Tool) (text, diagram string) {
	folder := path.Dir(filepath.ToSlash(doc.Path)) + "/"
	inside := slices.DeleteFunc(slices.Clone(beside), func(doc Document) bool {
		return folder != "./" && !strings.HasPrefix(filepath.ToSlash(doc.Path), folder)
	})
	return ExplainBundle(*doc.Bundle(), inside), ""
}

// ExplainBundle returns a short text for a terminal: what the bundle is, which bundles it requires, and which documents it contains, by
// kind.
func ExplainBundle(m bundle.Manifest, docs []Document) string {
	o := &outline{}
	o.line(0, "bundle %s%s", m.Name, versionText(m.Version))
	if m.Title != "" {
		o.line(0, "%s", m.Title)
	}
	if m.Description != "" {
		o.line(0, "%s", m.Description)
	}
	if len(m.Requires) > 0 {
		o.line(0, "it needs the bundles %s", strings.Join(m.Requires, ", "))
	}
	byKind := map[Kind][]string{}
	for i := range docs {
		if docs[i].Bundle() == nil {
			byKind[docs[i].Kind] = append(byKind[docs[i].Kind], docs[i].Name)
		}
	}
	if len(byKind) == 0 {
		return o.b.String()
	}
	o.b.WriteByte('\n')
	o.line(0, "it contains:")
	for _, kind := range Kinds() {
		if names := byKind[kind]; len(names) > 0 {
			slices.Sort(names)
			o.line(1, "%s: %s", pluralKind(kind, len(names)), strings.Join(names, ", "))
		}
	}
	return o.b.String()
}

func pluralKind(k Kind, n int) string {
	if n == 1 {
		return "1 " + k.Words()
	}
	return fmt.Sprintf("%d %s", n, cmp.Or(k.row().plural, k.Words()+"s"))
}
