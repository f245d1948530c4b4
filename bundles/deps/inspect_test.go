package deps_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools/tooltest"
)

type inspected struct {
	Module, Version, Risk, Deprecated string
	PublishedAt                       string `json:"published_at"`
	AgeDays                           *int   `json:"age_days"`
	LatestKnown                       string `json:"latest_known"`
	VersionsBehind                    *int   `json:"versions_behind"`
	SizeBytes                         *int64 `json:"size_bytes"`
	Files                             *int
	Direct                            *bool
	Retracted                         *struct{ Rationale string }
	ModOf                             string `json:"mod_of"`
	Known, Missing                    []string
	Licenses                          []struct{ SPDX string }
}

// modules is a fake module cache with a working directory.
type modules struct {
	t          *testing.T
	cache, dir string
}

func newModules(t *testing.T) modules {
	t.Helper()
	return modules{t: t, cache: t.TempDir(), dir: t.TempDir()}
}

func (s modules) write(path, content string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(s.t, os.WriteFile(path, []byte(content), 0o600))
}

// kept writes a file to the download folder of example.com/m.
func (s modules) kept(name, content string) {
	s.t.Helper()
	s.write(filepath.Join(s.cache, "cache", "download", "example.com", "m", "@v", name), content)
}

func (s modules) unpacked(version, file, content string) {
	s.t.Helper()
	s.write(filepath.Join(s.cache, "example.com", "m@"+version, file), content)
}

func (s modules) kit() *tooltest.Kit {
	s.t.Helper()
	return tooltest.New(s.t, deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: s.dir}, ModCache: s.cache})...)
}

func (s modules) inspect(version string, more object) (got inspected) {
	s.t.Helper()
	in := object{"module": "example.com/m", "version": version}
	for k, v := range more {
		in[k] = v
	}
	s.kit().Succeed("deps.inspect", in, &got)
	return got
}

