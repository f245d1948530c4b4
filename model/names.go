package model

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
)

// maxWireName is the maximum length of a tool name that providers accept.
const maxWireName = 64

var wireForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// wireName converts a tool's name for providers that do not allow dots: data.searchRecords becomes data__searchRecords. If the result would
// be too long, or ambiguous because the name itself contains "__", it ends with a hash of the name instead. The result depends only on the
// name, so names in a transcript stay the same whatever tools are offered later.
func wireName(name string) string {
	wire := strings.ReplaceAll(name, ".", "__")
	if !strings.Contains(name, "__") && wireForm.MatchString(wire) {
		return wire
	}
	sum := sha256.Sum256([]byte(name))
	clean := strings.Map(func(r rune) rune {
		if wireForm.MatchString(string(r)) {
			return r
		}
		return '_'
	}, wire)
	return clean[:min(len(clean), maxWireName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// namesOf maps wire names back to the names of the offered tools.
func namesOf(tools []jig.Tool) map[string]string {
	names := make(map[string]string, len(tools))
	for _, t := range tools {
		names[wireName(t.Name)] = t.Name
	}
	return names
}

// toolName returns the name of the tool with this wire name. A name that was not offered is converted to the usual form of tool names, so
// that the error can suggest the nearest one.
func toolName(names map[string]string, wire string) string {
	if name, ok := names[wire]; ok {
		return name
	}
	return strings.ReplaceAll(wire, "__", ".")
}
