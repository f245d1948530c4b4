package spec_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

const skillText = `---
name: release-notes
description: Use it to write release notes.
license: MIT
metadata: {author: ana}
allowed-tools: [file.read]
---

# Release notes

Read style.md first.
`

func TestLoadFS_MakesOneDocumentOfASkill(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"skills/notes/SKILL.md":          {Data: []byte(skillText)},
		"skills/notes/style.md":          {Data: []byte("---\nname: not-an-agent\n---\nShort <sentences>.")},
		"skills/notes/examples/one.yaml": {Data: []byte("kind: composition\n")},
		"skills/notes/.git/config":       {Data: []byte("secret")},
		"page.yaml":                      {Data: []byte(fullComposition)},
		"page.json":                      {Data: []byte(`{"kind": "prompt", "name": "text.ask", "model": "openai/x", "prompt": "Hello"}`)},
		"package.json":                   {Data: []byte(`{"name": "x", "kind": "Module"}`)},
		"values.yaml":                    {Data: []byte("a: 1\n")},
	}
	docs, problems := spec.LoadFS(files, ".")
	require.Empty(t, problems)
	require.Len(t, docs, 3)
	require.Equal(t, []spec.Kind{spec.KindPrompt, spec.KindComposition, spec.KindSkill}, []spec.Kind{docs[0].Kind, docs[1].Kind, docs[2].Kind})

	doc := docs[2]
	require.Equal(t, "skills/notes/SKILL.md", doc.Path)
	require.Equal(t, "release-notes", doc.Name)
	require.Equal(t, &spec.Skill{
		Name: "release-notes", Description: "Use it to write release notes.", Instructions: "# Release notes\n\nRead style.md first.",
		Files: map[string]string{"style.md": "---\nname: not-an-agent\n---\nShort <sentences>.", "examples/one.yaml": "kind: composition\n"},
	}, doc.Skill())
	line, _ := doc.Position("description")
	require.Equal(t, 3, line)

	// The body contains everything and reads back as the same document.
	again, problems := spec.Load("release-notes", doc.Body)
	require.Empty(t, problems)
	require.Equal(t, doc.Skill(), again.Skill())
	require.Equal(t, doc.Version, again.Version)
	require.Equal(t, spec.KindSkill, again.Kind)
	require.Equal(t, doc.Name, again.Name)

	files["skills/notes/style.md"] = &fstest.MapFile{Data: []byte("Long ones.")}
	changed, problems := spec.LoadFS(files, "skills")
	require.Empty(t, problems)
	require.NotEqual(t, doc.Version, changed[0].Version, "a file of the skill is part of its version")

	one, problems := spec.Load("notes/SKILL.md", []byte(skillText))
	require.Empty(t, problems)
	require.Equal(t, doc.Skill().Instructions, one.Skill().Instructions)
	require.True(t, json.Valid(one.Body))
}

func TestSkill_Problems(t *testing.T) {
	t.Parallel()
	many := fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}}
	for i := range 65 {
		many[fmt.Sprintf("f%02d.txt", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	big := strings.Repeat("x", 256<<10)
	for name, c := range map[string]struct {
		files fstest.MapFS
		code  spec.ProblemCode
		path  string
		in    string
	}{
		"no front matter":  {fstest.MapFS{"SKILL.md": {Data: []byte("# Hello")}}, spec.ProblemSyntax, "", "SKILL.md"},
		"no name":          {fstest.MapFS{"SKILL.md": {Data: []byte("---\ndescription: x\n---\nDo.")}}, spec.ProblemMissingKey, "name", "SKILL.md"},
		"no description":   {fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: x\n---\nDo.")}}, spec.ProblemMissingKey, "description", "SKILL.md"},
		"no instructions":  {fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: x\ndescription: y\n---\n")}}, spec.ProblemMissingKey, "", "SKILL.md"},
		"another kind":     {fstest.MapFS{"SKILL.md": {Data: []byte("---\nkind: agent\nname: x\ndescription: y\n---\nDo.")}}, spec.ProblemUnknownKind, "kind", "SKILL.md"},
		"unknown key":      {fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: x\ndescription: y\nmodel: z\n---\nDo.")}}, spec.ProblemUnknownKey, "model", "SKILL.md"},
		"bad name":         {fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: My Skill\ndescription: y\n---\nDo.")}}, spec.ProblemBadName, "name", "SKILL.md"},
		"many files":       {many, spec.ProblemTooMany, "", "f64.txt"},
		"a large file":     {fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}, "a.txt": {Data: []byte(big + "x")}}, spec.ProblemTooLarge, "", "a.txt"},
		"large altogether": {fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}, "a": {Data: []byte(big)}, "b": {Data: []byte(big)}, "c": {Data: []byte(big)}, "d": {Data: []byte(big)}}, spec.ProblemTooLarge, "", "d"},
		"binary":           {fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}, "a.png": {Data: []byte{0x89, 'P', 0xff}}}, spec.ProblemSyntax, "", "a.png"},
		"a zero byte":      {fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}, "a": {Data: []byte("a\x00b")}}, spec.ProblemSyntax, "", "a"},
		"a link":           {fstest.MapFS{"SKILL.md": {Data: []byte(skillText)}, "a": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink | 0o777}}, spec.ProblemUnreadable, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := spec.LoadFS(c.files, ".")
			require.Len(t, problems, 1, "%v", problems)
			require.Equal(t, []any{c.code, c.path, c.in}, []any{problems[0].Code, problems[0].Path, problems[0].Document})
			require.Equal(t, spec.SeverityError, problems[0].Severity)
		})
	}
}

func TestSkill_StoredFormProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		code spec.ProblemCode
	}{
		"unknown key":     {`{"kind": "skill", "name": "a", "description": "b", "instructions": "c", "x": 1}`, spec.ProblemSyntax},
		"bad name":        {`{"kind": "skill", "name": "A B", "description": "b", "instructions": "c"}`, spec.ProblemBadName},
		"no instructions": {`{"kind": "skill", "name": "a", "description": "b"}`, spec.ProblemMissingKey},
		"a path outside":  {`{"kind": "skill", "name": "a", "description": "b", "instructions": "c", "files": {"../x": "y"}}`, spec.ProblemBadValue},
		"too large":       {`{"kind": "skill", "name": "a", "description": "b", "instructions": "` + strings.Repeat("x", 3<<20) + `"}`, spec.ProblemTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := spec.Load("a", []byte(c.body))
			require.Len(t, problems, 1, "%v", problems)
			require.Equal(t, c.code, problems[0].Code)
		})
	}
}

// Execution specs of all kinds are called by name, so no two of them may have the same name.
func TestLoadFS_RefusesAName(t *testing.T) {
	t.Parallel()
	_, problems := spec.LoadFS(fstest.MapFS{
		"a.yaml": {Data: []byte("kind: prompt\nname: text.ask\nmodel: openai/x\nprompt: Hello\n")},
		"b.yml":  {Data: []byte("kind: composition\nname: text.ask\nsteps: [{set: {a: 1}}]\n")},
	}, ".")
	require.Len(t, problems, 1)
	require.Equal(t, []any{spec.ProblemDuplicateKey, "b.yml", "name"}, []any{problems[0].Code, problems[0].Document, problems[0].Path})
}
