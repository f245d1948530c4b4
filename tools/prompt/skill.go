package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig/spec"
)

// maxSkillFiles is how much of a skill's files goes into the system text, in bytes.
const maxSkillFiles = 256 << 10

// skillText is a skill as instructions to a model: its own, then its files in the order of their paths, as many as there
// is room for, then the names of the others.
func skillText(skill spec.Skill) string {
	texts := []string{skill.Instructions}
	var left []string
	room := maxSkillFiles
	for _, path := range slices.Sorted(maps.Keys(skill.Files)) {
		content := skill.Files[path]
		if len(content) > room {
			left = append(left, path)
			continue
		}
		room -= len(content)
		texts = append(texts, fmt.Sprintf("<file path=%q>\n%s\n</file>", path, strings.TrimSuffix(content, "\n")))
	}
	if len(left) > 0 {
		texts = append(texts, "These files of the skill are left out here, for they are too long: "+strings.Join(left, ", "))
	}
	return paragraphs(texts...)
}
