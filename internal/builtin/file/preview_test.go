package file_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools/tooltest"
)

func TestWrite_Preview(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{"old": "one\ntwo\n", "same": "x", "bin": "a\x00\xff", "big": strings.Repeat("x", 2<<20), "sub/f": "x"})
	require.NoError(t, os.Symlink("old", filepath.Join(dir, "link")))
	for path, want := range map[string]jig.Preview{
		"new":  {Title: "Creates new (4 bytes)", Changes: []string{"new\n+two\n+"}, Precondition: "a path without a file"},
		"old":  {Title: "Replaces old (4 bytes)", Changes: []string{"old\n@@ -1,2 +1 @@\n-one\n two"}},
		"link": {Title: "Replaces link → old (4 bytes)", Changes: []string{"link → old\n@@ -1,2 +1 @@\n-one\n two"}},
	} {
		got := kit.Preview("file.write", object{"path": path, "content": "two\n"})
		require.Equal(t, want.Title, got.Title)
		require.Equal(t, strings.TrimSuffix(want.Changes[0], "\n+"), got.Changes[0])
		if want.Precondition != "" {
			require.Equal(t, want.Precondition, got.Precondition)
		} else {
			require.Contains(t, got.Precondition, "content with SHA-256 ")
		}
	}
	require.Equal(t, "Changes nothing: same has this content already", kit.Preview("file.write", object{"path": "same", "content": "x"}).Title)
	require.Contains(t, kit.Preview("file.write", object{"path": "bin", "content": "x"}).Changes[0], "3 bytes")
	big := kit.Preview("file.write", object{"path": "big", "content": "x"})
	require.Contains(t, big.Changes[0], "2097152 bytes")
	require.Contains(t, kit.Preview("file.write", object{"path": "../x", "content": "x"}).Missing, "outside the working directory")
	require.Contains(t, kit.Preview("file.write", object{"path": "sub", "content": "x"}).Missing, "is a folder")
	left, err := os.ReadFile(filepath.Join(dir, "old"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(left), "a preview writes nothing")
}

func TestWrite_HonorsThePrecondition(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, after string // "" means that there is no such file
		conflict      bool
	}{
		"unchanged":           {"old", "old", false},
		"changed":             {"old", "other", true},
		"removed":             {"old", "", true},
		"created":             {"", "other", true},
		"still absent":        {"", "", false},
		"written by a retry":  {"old", "new", false},
		"created by a retry":  {"", "new", false},
		"changed to nothing ": {"old", "\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, kit := folder(t, nil)
			at := filepath.Join(dir, "sub", "f")
			put := func(text string) {
				require.NoError(t, os.RemoveAll(at))
				if text != "" {
					require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
					require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
				}
			}
			put(row.before)
			input := object{"path": "sub/f", "content": "new"}
			kit.Invocation.Precondition = kit.Preview("file.write", input).Precondition
			put(row.after)
			if row.conflict {
				e := kit.Fail("file.write", input)
				require.Equal(t, jig.CodeConflict, e.Code)
				require.True(t, e.NotExecuted)
				return
			}
			kit.Succeed("file.write", input, nil)
			now, err := os.ReadFile(at)
			require.NoError(t, err)
			require.Equal(t, "new", string(now))
		})
	}
}

// Two calls were approved for the same file at the same time. Only one of them can still do what its preview showed.
func TestWrite_RacesForThePrecondition(t *testing.T) {
	t.Parallel()
	dir, _ := folder(t, nil)
	random := rand.New(rand.NewPCG(13, 28))
	kits := []*tooltest.Kit{}
	for range 3 {
		kits = append(kits, tooltest.New(t, file.Tools(file.Options{Dirs: workdir.Dirs{Default: dir}})...))
	}
	for n := range 1000 {
		at := filepath.Join(dir, "f")
		require.NoError(t, os.WriteFile(at, fmt.Append(nil, "begin ", n), 0o600))
		if random.IntN(4) == 0 {
			require.NoError(t, os.Remove(at))
		}
		var racing sync.WaitGroup
		results := make([]jig.ToolResult, len(kits))
		for i, kit := range kits {
			kit.Invocation.Precondition = kit.Preview("file.write", object{"path": "f", "content": fmt.Sprint(n, " by ", i)}).Precondition
		}
		for i, kit := range kits {
			racing.Go(func() {
				results[i] = kit.Run(t.Context(), "file.write", object{"path": "f", "content": fmt.Sprint(n, " by ", i)})
			})
		}
		racing.Wait()
		var winners []int
		for i, r := range results {
			if r.Success {
				winners = append(winners, i)
			} else {
				require.Equal(t, jig.CodeConflict, r.Error.Code)
			}
		}
		require.Len(t, winners, 1, "race %d", n)
		now, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n, " by ", winners[0]), string(now))
	}
}
