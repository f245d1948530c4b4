// Package bundles holds the bundles that ship with the product: agents, entity types, thin tools, compositions, prompts, skills and
// policies. They are data, embedded in the worker, which installs them for the default tenant. The package knows how to
// read its own files and nothing of where they are kept.
package bundles

import (
	"embed"
	"io/fs"
	"path"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

//go:embed consulting dependency-review examples
var files embed.FS

// Document is a document of a bundle, with its kind, name and version; its path begins with the bundle's name.
type Document = spec.Document

// Bundles returns all bundles in the order of their names: each folder with a bundle.yaml is one. It fails when one of them is not
// in order, which a test keeps from happening.
func Bundles() ([]spec.Bundle, error) {
	manifests, err := fs.Glob(files, "*/"+spec.BundleFile)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "listing the bundles: %w", err)
	}
	list := make([]spec.Bundle, 0, len(manifests))
	var all spec.Problems
	for _, manifest := range manifests {
		b, problems := spec.LoadBundle(files, path.Dir(manifest))
		list, all = append(list, b), append(all, problems...)
	}
	return list, all.OrNil()
}

// Documents returns the documents of all bundles but their manifests, in the order of their paths. It fails as Bundles does.
func Documents() ([]Document, error) {
	list, err := Bundles()
	var docs []Document
	for _, b := range list {
		docs = append(docs, b.Documents...)
	}
	return docs, err
}
