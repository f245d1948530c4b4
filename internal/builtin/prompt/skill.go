package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig/spec"
)

// maxSkillFiles bounds the size of a skill's files in the system text, in bytes.
const maxSkillFiles = 256 << 10

// skillText returns a skill as instructions to a model: first its instructions, then its files in the order of their paths as long as
// there is room, then the names of files that were left out.
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
