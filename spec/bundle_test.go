package spec_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

const manifest = "kind: bundle\nname: dependency-review\nversion: 1.4.0\ntitle: Dependency review\nrequires: [consulting]\n"

// bundleFiles returns a bundle with a document of each kind that a bundle may contain.
func bundleFiles() map[string]string {
	return map[string]string{
		"bundle.yaml":           manifest,
		"README.md":             "# What it is\n",
		"data/modules.json":     `[{"path": "a"}]`,
		"types/module.yaml":     "{kind: entity_type, name: module, fields: [{name: path, type: text}]}",
		"start.yaml":            "{kind: thin_tool, name: module.start, bundle: dependency-review, creates: {type: module}}",
		"other.yaml":            "{kind: thin_tool, name: module.other, bundle: consulting, creates: {type: module}}",
		"flows/publish.yml":     "{kind: composition, name: module.publish, steps: [{set: {a: 1}}]}",
		"flows/ask.json":        `{"kind": "prompt", "name": "module.ask", "model": "openai/x", "prompt": "Why?"}`,
		"flows/find.yaml":       "{kind: task, name: module.find, task: find, entity: e}",
		"policy.yaml":           "{kind: policy, name: module-rules, rules: [{name: all, when: 'true', verdict: ask}]}",
		"agents/writer.md":      "---\nname: writer\nmodel: openai/x\n---\nWrite.",
		"skills/notes/SKILL.md": "---\nname: notes\ndescription: Use it to write notes.\n---\nWrite.",
	}
}

func fileSystem(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for file, body := range files {
		fsys[file] = &fstest.MapFile{Data: []byte(body)}
	}
	return fsys
}

func TestLoadBundle_ReadsTheFolder(t *testing.T) {
	t.Parallel()
	b, problems := spec.LoadBundle(fileSystem(bundleFiles()), ".")
	require.Empty(t, problems)
	require.Equal(t, bundle.Manifest{Name: "dependency-review", Version: "1.4.0", Title: "Dependency review", Requires: []string{"consulting"}}, b.Manifest)
	require.NoError(t, b.Manifest.Check())
	require.Regexp(t, `^[0-9a-f]{64}$`, b.Hash)
	kinds := map[spec.Kind]int{}
	for _, doc := range b.Documents {
		kinds[doc.Kind]++
	}
	require.Equal(t, map[spec.Kind]int{
		spec.KindEntityType: 1, spec.KindThinTool: 2, spec.KindComposition: 1, spec.KindPrompt: 1, spec.KindTask: 1, spec.KindPolicy: 1,
		spec.KindAgent: 1, spec.KindSkill: 1,
	}, kinds)

	// The bundle is the same if its files are sent one by one or are in a subfolder.
	all, problems := spec.LoadFS(fileSystem(bundleFiles()), ".")
	require.Empty(t, problems)
	same, problems := spec.BundleOf(all)
	require.Empty(t, problems)
	require.Equal(t, b, same)
	deeper := map[string]string{"bundle.yaml": "kind: bundle\nname: another\nversion: 0.0.1\n"}
	for file, body := range bundleFiles() {
		deeper["a/b/"+file] = body
	}
	below, problems := spec.LoadBundle(fileSystem(deeper), "a/b")
	require.Empty(t, problems)
	require.Equal(t, b.Hash, below.Hash)
}

// The hash of a bundle does not depend on file names. Any change to a document or the manifest changes it.
func TestLoadBundle_HashCoversEveryDocument(t *testing.T) {
	t.Parallel()
	load := func(change func(files map[string]string)) string {
		files := bundleFiles()
		change(files)
		b, problems := spec.LoadBundle(fileSystem(files), ".")
		require.Empty(t, problems.Errors())
		return b.Hash
	}
	hash := load(func(map[string]string) {})
	require.Equal(t, hash, load(func(files map[string]string) { files["README.md"] = "other" }))
	require.Equal(t, hash, load(func(files map[string]string) {
		files["zz/renamed.yaml"] = files["start.yaml"]
		delete(files, "start.yaml")
	}))
	seen := map[string]bool{hash: true}
	for i, change := range []func(files map[string]string){
		func(files map[string]string) { delete(files, "start.yaml") },
		func(files map[string]string) { files["start.yaml"] += " " },
		func(files map[string]string) { files["bundle.yaml"] += "description: x\n" },
		func(files map[string]string) { files["skills/notes/more.md"] = "x" },
		func(files map[string]string) {
			files["more.yaml"] = "{kind: task, name: more.find, task: find, entity: e}"
		},
		func(files map[string]string) {
			files["bundle.yaml"] = "kind: bundle\nname: dependency-review\nversion: 1.4.1\nrequires: [consulting]\n"
		},
	} {
		changed := load(change)
		require.False(t, seen[changed], "change %d does not give a new hash", i)
		seen[changed] = true
	}
}

