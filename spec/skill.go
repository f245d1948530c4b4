package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
)

// skillFile is the file that makes a folder a skill.
const skillFile = "SKILL.md"

// Limits of a skill: the number of files besides SKILL.md, the size of each, and the total size.
const (
	maxSkillFiles     = 64
	maxSkillFileBytes = 256 << 10
	maxSkillBytes     = 1 << 20
)

// Skill holds instructions and the files that belong to them: a folder with a SKILL.md. It is stored as one JSON document.
type Skill struct {
	Name string `json:"name"`
	// Description says when to use the skill.
	Description  string `json:"description"`
	Instructions string `json:"instructions"`
	// Files are the folder's other files, which are all text, by their path in the folder.
	Files map[string]string `json:"files,omitempty"`
}

// skillHead is the front matter of a SKILL.md. Skills that were made for other programs may have the keys License, Compatibility, Metadata
// and AllowedTools. They are accepted and ignored; the caller's whitelist decides which tools may be called.
type skillHead struct {
	Kind          string          `json:"kind,omitempty" jsonschema:"Always skill; optional."`
	Name          string          `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: release-notes" jsonschema:"The skill's name: lower-case letters, digits, '.', '_' and '-'."`
	Description   string          `json:"description" spec:"required,min=1,max=4096" hint:"say when to use the skill" jsonschema:"When to use the skill."`
	License       string          `json:"license,omitempty" jsonschema:"The licence of the skill; not used."`
	Compatibility string          `json:"compatibility,omitempty" jsonschema:"What the skill was made for; not used."`
	Metadata      json.RawMessage `json:"metadata,omitempty" jsonschema:"Anything; not used."`
	AllowedTools  json.RawMessage `json:"allowed-tools,omitempty" jsonschema:"Not used: the caller's own list of tools decides."` //nolint:tagliatelle // the name that skills made elsewhere use
}

// keptSkill is the stored form of a skill.
type keptSkill struct {
	Kind Kind `json:"kind"`
	Skill
}

// isSkillFile reports whether a file makes its folder a skill.
func isSkillFile(file string) bool { return path.Base(file) == skillFile }

// readSkill reads a SKILL.md, or the JSON in which a skill is stored.
func readSkill(d *decoder, row kindRow, doc *Document) {
	if isSkillFile(doc.Path) {
		doc.keepSkill(d.skill(row, doc))
		return
	}
	skill := d.keptSkill(doc.Body)
	doc.Value, doc.Name = &skill, skill.Name
}

// skill reads a SKILL.md.
func (d *decoder) skill(row kindRow, doc *Document) Skill {
	var h skillHead
	s, ok := d.open(row, doc, reflect.ValueOf(&h).Elem())
	if !ok {
		return Skill{}
	}
	if s.text == "" {
		d.add(Problem{Code: ProblemMissingKey, Line: 1, Column: 1, Message: "the skill has no instructions", Hint: "write them below the front matter"})
	}
	return Skill{Name: h.Name, Description: h.Description, Instructions: s.text}
}

