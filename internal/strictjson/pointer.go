package strictjson

import "strings"

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
