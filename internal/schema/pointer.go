package schema

import (
	"strconv"
	"strings"
)

// lookUp follows a JSON pointer into a decoded document.
func lookUp(document any, pointer string) (any, bool) {
	if pointer == "" {
		return document, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch node := document.(type) {
		case map[string]any:
			child, ok := node[part]
			if !ok {
				return nil, false
			}
			document = child
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			document = node[i]
		default:
			return nil, false
		}
	}
	return document, true
}
