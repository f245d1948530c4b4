package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools/tooltest"
)

type object = map[string]any

// folder creates a working directory with the files, and a kit for it.
func folder(t *testing.T, files map[string]string) (string, *tooltest.Kit) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(content), 0o600))
	}
	return dir, tooltest.New(t, file.Tools(file.Options{Dirs: workdir.Dirs{Default: dir}})...)
}

type readData struct {
	Path, Content string
	Size          int64
	Truncated     bool
}

func TestRead_ReturnsLines(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{"a.txt": "hello world", "empty": "", "sub/é.txt": "aéb€c😀d"})
	tests := map[string]struct {
		input object
		want  readData
	}{
		"whole":       {object{"path": "a.txt"}, readData{"a.txt", "hello world", 11, false}},
		"absolute":    {object{"path": filepath.Join(dir, "a.txt")}, readData{"a.txt", "hello world", 11, false}},
		"unclean":     {object{"path": "sub/../a.txt"}, readData{"a.txt", "hello world", 11, false}},
		"empty":       {object{"path": "empty"}, readData{"empty", "", 0, false}},
		"window":      {object{"path": "a.txt", "offset": 6, "limit": 3}, readData{"a.txt", "wor", 11, true}},
		"to the end":  {object{"path": "a.txt", "offset": 6, "limit": 5}, readData{"a.txt", "world", 11, false}},
		"at the end":  {object{"path": "a.txt", "offset": 11}, readData{"a.txt", "", 11, false}},
		"cut rune":    {object{"path": "sub/é.txt", "limit": 2}, readData{"sub/é.txt", "a", 13, true}},
		"in a rune":   {object{"path": "sub/é.txt", "offset": 2, "limit": 2}, readData{"sub/é.txt", "éb", 13, true}},
		"in four":     {object{"path": "sub/é.txt", "offset": 11, "limit": 10}, readData{"sub/é.txt", "😀d", 13, false}},
		"tiny window": {object{"path": "sub/é.txt", "offset": 8, "limit": 5}, readData{"sub/é.txt", "😀d", 13, false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got readData
			kit.Succeed("file.read", tc.input, &got)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRead_WindowsJoin(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("aé€😀", 50)
	_, kit := folder(t, map[string]string{"x": text})
	for limit := 4; limit < 12; limit++ {
		var all strings.Builder
		for offset := 0; ; {
			var got readData
			kit.Succeed("file.read", object{"path": "x", "offset": offset, "limit": limit}, &got)
			all.WriteString(got.Content)
			if offset += len(got.Content); !got.Truncated {
				break
			}
		}
		require.Equal(t, text, all.String())
	}
}

func TestRead_Refuses(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{"a.txt": "hello", "nul": "a\x00b", "latin": "caf\xe9", "sub/b": "x"})
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("../..", filepath.Join(dir, "sub", "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	large, err := os.Create(filepath.Join(dir, "large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(file.MaxReadBytes+1))
	require.NoError(t, large.Close())
	tests := map[string]struct {
		input  object
		code   jig.Code
		reason string
		hint   string
	}{
		"missing":        {object{"path": "b.txt"}, jig.CodeNotFound, "", "did you mean a.txt?"},
		"missing deep":   {object{"path": "sub/c/d"}, jig.CodeNotFound, "", "list"},
		"below a file":   {object{"path": "a.txt/x"}, jig.CodeNotFound, "", ""},
		"up":             {object{"path": "../secret"}, jig.CodeNotPermitted, "outside_workdir", "relative"},
		"absolute":       {object{"path": outside}, jig.CodeNotPermitted, "outside_workdir", "relative"},
		"link":           {object{"path": "link"}, jig.CodeNotPermitted, "outside_workdir", "relative"},
		"link to folder": {object{"path": "sub/up/secret"}, jig.CodeNotPermitted, "outside_workdir", "relative"},
		"folder":         {object{"path": "sub"}, jig.CodeInvalidInput, "is_a_directory", "file.list"},
		"NUL byte":       {object{"path": "nul"}, jig.CodeInvalidInput, "binary_file", "text"},
		"not UTF-8":      {object{"path": "latin"}, jig.CodeInvalidInput, "binary_file", "text"},
		"pipe":           {object{"path": "pipe"}, jig.CodeInvalidInput, "special_file", ""},
		"too large":      {object{"path": "large"}, jig.CodeInvalidInput, "file_too_large", ""},
		"past the end":   {object{"path": "a.txt", "offset": 6}, jig.CodeInvalidInput, "", ""},
		"NUL in path":    {object{"path": "a\x00b"}, jig.CodeInvalidInput, "", ""},
		"long name":      {object{"path": strings.Repeat("x", 300)}, jig.CodeInvalidInput, "", ""},
		"no path":        {object{}, jig.CodeMissingParam, "", ""},
		"limit":          {object{"path": "a.txt", "limit": 1 << 21}, jig.CodeInvalidInput, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := kit.Fail("file.read", tc.input)
			require.Equal(t, tc.code, e.Code, e)
			require.Equal(t, tc.reason, e.Reason)
			require.Contains(t, e.Hint, tc.hint)
			require.NotContains(t, e.Message, "secret\n")
		})
	}
}

type listData struct {
	Entries []struct {
		Path, Type string
		Size       int64
	}
	Truncated bool
}

func (d listData) String() string {
	var lines []string
	for _, e := range d.Entries {
		lines = append(lines, fmt.Sprintf("%s %s %d", e.Path, e.Type, e.Size))
	}
	return strings.Join(lines, ", ")
}

func TestList_MatchesGlobs(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{
		"a.go": "1", "a/x.go": "12", "a/b/y.go": "123", "a/b/y.md": "1234", ".git/config": "x", "a-b/z": "",
	})
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	tests := map[string]struct {
		input object
		want  string
	}{
		"top":       {object{"path": "."}, ".git dir 0, a dir 0, a-b dir 0, a.go file 1, link symlink 0"},
		"empty":     {object{"path": ""}, ".git dir 0, a dir 0, a-b dir 0, a.go file 1, link symlink 0"},
		"folder":    {object{"path": "a"}, "a/b dir 0, a/x.go file 2"},
		"link":      {object{"path": "link"}, "link/b dir 0, link/x.go file 2"},
		"recursive": {object{"path": ".", "recursive": true}, "a dir 0, a-b dir 0, a-b/z file 0, a.go file 1, a/b dir 0, a/b/y.go file 3, a/b/y.md file 4, a/x.go file 2, link symlink 0"},
		"glob":      {object{"path": ".", "glob": "*.go"}, "a.go file 1"},
		"deep glob": {object{"path": "a", "recursive": true, "glob": "**/*.go"}, "a/b/y.go file 3, a/x.go file 2"},
		"no match":  {object{"path": ".", "glob": "*.rs"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got listData
			kit.Succeed("file.list", tc.input, &got)
			require.Equal(t, tc.want, got.String())
			require.False(t, got.Truncated)
		})
	}
	require.Equal(t, "not_a_directory", kit.Fail("file.list", object{"path": "a.go"}).Reason)
	require.Equal(t, "/glob", kit.Fail("file.list", object{"path": ".", "glob": "["}).Field)
	require.Equal(t, jig.CodeNotFound, kit.Fail("file.list", object{"path": "nothing"}).Code)
	require.Equal(t, jig.CodeNotPermitted, kit.Fail("file.list", object{"path": "../"}).Code)
}

func TestList_IsTruncated(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range file.MaxEntries + 1 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	_, kit := folder(t, files)
	var got listData
	kit.Succeed("file.list", object{"path": "."}, &got)
	require.True(t, got.Truncated)
	require.Len(t, got.Entries, file.MaxEntries)
	require.Equal(t, "f0000", got.Entries[0].Path)
}

type grepData struct {
	Matches []struct {
		Path, Text string
		Line       int
	}
	Truncated bool
}

func TestGrep_FindsLines(t *testing.T) {
	t.Parallel()
	_, kit := folder(t, map[string]string{
		"a.txt": "one\r\ntwo\none more", "sub/b.txt": "x\n\none", "bin": "one\x00one", "late": "one\n" + strings.Repeat("filler\n", 5000) + "\x00\n",
		".git/c": "one", "long": strings.Repeat("é", 400) + "\n" + strings.Repeat("y", 200_000) + "one\nONE",
	})
	find := func(input object) string {
		var got grepData
		kit.Succeed("file.grep", input, &got)
		require.False(t, got.Truncated)
		var lines []string
		for _, m := range got.Matches {
			require.LessOrEqual(t, len(m.Text), file.MaxLineBytes)
			lines = append(lines, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
		}
		return strings.Join(lines, "|")
	}
	require.Equal(t, "a.txt:1:one|a.txt:3:one more|sub/b.txt:3:one", find(object{"pattern": "^one"}))
	require.Equal(t, "sub/b.txt:3:one", find(object{"pattern": "one$", "path": "sub"}))
	require.Equal(t, "a.txt:1:one", find(object{"pattern": "one$", "path": "a.txt"}))
	require.Equal(t, "sub/b.txt:3:one", find(object{"pattern": "one", "glob": "sub/*.txt"}))
	require.Equal(t, "long:3:ONE", find(object{"pattern": "(?i)^one$", "path": "long"}))
	require.Equal(t, "long:1:"+strings.Repeat("é", 250), find(object{"pattern": "é"}))
	require.Empty(t, find(object{"pattern": "nowhere"}))
	require.Equal(t, "/pattern", kit.Fail("file.grep", object{"pattern": "("}).Field)
	require.Equal(t, jig.CodeNotFound, kit.Fail("file.grep", object{"pattern": "x", "path": "nothing"}).Code)
}

func TestGrep_IsTruncatedAndCanceled(t *testing.T) {
	t.Parallel()
	_, kit := folder(t, map[string]string{"a": strings.Repeat("x\n", file.MaxMatches), "b": "x\n", "c": strings.Repeat("z\n", 5000)})
	var got grepData
	kit.Succeed("file.grep", object{"pattern": "x"}, &got)
	require.True(t, got.Truncated)
	require.Len(t, got.Matches, file.MaxMatches)
	got = grepData{}
	kit.Succeed("file.grep", object{"pattern": "x", "path": "a"}, &got)
	require.False(t, got.Truncated)
	require.Len(t, got.Matches, file.MaxMatches)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, jig.CodeCanceled, kit.Run(ctx, "file.grep", object{"pattern": "x"}).Error.Code)
}

// This pattern of 901 bytes compiled to 180,000 instructions, and took seven seconds and 343 MB for a single line of 1,000 bytes.
func TestGrep_RefusesPatternsThatTakeTooMuch(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	_, kit := folder(t, map[string]string{"a": strings.Repeat("a", 1_000)})
	costtest.AtMost(t, 4<<20, func() {
		e := kit.Fail("file.grep", object{"pattern": strings.Repeat("(a?){1000}", 90) + "z"})
		require.Equal(t, "/pattern", e.Field)
		require.Contains(t, e.Message, "at most 2500 are allowed")
	})
}

// Each line takes seconds, and the file has fewer lines than the search reads between two checks of the context.
func TestGrep_StopsWithinALineAtTheDeadline(t *testing.T) {
	t.Parallel()
	_, kit := folder(t, map[string]string{"a": strings.Repeat(strings.Repeat("a", 60_000)+"\n", 20)})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	result := kit.Run(ctx, "file.grep", object{"pattern": "(a?){500}z"})
	require.False(t, result.Success)
	require.Equal(t, jig.CodeTimeout, result.Error.Code)
}

// Alternatives must not be tried one after another: this glob would need 2^100 tries.
func TestList_GlobsAreMatchedInLinearTime(t *testing.T) {
	t.Parallel()
	_, kit := folder(t, map[string]string{strings.Repeat("a", 200): ""})
	var got listData
	kit.Succeed("file.list", object{"path": ".", "glob": strings.Repeat("{a,a}", 100) + "b"}, &got)
	require.Empty(t, got.Entries)
	require.Equal(t, "/glob", kit.Fail("file.list", object{"path": ".", "glob": "{a"}).Field)
	require.Equal(t, "/glob", kit.Fail("file.grep", object{"pattern": "a", "glob": "["}).Field)
}

func TestWrite_ReplacesTheFile(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{"old": "before", "sub/x": "x"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "old"), 0o640))
	require.NoError(t, os.Symlink("sub/x", filepath.Join(dir, "link")))
	data := func(name, content string) object {
		got := object{}
		kit.Succeed("file.write", object{"path": name, "content": content}, &got)
		return got
	}
	require.Equal(t, object{"path": "new/deep/f.md", "bytes": 3.0, "created": true}, data("new/deep/f.md", "é\n"))
	require.Equal(t, object{"path": "new/deep/f.md", "bytes": 3.0, "created": false}, data("new/deep/f.md", "é\n"))
	require.Equal(t, object{"path": "old", "bytes": 0.0, "created": false}, data("old", ""))
	data("link", "through")
	for name, want := range map[string]string{"new/deep/f.md": "é\n", "old": "", "sub/x": "through"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	info, err := os.Stat(filepath.Join(dir, "old"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	info, err = os.Lstat(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	left, err := filepath.Glob(filepath.Join(dir, ".jig-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWrite_Refuses(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{"f": "x", "sub/x": "x", ".git/config": "x"})
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "new"), filepath.Join(dir, "dangling")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	tests := map[string]struct {
		path string
		code jig.Code
	}{
		"up":            {"../x", jig.CodeNotPermitted},
		"absolute":      {"/etc/x", jig.CodeNotPermitted},
		"linked folder": {"out/x", jig.CodeNotPermitted},
		"linked file":   {"dangling", jig.CodeNotPermitted},
		"loop":          {"loop", jig.CodeInvalidInput},
		"folder":        {"sub", jig.CodeInvalidInput},
		"itself":        {".", jig.CodeInvalidInput},
		"below a file":  {"f/x", jig.CodeNotFound},
		"git":           {".git/hooks/pre-commit", jig.CodeNotPermitted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := kit.Fail("file.write", object{"path": tc.path, "content": "evil"})
			require.Equal(t, tc.code, e.Code, e)
			require.True(t, e.NotExecuted)
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	e := kit.Fail("file.write", object{"path": "big", "content": strings.Repeat("x", file.MaxWriteBytes+1)})
	require.Equal(t, "/content", e.Field)
	require.Equal(t, jig.CodeInvalidInput, e.Code)
}

func TestRead_FailsWithoutWorkingDirectory(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, file.Tools(file.Options{Dirs: workdir.Dirs{Default: filepath.Join(t.TempDir(), "gone")}})...)
	require.Equal(t, jig.CodeUnavailable, kit.Fail("file.read", object{"path": "x"}).Code)
}
