package spec_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/internal/builtin/artifact"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/internal/builtin/web"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// The tools that ship with the product have careful descriptions, so any advice on them is a false alarm.
func TestAdvise_IsSilentOnTheBuiltInTools(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(slices.Concat(
		file.Tools(file.Options{Dirs: workdir.Dirs{Default: t.TempDir()}}), todo.Tools(todo.Options{}), web.Tools(web.Options{}),
		artifact.Tools(artifact.Options{}), prompt.Tools(prompt.Options{}), deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: t.TempDir()}}),
	)...)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(registry.Tools()), 10)
	require.Empty(t, spec.AdviseTools(registry.Tools()))
}

// adviceCase is a tool's description, with part of the expected advice. The advice is empty if none is expected.
type adviceCase struct{ description, advice string }

func TestAdvise_OnDescriptions(t *testing.T) {
	t.Parallel()
	const (
		input  = `{"type":"object","required":["path","mode"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"mode":{"enum":["fast","slow"],"default":"fast"},"options":{"type":"object","properties":{"depth":{"type":"integer"}}}}}`
		output = `{"type":"object","properties":{"total":{"type":"integer"},"owner":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	)
	for _, c := range []adviceCase{
		// Vague descriptions, and good ones.
		{"", "the description is missing"},
		{"   \n", "the description is missing"},
		{"Does stuff.", "says nothing"},
		{"A helper.", "says nothing"},
		{"This tool performs various operations on data.", "says nothing"},
		{"TBD", "says nothing"},
		{"Counts files", "only repeats the name"},
		{"Tool to count files of disk.", "only repeats the name"},
		{"Counts all inodes", "fewer than 20"},
		{"Counts the files below a folder.", ""},
		{"Zählt die Dateien unter einem Verzeichnis.", ""},
		{"数えます", ""},
		{"Helper that counts the files below a folder, links left out.", ""},

		// Parameters that do not exist.
		{"Counts the files below `dir` and gives their number.", `mentions "dir"`},
		{"Counts the files below `path`, at most `limt` of them.", `mentions "limt"`},
		{`Counts files. The parameter "folder" says where to begin.`, `mentions "folder"`},
		{`Counts files. Set the "max" option to stop early.`, `mentions "max"`},
		{"Counts files below `path`, at most `limit`, down to `depth`.", ""},
		{"Counts files in mode `fast` or `slow`; see `disk.countFiles`.", ""},
		{"Counts files, as the command `find` does; runs `git` to leave out what is ignored.", ""},
		{"Counts files. Returns `total` and `owner`, and `name` of the owner.", ""},
		{`Counts files whose name is "readme" or "license", e.g. for a review.`, ""},
		{"Counts files. A file that is missing is `null`, and `true` means all.", ""},
		{"Counts files with extension `md` or `txt`, like `go`.", `mentions "txt"`},

		// Optional and required parameters.
		{"Counts the files below a folder; `path` is optional.", `"path" optional`},
		{"Counts the files below an optional path, links left out.", `"path" optional`},
		{"Counts the files below `path` (optional), links left out.", `"path" optional`},
		{"Counts files. `path` may be left out: the current folder is meant.", `"path" optional`},
		{"Counts the files below a folder; limit is required.", `"limit" required`},
		{"Counts the files below a folder. You must provide a `limit`.", `"limit" required`},
		{"Counts the files below a folder. `limit` must be given.", `"limit" required`},
		{"Counts the files below a folder; `limit` is optional and path is required.", ""},
		{"Counts the files below a folder. `limit` is required when the folder is large.", ""},
		{"Counts the files below a folder. `mode` is optional.", ""},
		{"Counts the files below a folder. limit must be a positive number.", ""},
		{"Counts the files below a folder. `limit` is not required.", ""},

		// Lists.
		{"Counts files. Returns a list of their names.", "promises a list"},
		{"Gives back the sorted list of files below a folder.", "promises a list"},
		{"Counts files and returns an array.", "promises a list"},
		{"Counts files and returns whether the list is complete.", ""},
		{"Counts files and returns the length of the list.", ""},
		{"Counts files and returns a list of names as Markdown.", ""},
		{"Counts the files of a list and returns their number.", ""},

		// What the tool does to data; the permission is read.
		{"Deletes the files below a folder.", "it deletes"},
		{"Counts the files below a folder and removes the empty ones.", ""},
		{"Counts the files below a folder, then removes them. It overwrites the old ones.", "it removes"},
		{"Counts files and deletes every file below the folder.", ""},
		{"Counts files. It permanently deletes the old ones.", "it deletes"},
		{"Lists the files that a cleanup removes from a folder.", ""},
		{"Removes duplicates from the names below a folder and counts the rest.", ""},
		{"Counts files. It never deletes anything, and is read-only.", ""},
	} {
		got := spec.AdviseTools([]jig.Tool{{
			Name: "disk.countFiles", Description: c.description, Permission: jig.PermissionRead,
			InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
		}})
		if c.advice == "" {
			require.Empty(t, got, c.description)
			continue
		}
		require.Len(t, got, 1, "%s: %v", c.description, got)
		require.Contains(t, got[0].Message, c.advice)
		require.Equal(t, "disk.countFiles", got[0].Document)
		require.Equal(t, "description", got[0].Path)
		require.Equal(t, spec.SeverityWarning, got[0].Severity)
	}
	for _, c := range []adviceCase{
		{"Marks the files below a folder. This tool is read-only.", "read-only"},
		{"A read-only query for the files below a folder.", "read-only"},
		{"Marks the files below a folder and does not change anything.", "does not change anything"},
		{"Marks the files below a folder without modifying data.", "without modifying data"},
		{"Marks files; it changes nothing.", "changes nothing"},
		{"Makes the files below a folder read-only.", ""},
		{"Sets files of a folder to read-only mode.", ""},
		{"Marks the files below a folder. It does not change the owner of a file.", ""},
		{"Deletes the files below a folder.", ""},
		{"Marks files. It does not write anything unless a person approves.", ""},
	} {
		for _, permission := range []jig.Permission{jig.PermissionWrite, jig.PermissionDestructive} {
			got := spec.AdviseTools([]jig.Tool{{Name: "disk.markFiles", Description: c.description, Permission: permission}})
			if c.advice == "" {
				require.Empty(t, got, c.description)
				continue
			}
			require.Len(t, got, 1, "%s: %v", c.description, got)
			require.Contains(t, got[0].Message, c.advice)
		}
	}
}

// A schema that leaves things open cannot contradict a description.
func TestAdvise_IsSilentOnOpenSchemas(t *testing.T) {
	t.Parallel()
	const description = "Counts the files below `dir`. Returns a list of `names`."
	for _, schema := range []string{
		"", "{", "true", `{}`, `{"type":"object"}`, `{"type":"object","properties":{"path":{}},"additionalProperties":true}`,
		`{"type":"object","properties":{"path":{}},"additionalProperties":{"type":"string"}}`, `{"$ref":"#/$defs/a","properties":{"a":{}}}`,
		`{"type":"object","properties":{"path":{}},"anyOf":[{}]}`,
	} {
		tool := jig.Tool{Name: "disk.countFiles", Description: description, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		require.Empty(t, spec.AdviseTools([]jig.Tool{tool}), schema)
	}
}

func TestAdvise_OnNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		alike bool
	}{
		{"file.read", "file.raed", true},
		{"file.read", "file.reads", true},
		{"file.read", "file.reed", true},
		{"cms.getPage", "cms.getPages", true},
		{"cms.getPage", "cms.getpage", true},
		{"cms.getPage", "cms.get_page", true},
		{"cms.addEntry", "cms.addEntries", true},
		{"cms.getPages", "cms.getsPage", true},
		{"cms.pageV1", "cms.pageV2", true},
		{"data.get", "data.set", false},
		{"user.getName", "user.setName", false},
		{"file.read", "file.write", false},
		{"http.get", "http.put", false},
		{"cms.lock", "cms.unlock", false},
		{"deps.list", "file.list", false},
		{"cms.publishPage", "cms.archivePage", false},
	} {
		named := func(name string) jig.Tool {
			return jig.Tool{Name: name, Description: "Says something that is long enough for anybody."}
		}
		got := spec.AdviseTools([]jig.Tool{named(c.a), named(c.b), named("quite.another")})
		if !c.alike {
			require.Empty(t, got, "%s and %s", c.a, c.b)
			continue
		}
		require.Len(t, got, 2, "%s and %s", c.a, c.b)
		require.Contains(t, got[0].Message, "is easily taken for")
		require.Equal(t, spec.ProblemSimilarName, got[0].Code)
	}
}

func TestAdvise_OfManyToolsIsCheap(t *testing.T) { //nolint:paralleltest // the allocations of other tests would count
	var catalog []jig.Tool
	for i := range 5000 {
		catalog = append(catalog, jig.Tool{
			Name:        fmt.Sprintf("family%02d.%s", i%100, strings.Repeat(string(rune('a'+i%26)), 3)+fmt.Sprintf("%05d", i*7919%100000)),
			Description: strings.Repeat("Optional `a` is required, `b` must be given; returns a list of the deletes, removes, overwrites. ", 40),
			InputSchema: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{},"b":{}}}`),
		})
	}
	cheap(t, func() { require.NotEmpty(t, spec.AdviseTools(catalog[:20])) })
	for i := range catalog {
		catalog[i].Description = ""
	}
	_, objects := allocated(func() { require.GreaterOrEqual(t, len(spec.AdviseTools(catalog)), len(catalog)) })
	require.Less(t, objects, uint64(slack*500_000), "every tool is compared with every other")
}