func TestLoadBundle_ReportsProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(files map[string]string)
		want   []string
		hint   string
	}{
		"no manifest":                  {func(files map[string]string) { delete(files, "bundle.yaml") }, []string{"bundle.yaml  NO_MANIFEST"}, "kind: bundle"},
		"a manifest of another kind":   {func(files map[string]string) { files["bundle.yaml"] = "{kind: task, name: a, task: b, entity: e}" }, []string{"bundle.yaml  NO_MANIFEST"}, "kind: bundle"},
		"a manifest that says no kind": {func(files map[string]string) { files["bundle.yaml"] = "name: a\nversion: 1.0.0\n" }, []string{"bundle.yaml  NO_MANIFEST"}, "kind: bundle"},
		"manifest nested too deeply":   {func(files map[string]string) { files["a/bundle.yaml"] = manifest; delete(files, "bundle.yaml") }, []string{"bundle.yaml  NO_MANIFEST"}, "kind: bundle"},
		"a bundle in a bundle": {
			func(files map[string]string) { files["a/bundle.yaml"] = "kind: bundle\nname: other\nversion: 1.0.0\n" },
			[]string{"a/bundle.yaml kind NOT_IN_BUNDLE"},
			"requires",
		},
		"a tenant": {
			func(files map[string]string) { files["acme.yaml"] = "kind: tenant\nname: acme\n" },
			[]string{"acme.yaml kind NOT_IN_BUNDLE"},
			"jig catalog add",
		},
		"a tool of another bundle": {
			func(files map[string]string) {
				files["other.yaml"] = "{kind: thin_tool, name: a.b, bundle: sales, creates: {type: module}}"
			}, []string{"other.yaml bundle NOT_IN_BUNDLE"}, "add sales to requires",
		},
		"no documents": {func(files map[string]string) {
			clear(files)
			files["bundle.yaml"] = manifest
		}, []string{"bundle.yaml name NOT_IN_BUNDLE"}, "documents"},
		"documents with problems of their own, and a name twice": {
			func(files map[string]string) {
				files["start.yaml"] = "{kind: thin_tool, name: module.start, starts: {}, creates: {typ: a}}"
				files["twice.yaml"] = "{kind: prompt, name: module.publish, model: openai/x, prompt: a}"
			},
			[]string{"start.yaml creates.typ UNKNOWN_KEY", "start.yaml creates.type MISSING_KEY", "twice.yaml name DUPLICATE_KEY"},
			"",
		},
		"a broken manifest": {
			func(files map[string]string) { files["bundle.yaml"] = "kind: bundle\nname: a b\n" },
			[]string{"bundle.yaml name BAD_NAME", "bundle.yaml version MISSING_KEY"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := bundleFiles()
			c.change(files)
			_, problems := spec.LoadBundle(fileSystem(files), ".")
			var got []string
			for _, p := range problems.Errors() {
				got = append(got, fmt.Sprint(p.Document, " ", p.Path, " ", p.Code))
				require.Contains(t, p.Hint, c.hint)
				require.NotEmpty(t, p.Hint)
			}
			require.ElementsMatch(t, c.want, got, "%v", problems)
		})
	}
}

func TestBundleOf_TakesOneManifest(t *testing.T) {
	t.Parallel()
	_, problems := spec.BundleOf(nil)
	require.Len(t, problems, 1)
	require.Equal(t, spec.ProblemNoManifest, problems[0].Code)

	first, problems := spec.Load("x/bundle.yaml", []byte(manifest))
	require.Empty(t, problems)
	doc, problems := spec.Load("x/a.yaml", []byte("{kind: task, name: a.b, task: c, entity: e}"))
	require.Empty(t, problems)
	second, problems := spec.Load("x/y/bundle.yaml", []byte(manifest))
	require.Empty(t, problems)
	b, problems := spec.BundleOf([]spec.Document{first, doc, second})
	require.Len(t, problems, 1)
	require.Equal(t, "x/y/bundle.yaml", problems[0].Document)
	require.Equal(t, []spec.Document{doc}, b.Documents)
	broken, problems := spec.Load("bundle.yaml", []byte("kind: bundle\n- x"))
	require.NotEmpty(t, problems.Errors())
	_, problems = spec.BundleOf([]spec.Document{broken, doc})
	require.Empty(t, problems, "the problems were reported when the manifest was read")
}

func TestExplainBundle_ListsTheDocuments(t *testing.T) {
	t.Parallel()
	b, problems := spec.LoadBundle(fileSystem(bundleFiles()), ".")
	require.Empty(t, problems)
	text := spec.ExplainBundle(b.Manifest, b.Documents)
	requirePlain(t, text)
	require.Equal(t, `bundle dependency-review (version 1.4.0)
Dependency review
it needs the bundles consulting

it contains:
   1 agent: writer
   1 composition: module.publish
   1 prompt: module.ask
   1 task: module.find
   1 skill: notes
   1 policy: module-rules
   1 entity type: module
   2 thin tools: module.other, module.start
`, text)
	require.Equal(t, "bundle dependency-review (version 1.4.0)\nDependency review\nit needs the bundles consulting\n", spec.ExplainBundle(b.Manifest, nil))
}

// Reading an arbitrary manifest never panics, and a manifest that is accepted has a name and a version.
func FuzzBundle(f *testing.F) {
	f.Add([]byte(manifest), []byte("{kind: thin_tool, name: a.b, bundle: consulting, creates: {type: c}}"))
	f.Add([]byte(`{"kind": "bundle", "name": "a", "version": "1.0.0-rc.1", "requires": ["b", "b", "a"]}`), []byte("kind: bundle\nname: b\nversion: 1.0.0"))
	f.Add([]byte("kind: bundle\nname: \"a\\u0000\"\nversion: 01.0.0\ndescription: \"\\e[0m\""), []byte("kind: tenant\nname: acme"))
	f.Fuzz(func(t *testing.T, body, other []byte) {
		doc, problems := spec.Load("bundle.yaml", body)
		second, _ := spec.Load("other.yaml", other) //nolint:errcheck // the text is arbitrary, so problems are expected
		b, found := spec.BundleOf([]spec.Document{doc, second})
		for _, p := range append(problems, found...) {
			require.NotEmpty(t, p.Message)
			require.NotEmpty(t, p.Code)
		}
		if doc.Bundle() == nil || problems.OrNil() != nil {
			return
		}
		require.NoError(t, doc.Bundle().Check())
		require.Equal(t, *doc.Bundle(), b.Manifest)
		require.Len(t, b.Hash, 64)
		requirePlain(t, spec.ExplainBundle(b.Manifest, b.Documents))
	})
}