// zipped returns an archive with files of the given sizes.
func zipped(t *testing.T, sizes ...int) string {
	t.Helper()
	var b strings.Builder
	w := zip.NewWriter(&b)
	for i, size := range sizes {
		f, err := w.Create("example.com/m@v1.0.0/f" + string(rune('a'+i)))
		require.NoError(t, err)
		_, err = f.Write([]byte(strings.Repeat("x", size)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func TestInspect_FindsEveryFact(t *testing.T) {
	t.Parallel()
	s := newModules(t)
	mit := text(t, "github.com/google/jsonschema-go@v0.4.3", "LICENSE")
	s.unpacked("v1.1.0", "LICENSE", mit)
	s.kept("list", "v1.1.0\nv1.0.0\nv1.2.0\nv1.3.0-rc.1\nv1.2.1\n")
	s.kept("v1.1.0.info", `{"Version":"v1.1.0","Time":"2024-03-01T12:00:00Z"}`)
	s.kept("v1.1.0.zip", zipped(t, 100, 23))
	s.kept("v1.1.0.mod", "module example.com/m\n")
	s.kept("v1.2.0.mod", "// Deprecated: use example.com/n\nmodule example.com/m\n\nretract (\n\t[v1.0.5, v1.1.3] // loses data\n)\n")
	s.write(filepath.Join(s.dir, "go.mod"), "module example.com/app\n\nrequire example.com/m v1.1.0\n")

	got := s.inspect("v1.1.0", object{"main": ".", "as_of": "2024-03-31"})
	require.Equal(t, "low", got.Risk)
	require.Equal(t, "MIT", got.Licenses[0].SPDX)
	require.Equal(t, "2024-03-01T12:00:00Z", got.PublishedAt)
	require.Equal(t, 29, *got.AgeDays)
	require.Equal(t, "v1.2.1", got.LatestKnown, "no prerelease")
	require.Equal(t, 2, *got.VersionsBehind)
	require.Equal(t, int64(123), *got.SizeBytes)
	require.Equal(t, 2, *got.Files)
	require.True(t, *got.Direct)
	require.Equal(t, "loses data", got.Retracted.Rationale)
	require.Equal(t, "use example.com/n", got.Deprecated)
	require.Equal(t, "v1.2.0", got.ModOf, "the newest version has no go.mod")
	require.Empty(t, got.Missing)
	require.Equal(t, []string{"licenses", "published_at", "latest_known", "versions_behind", "size_bytes", "retracted", "deprecated", "direct"}, got.Known)
}

// Facts that the cache does not know are reported as missing, and nothing is made up.
func TestInspect_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newModules(t)
	s.unpacked("v1.1.0", "main.go", "package m")
	got := s.inspect("v1.1.0", object{"as_of": "2024-03-31T00:00:00Z"})
	require.Equal(t, []string{"licenses"}, got.Known, "it is known that there is no license file")
	require.Equal(t, []string{"published_at", "latest_known", "versions_behind", "size_bytes", "retracted", "deprecated"}, got.Missing)
	require.Equal(t, inspected{Module: "example.com/m", Version: "v1.1.0", Risk: "unknown", Known: got.Known, Missing: got.Missing, Licenses: got.Licenses}, got)
	require.Empty(t, got.Licenses)

	s.kept("v1.1.0.info", `{"Version":"v1.1.0"}`)
	s.kept("v1.1.0.zip", "PK no archive")
	s.kept("v1.1.0.mod", "module \"x")
	s.kept("list", "v1.0.0\nnonsense\n")
	s.write(filepath.Join(s.dir, "go.mod"), "module example.com/app\n\nrequire example.com/m v1.0.0\n")
	got = s.inspect("v1.1.0", object{"main": "go.mod"})
	require.Equal(t, []string{"licenses", "latest_known"}, got.Known)
	require.Equal(t, "v1.1.0", got.LatestKnown)
	require.Equal(t, []string{"published_at", "versions_behind", "size_bytes", "retracted", "deprecated", "direct"}, got.Missing,
		"the list is older than the version, and go.mod asks for another one")
}

func TestInspect_Versions(t *testing.T) {
	t.Parallel()
	none := -1
	for name, tc := range map[string]struct {
		version, list, latest string
		behind                int
	}{
		"newest":                       {"v1.2.0", "v1.2.0\nv1.1.0\n", "v1.2.0", 0},
		"ten is more than nine":        {"v1.9.0", "v1.9.0\nv1.10.0\n", "v1.10.0", 1},
		"only previews":                {"v1.0.0-rc.1", "v1.0.0-rc.1\nv1.0.0-rc.2\n", "v1.0.0-rc.2", 1},
		"preview of the next":          {"v1.1.0-rc.1", "v1.0.0\nv1.1.0-rc.1\n", "", none},
		"not a list":                   {"v1.0.0", "", "v1.0.0", none},
		"commit between":               {"v1.0.1-0.20240102030405-abcdefabcdef", "v1.0.0\nv1.1.0\n", "v1.1.0", 1},
		"commit of something untagged": {"v0.0.0-20240102030405-abcdefabcdef", "", "", none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newModules(t)
			s.kept(tc.version+".mod", "module example.com/m\n")
			if tc.list != "" {
				s.kept("list", tc.list)
			}
			got := s.inspect(tc.version, nil)
			require.Equal(t, tc.latest, got.LatestKnown)
			if tc.behind == none {
				require.Nil(t, got.VersionsBehind)
				require.Contains(t, got.Missing, "versions_behind")
			} else {
				require.Equal(t, tc.behind, *got.VersionsBehind)
			}
			if strings.Contains(tc.version, "2024") {
				require.Equal(t, "2024-01-02T03:04:05Z", got.PublishedAt, "the version's name contains the time")
			}
			require.Contains(t, got.Missing, "licenses", "the module is not unpacked")
		})
	}
}

func TestInspect_RefusesBadInput(t *testing.T) {
	t.Parallel()
	s := newModules(t)
	s.unpacked("v1.0.0", "main.go", "package m")
	s.write(filepath.Join(s.dir, "bad", "go.mod"), "module \"x")
	for name, tc := range map[string]struct {
		input         object
		code          jig.Code
		field, reason string
	}{
		"not there":       {object{"version": "v1.0.1"}, jig.CodeNotFound, "/module", "not_in_module_cache"},
		"local folder":    {object{"version": ""}, jig.CodeInvalidInput, "/version", "local_replacement"},
		"not a version":   {object{"version": "latest"}, jig.CodeInvalidInput, "/version", ""},
		"path as version": {object{"version": "v1.0.0/../.."}, jig.CodeInvalidInput, "/version", ""},
		"path as module":  {object{"module": "../../etc", "version": "v1.0.0"}, jig.CodeInvalidInput, "/module", ""},
		"bad moment":      {object{"version": "v1.0.0", "as_of": "yesterday"}, jig.CodeInvalidInput, "/as_of", ""},
		"no go.mod":       {object{"version": "v1.0.0", "main": "none"}, jig.CodeNotFound, "", ""},
		"bad go.mod":      {object{"version": "v1.0.0", "main": "bad"}, jig.CodeInvalidInput, "/main", "invalid_go_mod"},
		"outside":         {object{"version": "v1.0.0", "main": "../go.mod"}, jig.CodeNotPermitted, "", "outside_workdir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := object{"module": "example.com/m"}
			for k, v := range tc.input {
				in[k] = v
			}
			e := s.kit().Fail("deps.inspect", in)
			require.Equal(t, tc.code, e.Code)
			require.Equal(t, tc.reason, e.Reason)
			if tc.field != "" {
				require.Equal(t, tc.field, e.Field)
			}
		})
	}
}

func TestInspect_OfThisRepository(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: filepath.Join("..", "..")}})...)
	var list listed
	kit.Succeed("deps.list", object{"path": "go.mod"}, &list)
	direct := 0
	for _, m := range list.Modules {
		if m.Indirect {
			continue
		}
		direct++
		var got inspected
		kit.Succeed("deps.inspect", object{"module": m.Path, "version": m.Version, "main": "go.mod"}, &got)
		require.Equal(t, "low", got.Risk, m.Path)
		require.True(t, *got.Direct, m.Path)
		require.Nil(t, got.Retracted, m.Path)
		require.NotContains(t, got.Missing, "licenses")
		require.Equal(t, 8, len(got.Known)+len(got.Missing), m.Path)
		if got.PublishedAt != "" {
			at, err := time.Parse(time.RFC3339, got.PublishedAt)
			require.NoError(t, err)
			require.Greater(t, at.Year(), 2009, m.Path)
		}
		if got.Files != nil {
			require.Positive(t, *got.Files)
			require.Positive(t, *got.SizeBytes)
		}
	}
	require.Greater(t, direct, 20)
}
