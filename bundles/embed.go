// Package bundles holds the bundles that ship with jig: agents, entity types, thin tools, compositions, prompts, skills and policies. They
// are embedded as data in the worker, which installs them for the default tenant. The package only reads its own files; it
// does not store them. Its subpackage deps implements the tools of the bundle dependency-review.
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

// Bundles returns all bundles, sorted by name. Every folder with a bundle.yaml is a bundle. It returns an error if a bundle has problems,
// which a test rules out.
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
