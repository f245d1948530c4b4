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

// Options are the settings of the tools.
type Options struct {
	// Dirs are the working directories.
	Dirs workdir.Dirs
	// ModCache is the Go module cache. Default: GOMODCACHE, else the output of `go env GOMODCACHE`, else pkg/mod in GOPATH, else go/pkg/mod
	// in the home folder.
	ModCache string
}

// Tools returns deps.list, deps.license and deps.inspect.
func Tools(options Options) []tools.Tool {
	outside := &jig.Labels{Reads: []string{jig.ReadsUntrusted}} // the authors of modules write what these tools read
	f := &family{dirs: options.Dirs, cache: cache{set: options.ModCache}, forms: newForms()}
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: "deps.list",
			Description: "Lists the modules that a Go module requires, from its go.mod. Use it to find out what a project depends on; it does not " +
				"look for licenses (deps.license does) or newer versions. Returns the module, its Go version and, sorted by path, each required module with " +
				"its version and whether it is indirect. If another module replaces a module, that one is listed; if a local folder does, the version is \"\".",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Execution: jig.ExecutionLocal, Timeout: 10 * time.Second,
			Tags: []string{"go", "dependencies"}, Labels: outside,
		}, f.list),
		tools.New(jig.Tool{
			Name: "deps.license",
			Description: "Finds the licenses of one version of a Go module in the license files of the module cache. Use it for each module that " +
				"deps.list returned; it does not use the network and returns NOT_FOUND for a module that was not downloaded. Returns each SPDX id with its file and " +
				"how much of the file it covers (percent), and the strictest risk: low (permissive), medium (weak copyleft), high (strong copyleft), unknown.",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Tags: []string{"go", "dependencies", "licences"}, Labels: outside,
			Timeout: 2 * time.Minute, // the first call compiles the patterns of all licenses: 2 s, far more on a busy machine
		}, f.license),
		tools.New(jig.Tool{
			Name: "deps.inspect",
			Description: "Reports what the module cache contains about one version of a Go module: its licenses and risk as in deps.license, when it was published, " +
				"how many newer releases are known, its size, whether its authors retracted or deprecated it, and, with main, whether a go.mod requires it " +
				"directly. Use it to judge a dependency. It does not use the network: facts may be old, and unknown facts are listed in missing, never guessed. " +
				"Returns NOT_FOUND for a module that was not downloaded.",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Tags: []string{"go", "dependencies"}, Labels: outside,
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