func (d *decoder) keptSkill(body []byte) Skill {
	var kept keptSkill
	fail := func(path string, code ProblemCode, hint, format string, args ...any) Skill {
		d.add(Problem{Path: path, Line: 1, Column: 1, Code: code, Hint: hint}.saying(format, args...))
		return Skill{}
	}
	if len(body) > 2*maxSkillBytes {
		return fail("", ProblemTooLarge, "", "the skill has %d bytes; at most %d are allowed", len(body), 2*maxSkillBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&kept); err != nil || dec.More() {
		return fail("", ProblemSyntax, "give a folder with a "+skillFile, "this is not a stored skill: %v", err)
	}
	switch {
	case !namePattern.MatchString(kept.Name) || len(kept.Name) > 128:
		return fail("name", ProblemBadName, formOf("name").hint, "%q is not allowed here", kept.Name)
	case kept.Description == "" || kept.Instructions == "":
		return fail("", ProblemMissingKey, "", "a skill has a description and instructions")
	case len(kept.Files) > maxSkillFiles:
		return fail("files", ProblemTooMany, "", "the skill has %d files; at most %d are allowed", len(kept.Files), maxSkillFiles)
	}
	for name := range kept.Files {
		if !fs.ValidPath(name) || name == "." {
			return fail("files", ProblemBadValue, "", "%q is not the path of a file in the skill's folder", name)
		}
	}
	return kept.Skill
}

// loadSkill makes one document from a folder with a SKILL.md.
func loadSkill(fsys fs.FS, folder string) (Document, Problems) {
	file := path.Join(folder, skillFile)
	doc := Document{Kind: KindSkill, Path: file}
	d := newDecoder(file)
	body, err := fs.ReadFile(fsys, file)
	if err != nil {
		d.add(Problem{Code: ProblemUnreadable, Message: strings.TrimPrefix(err.Error(), "open ")})
		return doc, d.problems
	}
	doc.Body = body
	skill := d.skill(KindSkill.row(), &doc)
	skill.Files = d.skillFiles(fsys, folder, len(body))
	d.problems.Sort()
	doc.places, doc.broken = d.places, len(d.problems.Errors()) > 0
	doc.keepSkill(skill)
	return doc, d.problems
}

// skillFiles reads the folder's other files.
func (d *decoder) skillFiles(fsys fs.FS, folder string, total int) map[string]string {
	files := map[string]string{}
	refuse := func(file string, code ProblemCode, hint, format string, args ...any) {
		d.problems = append(d.problems, Problem{
			Document: file, Code: code, Severity: SeverityError, Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	err := fs.WalkDir(fsys, folder, func(file string, e fs.DirEntry, err error) error {
		hidden := file != folder && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && e.IsDir():
			return fs.SkipDir
		case hidden || e.IsDir() || file == path.Join(folder, skillFile):
			return nil
		case !e.Type().IsRegular():
			refuse(file, ProblemUnreadable, "replace it with the file itself", "a skill may contain only plain files, no links")
			return nil
		case len(files) == maxSkillFiles:
			refuse(file, ProblemTooMany, "", "the skill has more than %d files", maxSkillFiles)
			return fs.SkipAll
		}
		info, err := e.Info()
		if err != nil {
			return err //nolint:wrapcheck // becomes a problem below
		}
		if total += int(min(info.Size(), maxSkillBytes)); info.Size() > maxSkillFileBytes || total > maxSkillBytes {
			refuse(file, ProblemTooLarge, "", "a skill's files may have at most %d bytes each and %d in total", maxSkillFileBytes, maxSkillBytes)
			return fs.SkipAll
		}
		body, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err //nolint:wrapcheck // becomes a problem below
		}
		if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
			refuse(file, ProblemSyntax, "remove it from the folder", "a skill's files must be UTF-8 text")
			return nil
		}
		files[strings.TrimPrefix(strings.TrimPrefix(file, folder), "/")] = string(body)
		return nil
	})
	if err != nil {
		refuse(folder, ProblemUnreadable, "", "%v", err)
	}
	if len(files) == 0 {
		return nil
	}
	return files
}

// keepSkill makes the skill the document's body, as canonical JSON, so that the version covers all of its files.
func (doc *Document) keepSkill(skill Skill) {
	raw, err := json.Marshal(keptSkill{Kind: KindSkill, Skill: skill})
	if err == nil {
		raw, err = canonical.JSON(raw)
	}
	if err != nil {
		panic("spec: cannot marshal a skill: " + err.Error()) // only texts
	}
	doc.Name, doc.Value, doc.Body, doc.Version = skill.Name, &skill, raw, versionOf(KindSkill, raw)
}

// explainedLines is the number of lines that are shown of a skill's instructions.
const explainedLines = 12

// explainSkill says when a skill is used, how its instructions begin, and which files it has.
func explainSkill(doc Document, _ []Document, _ []jig.Tool) (text, diagram string) {
	skill, o := doc.Skill(), &outline{}
	o.line(0, "skill %s%s", skill.Name, versionText(doc.Version))
	o.line(0, "%s", skill.Description)
	lines := strings.Split(strings.TrimSpace(skill.Instructions), "\n")
	o.b.WriteByte('\n')
	o.line(0, "instructions, %s:", counted(len(lines), "line"))
	for _, line := range lines[:min(len(lines), explainedLines)] {
		o.b.WriteString(strings.TrimRight("   "+strings.Map(printable, line), " ") + "\n")
	}
	if len(lines) > explainedLines {
		o.line(1, "…")
	}
	if len(skill.Files) > 0 {
		o.b.WriteByte('\n')
		o.line(0, "files:")
	}
	for _, file := range slices.Sorted(maps.Keys(skill.Files)) {
		o.line(1, "%s, %s", file, counted(len(skill.Files[file]), "byte"))
	}
	return o.b.String(), ""
}

// printable drops control characters and replaces tabs by spaces, so that a text cannot change how a terminal shows what follows.
func printable(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case r == '\t':
		return ' '
	}
	return -1
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
