// Package deps contains the tools that the bundle dependency-review needs: deps.list, deps.license and deps.inspect. They report the modules
// that a Go module requires, their licenses and other known facts. The package reads go.mod files in the working directory and the module
// cache, never the network.
package deps

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools"
)

// Options are the settings of the family.
type Options struct {
	// Dirs are the working directories.
	Dirs workdir.Dirs
	// ModCache is the Go module cache. Default: GOMODCACHE, else the output of `go env GOMODCACHE`, else pkg/mod in GOPATH, else go/pkg/mod
	// in the home folder.
	ModCache string
}

// Tools returns the family.
func Tools(options Options) []tools.Tool {
	f := &family{dirs: options.Dirs, cache: cache{set: options.ModCache}, forms: newForms()}
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: "deps.list",
			Description: "Lists the modules that a Go module requires, from its go.mod. Use it to find out what a project depends on; it does not " +
				"look for licences (deps.license does) nor for newer versions. Returns the module, its Go version and each required module with version and " +
				"whether it is indirect, sorted by path. A module replaced by another appears as that one; one replaced by a local folder has version \"\".",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Execution: jig.ExecutionLocal, Timeout: 10 * time.Second,
			Tags: []string{"go", "dependencies"},
		}, f.list),
		tools.New(jig.Tool{
			Name: "deps.license",
			Description: "Names the licences of one version of a Go module, from the licence files in the module cache. Use it for each module that " +
				"deps.list gave; it does not read the network and says NOT_FOUND for a module that was not downloaded. Returns each SPDX id with its file and how " +
				"much of the file it covers (percent), and the strictest risk: low (permissive), medium (weak copyleft), high (strong copyleft), unknown.",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Tags: []string{"go", "dependencies", "licences"},
			Timeout: 2 * time.Minute, // the first call compiles the patterns of all licenses: 2 s, far more on a busy machine
		}, f.license),
		tools.New(jig.Tool{
			Name: "deps.inspect",
			Description: "Tells what the module cache knows of one version of a Go module: licences and risk as deps.license gives them, when it was published, " +
				"how many newer releases are known, its size, whether its authors retracted it or gave the module up, and, with main, whether a go.mod requires it " +
				"directly. Use it to judge a dependency. It does not read the network: what is known may be old, and what is not known is named in missing and never guessed. " +
				"NOT_FOUND for a module that was not downloaded.",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Tags: []string{"go", "dependencies"},
			Timeout: 2 * time.Minute, // as for deps.license
		}, f.inspect),
	}
}

// family holds what the tools share.
type family struct {
	dirs  workdir.Dirs
	cache cache
	forms forms
}
