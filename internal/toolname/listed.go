package toolname

import "strings"

// Listed reports whether a list of names, "category.*" and "*" contains a tool.
func Listed(list []string, name string) bool {
	for _, entry := range list {
		if entry == "*" || entry == name {
			return true
		}
		if prefix, ok := strings.CutSuffix(entry, "*"); ok && strings.HasSuffix(prefix, ".") && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
