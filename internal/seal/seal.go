// Package seal computes the hashes of tool contracts that approvals and grants are bound to. It must not know how tools are registered or
// run.
package seal

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
)

// Tool returns the contract with its defaults, its Version and its Meaning filled in. It returns an error if a schema is not JSON or has no
// canonical form.
//
// The version is the SHA-256 of the contract's RFC 8785 JSON, without the members version and meaning. It stays the same when the same tool
// is rebuilt, and changes with every part of the contract that people approved.
func Tool(t jig.Tool) (jig.Tool, error) {
	t = t.WithDefaults()
	t.Version, t.Meaning = "", ""
	raw, err := json.Marshal(t)
	if err != nil {
		return t, fmt.Errorf("contract of %s: %w", t.Name, err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return t, fmt.Errorf("contract of %s: %w", t.Name, err)
	}
	delete(members, "version")
	delete(members, "meaning")
	version, err := canonical.Hash(members)
	if err != nil {
		return t, fmt.Errorf("contract of %s: %w", t.Name, err)
	}
	meaning, err := Meaning(members)
	if err != nil {
		return t, fmt.Errorf("contract of %s: %w", t.Name, err)
	}
	t.Version, t.Meaning = version, meaning
	return t, nil
}

// Meaning returns the SHA-256 of the RFC 8785 JSON of a contract's members, or of the members of the document that defines the tool. It
// leaves out description, title and icon, which only describe the tool to people and models.
func Meaning(members map[string]json.RawMessage) (string, error) {
	members = maps.Clone(members)
	for _, word := range []string{"description", "title", "icon"} {
		delete(members, word)
	}
	return canonical.Hash(members)
}
