package deps_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools/tooltest"
)

type object = map[string]any

type listed struct {
	Module, Go string
	Modules    []struct {
		Path, Version string
		Indirect      bool
	}
}

type licensed struct {
	Module, Version, Risk string
	Licenses              []struct {
		SPDX, File string
		Coverage   float64
	}
}

func TestList_ReadsTheModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("app/go.mod", `module example.com/app

go 1.25

require (
	example.com/z v1.0.0
	example.com/a v1.2.3 // indirect
	example.com/local v0.0.0
	example.com/fork v1.0.0
	example.com/exact v1.0.0
)

replace example.com/local => ../local

replace example.com/fork => example.com/better v1.1.0

replace example.com/exact v1.0.0 => example.com/exact v1.0.1

replace example.com/exact => example.com/other v9.0.0

replace example.com/z v0.9.0 => example.com/old v0.9.1
`)
	write("bad/go.mod", "module \"x")
	write("none/go.mod", "go 1.25\n")
	write("go.work", "go 1.25\n")
	kit := tooltest.New(t, deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: dir}})...)
	for _, path := range []string{"app", "app/go.mod", filepath.Join(dir, "app", "go.mod")} {
		got := kit.Succeed("deps.list", object{"path": path}, nil)
		require.JSONEq(t, `{"module":"example.com/app","go":"1.25","modules":[
			{"path":"example.com/a","version":"v1.2.3","indirect":true},
			{"path":"example.com/better","version":"v1.1.0","indirect":false},
			{"path":"example.com/exact","version":"v1.0.1","indirect":false},
			{"path":"example.com/local","version":"","indirect":false},
			{"path":"example.com/z","version":"v1.0.0","indirect":false}]}`, string(got.Data))
		require.Equal(t, "example.com/app requires 5 modules, 4 of them directly", got.Summary)
	}
	for path, want := range map[string]jig.Error{
		".": {Code: jig.CodeNotFound}, "ap": {Code: jig.CodeNotFound}, "../x": {Code: jig.CodeNotPermitted, Reason: "outside_workdir"},
		"bad": {Code: jig.CodeInvalidInput, Reason: "invalid_go_mod"}, "none": {Code: jig.CodeInvalidInput, Reason: "invalid_go_mod"},
	} {
		e := kit.Fail("deps.list", object{"path": path})
		require.Equal(t, want.Code, e.Code, path)
		require.Equal(t, want.Reason, e.Reason, path)
	}
}

func TestList_RunsLocally(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, deps.Tools(deps.Options{})...)
	tool, ok := kit.Registry.Tool("deps.list")
	require.True(t, ok)
	require.Equal(t, jig.ExecutionLocal, tool.Execution)
}

// expected lists the licenses of this repository's direct dependencies, as a person read them in the license files.
const expected = `{
	"cel.dev/expr": "Apache-2.0",
	"charm.land/huh/v2": "MIT", "charm.land/lipgloss/v2": "MIT", "code.dny.dev/ssrf": "MIT",
	"github.com/aymanbagabas/go-udiff": "BSD-3-Clause MIT",
	"github.com/compose-spec/compose-go/v2": "Apache-2.0", "go.temporal.io/api": "MIT", "golang.org/x/net": "BSD-3-Clause", "golang.org/x/oauth2": "BSD-3-Clause",
	"golang.org/x/text": "BSD-3-Clause", "github.com/coreos/go-oidc/v3": "Apache-2.0",
	"github.com/danielgtaylor/huma/v2": "MIT", "github.com/golang-jwt/jwt/v5": "MIT", "github.com/google/cel-go": "Apache-2.0 BSD-3-Clause", "github.com/google/jsonschema-go": "MIT",
	"github.com/google/licensecheck": "BSD-3-Clause", "github.com/gowebpki/jcs": "Apache-2.0", "github.com/jackc/pgx/v5": "MIT",
	"github.com/microcosm-cc/bluemonday": "BSD-3-Clause", "github.com/modelcontextprotocol/go-sdk": "Apache-2.0 MIT CC-BY-4.0",
	"github.com/pressly/goose/v3": "MIT", "github.com/tmaxmax/go-sse": "MIT",
	"github.com/prometheus/client_golang": "Apache-2.0",
	"github.com/santhosh-tekuri/jsonschema/v6": "Apache-2.0", "github.com/spf13/cobra": "Apache-2.0",
	"github.com/standard-webhooks/standard-webhooks/libraries": "MIT", "github.com/stretchr/testify": "MIT",
		"github.com/wI2L/jsondiff":                             "MIT",
	"github.com/emersion/go-sasl": "MIT", "github.com/emersion/go-smtp": "MIT", "github.com/wneessen/go-mail": "MIT",
	"github.com/yuin/goldmark": "MIT", "github.com/zalando/go-keyring": "MIT", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp": "Apache-2.0 BSD-3-Clause",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc": "Apache-2.0 BSD-3-Clause", "go.opentelemetry.io/otel/exporters/prometheus": "Apache-2.0 BSD-3-Clause",
	"go.opentelemetry.io/otel": "Apache-2.0 BSD-3-Clause", "go.opentelemetry.io/otel/trace": "Apache-2.0 BSD-3-Clause",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": "Apache-2.0 BSD-3-Clause", "go.opentelemetry.io/proto/otlp": "Apache-2.0",
	"go.opentelemetry.io/otel/sdk": "Apache-2.0 BSD-3-Clause", "go.opentelemetry.io/otel/sdk/metric": "Apache-2.0 BSD-3-Clause", "go.temporal.io/sdk": "MIT",
	"go.temporal.io/sdk/contrib/envconfig": "MIT", "go.temporal.io/sdk/contrib/opentelemetry": "MIT", "go.yaml.in/yaml/v4": "Apache-2.0 MIT",
	"golang.org/x/mod": "BSD-3-Clause", "golang.org/x/term": "BSD-3-Clause", "golang.org/x/time": "BSD-3-Clause",
	"google.golang.org/protobuf": "BSD-3-Clause"
}`

