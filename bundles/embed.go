// Package bundles holds the bundles that ship with the product: agents, compositions, prompts, skills and, later, entity types
// and policies.
// They are data, embedded in the worker, which stores them for the tenant that everybody reads. The package knows how to
// read its own files and nothing of where they are kept.
package bundles

import (
	"embed"

	"github.com/jig-run/jig/spec"
)

//go:embed dependency-review examples
var files embed.FS

// Document is a document of a bundle, with its kind, name and version; its path begins with the bundle's name.
type Document = spec.Document

// Documents returns the documents of all bundles, in the order of their paths. It fails when one of them is not in order,
// which a test keeps from happening.
func Documents() ([]Document, error) {
	docs, problems := spec.LoadFS(files, ".")
	return docs, problems.OrNil()
}
