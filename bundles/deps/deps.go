// Package deps contains the tools that the bundle dependency-review needs: deps.list, deps.license and deps.inspect. They report the modules
// that a Go module requires, their licenses and other known facts. The package reads go.mod files in the working directory and the module
// cache, never the network.
//
// deps.list reads a go.mod file. deps.license and deps.inspect look for a module in the cache (download.go): its license is compared with known
// texts, and what cannot be recognized is reported as unknown. All of them only read, and their results are untrusted, because the authors of
// modules wrote the files.
//
// Begin with [Tools]. This is an example of Go tools that belong to a bundle: tenants without the bundle do not see them.
package deps

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// cache locates the Go module cache, once.
type cache struct {
	set  string
	mu   sync.Mutex
	path string
}

func (c *cache) folder(ctx context.Context) (string, error) {
	if c.set != "" {
		return c.set, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		c.path = cmp.Or(os.Getenv("GOMODCACHE"), goEnv(ctx), underPath())
	}
	if c.path == "" {
		return "", jig.Errorf(jig.CodeUnavailable, "the Go module cache cannot be found").WithHint("set GOMODCACHE in the worker's environment")
	}
	return c.path, nil
}

// goEnv asks the go command, which also reads its own settings file; "" if there is no go command.
func goEnv(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func underPath() string {
	if list := filepath.SplitList(os.Getenv("GOPATH")); len(list) > 0 && list[0] != "" {
		return filepath.Join(list[0], "pkg", "mod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "go", "pkg", "mod")
}

// The risk classes.
const (
	riskLow     = "low"
	riskMedium  = "medium"
	riskUnknown = "unknown"
	riskHigh    = "high"
)

// The SPDX ids of each class, by prefix; the longest matching prefix decides. A license that matches none is unknown, and a person has to
// look.
const (
	// permissive licenses require notices at most.
	permissive = "MIT Apache- BSD- ISC 0BSD Unlicense CC0- Zlib zlib- BSL-1.0 PostgreSQL PSF- Python- CNRI- X11 NCSA BlueOak- UPL- Unicode- " +
		"Libpng libpng- FTL curl W3C bzip2- NTP ICU HPND AFL- ECL- OpenSSL ZPL- OLDAP- Beerware MulanPSL- PHP- Info-ZIP IJG CC-BY- CC-PDDC " +
		"PDDL- TCL Fair blessing SMLNJ Spencer- Qhull CDLA-Permissive- WTFPL SSH- eGenix Xnet XFree86- MirOS"
	// weakCopyleft licenses require that changes to the code itself are shared.
	weakCopyleft = "LGPL MPL- EPL- CDDL- CPL- IPL- APSL- MS-RL CECILL-C ErlPL- SISSL NPL- SPL- CC-BY-SA- CDLA-Sharing- ODbL- Artistic- ClArtistic"
	// strongCopyleft licenses require that the whole program is shared, or restrict who may use it and for what.
	strongCopyleft = "GPL- AGPL- SSPL- OSL- NPOSL- EUPL- CECILL- CPAL- RPL- Sleepycat copyleft-next- QPL- Parity- GFDL- CAL- BSD-Protection " +
		"CC-BY-NC- CC-BY-ND- PolyForm- Prosperity- CommonsClause Hippocratic- Aladdin Anti996 ADSL"
)

// riskOf returns the risk class of a license, given its SPDX id.
func riskOf(spdx string) string {
	risk, longest := riskUnknown, 0
	for class, list := range map[string]string{riskLow: permissive, riskMedium: weakCopyleft, riskHigh: strongCopyleft} {
		for beginning := range strings.FieldsSeq(list) {
			if strings.HasPrefix(spdx, beginning) && len(beginning) > longest {
				risk, longest = class, len(beginning)
			}
		}
	}
	return risk
}

// strictness orders the classes. An unknown license ranks below high, because it is not known to carry a high risk.
func strictness(risk string) int {
	switch risk {
	case riskLow:
		return 0
	case riskMedium:
		return 1
	case riskHigh:
		return 3
	}
	return 2
}
