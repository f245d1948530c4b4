package activities

import (
	"github.com/jig-run/jig/internal/protocol"
)

// misplaced names a member of the outer object that belongs inside one of its decisions. It returns "" if all members are in their place.
func misplaced(d protocol.Decisions) string {
	if len(d.Decisions) == 0 {
		return ""
	}
	switch {
	case d.Call != "":
		return "call"
	case d.Digest != "":
		return "digest"
	case len(d.Input) > 0:
		return "input"
	case d.To != "":
		return "to"
	case d.Undo:
		return "undo"
	case d.Grant != nil:
		return "grant"
	case d.Token != "":
		return "token"
	}
	return ""
}
