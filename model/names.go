package model

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
)

// maxWireName is how long the providers let a tool's name be.
const maxWireName = 64

var wireForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// wireName is a tool's name for providers that allow no dots: data.searchRecords becomes data__searchRecords. A name that
// this would make too long, or whose own "__" would make it ambiguous, ends with a hash of itself instead. It depends on
// the name alone, so a transcript keeps its names whatever tools are offered later.
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

// namesOf maps the offered tools' wire names back.
func namesOf(tools []jig.Tool) map[string]string {
	names := make(map[string]string, len(tools))
	for _, t := range tools {
		names[wireName(t.Name)] = t.Name
	}
	return names
}

// toolName is the tool that a model means; a name that was not offered is given back in the form tools have, so that
// whoever refuses it can name the nearest one.
func toolName(names map[string]string, wire string) string {
	if name, ok := names[wire]; ok {
		return name
	}
	return strings.ReplaceAll(wire, "__", ".")
}
