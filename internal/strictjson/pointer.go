package strictjson

import (
	"strconv"
	"strings"
)

// Pointer returns a JSON pointer (RFC 6901); without parts it returns "", the whole document.
func Pointer(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		if strings.ContainsAny(part, "~/") {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
		}
		b.WriteString(part)
	}
	return b.String()
}

// LookUp follows a JSON pointer into a decoded document.
func LookUp(document any, pointer string) (any, bool) {
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