func TestLicense_OfThisRepository(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: filepath.Join("..", "..")}})...)
	var want map[string]string
	require.NoError(t, json.Unmarshal([]byte(expected), &want))
	var list listed
	kit.Succeed("deps.list", object{"path": "go.mod"}, &list)
	got := map[string]string{}
	for _, m := range list.Modules {
		if m.Indirect && want[m.Path] == "" {
			continue
		}
		var one licensed
		kit.Succeed("deps.license", object{"module": m.Path, "version": m.Version}, &one)
		require.Equal(t, "low", one.Risk, m.Path)
		var names []string
		for _, l := range one.Licenses {
			names = append(names, l.SPDX)
			require.NotEmpty(t, l.File)
			require.Positive(t, l.Coverage)
		}
		got[m.Path] = strings.Join(names, " ")
	}
	for path := range want { // dependencies that are no longer used do not matter
		if _, listed := got[path]; !listed {
			delete(want, path)
		}
	}
	require.Equal(t, want, got)
}

// cacheWith returns a kit with a new module cache that contains one module with the files.
func cacheWith(t *testing.T, folder string, files map[string]string) *tooltest.Kit {
	t.Helper()
	cache := t.TempDir()
	at := filepath.Join(cache, folder)
	require.NoError(t, os.MkdirAll(at, 0o755))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(content), 0o600))
	}
	return tooltest.New(t, deps.Tools(deps.Options{ModCache: cache})...)
}

// text returns the text of a license file in this machine's module cache.
func text(t *testing.T, path ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(append([]string{strings.TrimSpace(string(out))}, path...)...))
	require.NoError(t, err)
	return string(b)
}

func TestLicense_RecognizesFiles(t *testing.T) {
	t.Parallel()
	mit := text(t, "github.com/google/jsonschema-go@v0.4.3", "LICENSE")
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"one":        {map[string]string{"LICENSE": mit, "main.go": "package main"}, "MIT@LICENSE low"},
		"british":    {map[string]string{"LICENCE.txt": mit}, "MIT@LICENCE.txt low"},
		"copying":    {map[string]string{"COPYING": mit}, "MIT@COPYING low"},
		"by name":    {map[string]string{"MIT-LICENSE.md": mit}, "MIT@MIT-LICENSE.md low"},
		"two":        {map[string]string{"LICENSE-MIT": mit, "LICENSE-OTHER": "Do as you please on Mondays."}, "MIT@LICENSE-MIT UNKNOWN@LICENSE-OTHER unknown"},
		"notice":     {map[string]string{"LICENSE": mit, "NOTICE": "Parts: https://www.gnu.org/licenses/gpl-3.0-standalone.html"}, "MIT@LICENSE GPL-3.0@NOTICE high"},
		"OSI page":   {map[string]string{"LICENSE": "https://opensource.org/license/mit"}, "MIT@LICENSE low"},
		"none":       {map[string]string{"README": mit, "license.go": mit}, " unknown"},
		"no licence": {map[string]string{"NOTICE": "Copyright Ana"}, " unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got licensed
			cacheWith(t, "example.com/!up!case@v1.0.0", tc.files).
				Succeed("deps.license", object{"module": "example.com/UpCase", "version": "v1.0.0"}, &got)
			var list []string
			for _, l := range got.Licenses {
				list = append(list, l.SPDX+"@"+l.File)
			}
			require.Equal(t, tc.want, strings.Join(list, " ")+" "+got.Risk)
		})
	}
}

func TestLicense_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	kit := cacheWith(t, "example.com/a@v1.0.0", nil)
	tests := map[string]struct {
		module, version string
		code            jig.Code
		field, reason   string
	}{
		"not there":       {"example.com/b", "v1.0.0", jig.CodeNotFound, "/module", "not_in_module_cache"},
		"other version":   {"example.com/a", "v1.0.1", jig.CodeNotFound, "/module", "not_in_module_cache"},
		"local folder":    {"example.com/a", "", jig.CodeInvalidInput, "/version", "local_replacement"},
		"not a version":   {"example.com/a", "latest", jig.CodeInvalidInput, "/version", ""},
		"path as module":  {"../../etc", "v1.0.0", jig.CodeInvalidInput, "/module", ""},
		"path in version": {"example.com/a", "v1.0.0/../..", jig.CodeInvalidInput, "/version", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := kit.Fail("deps.license", object{"module": tc.module, "version": tc.version})
			require.Equal(t, tc.code, e.Code)
			require.Equal(t, tc.field, e.Field)
			require.Equal(t, tc.reason, e.Reason)
		})
	}
	require.Equal(t, "run `go mod download`", kit.Fail("deps.license", object{"module": "example.com/b", "version": "v1.0.0"}).Hint)
}
