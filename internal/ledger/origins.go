package ledger

import "github.com/jig-run/jig"

// Origins holds the texts that the arguments of a session's calls can come from.
type Origins struct {
	// Source, Task and Input are those of the session at the root of the tree.
	Source jig.Source
	Task   string
	Input  []byte
	// Messages holds the later messages of the principal to any session from the root to this one.
	Messages []string
	// Calls are the calls that have a result, the oldest first, of all these sessions. More reports that there are older ones.
	Calls []OriginCall
	More  bool
}

// OriginCall is a call whose result the session may have read.
type OriginCall struct {
	// ID is the id of the call; for a call of a session above, the session's id comes before it.
	ID, Tool, Version string
	Input             []byte
	Result            jig.ToolResult
	// Untrusted reports that outsiders may have written the result. Tainted reports that the session had read untrusted data when the call
	// was admitted, so that the input may repeat them.
	Untrusted, Tainted bool
}

// Typed returns what the principal typed. The text of a session that was started by another program than the command line or the API, or by an
// agent, was not typed by the principal.
func (o Origins) Typed() []string {
	if !Typed(o.Source) {
		return nil
	}
	return append([]string{o.Task, string(o.Input)}, o.Messages...)
}

// Typed reports whether what starts a session was typed by its principal.
func Typed(source jig.Source) bool {
	switch source {
	case jig.SourceCLI, jig.SourceAPI, jig.SourceSchedule, jig.SourceTemporal:
		return true
	case jig.SourceWeb, jig.SourceMCP, jig.SourceAgent:
	}
	return false
}
