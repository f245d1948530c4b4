package jig

import (
	"time"
)

// GrantRequest asks for a standing approval, either together with an approval or through the tool grants.create.
type GrantRequest struct {
	// Tool is the tool that the grant is for. Together with an approval it is left out and means the tool of the approved call.
	Tool string `json:"tool,omitempty" names:"tool" jsonschema:"the tool whose calls it approves"`
	// Agent limits the grant to calls of one agent; "*" means all agents. Together with an approval it defaults to the agent of the
	// approved call.
	Agent string `json:"agent,omitempty" names:"agent" jsonschema:"only calls of this agent; * for all"`
	// When is a boolean CEL condition over the same names as in policies, including input; default true.
	When string `json:"when,omitempty" jsonschema:"CEL condition over the call, e.g. input.amount < 100"`
	// MaxUses bounds the number of calls that the grant approves; default 10.
	MaxUses int `json:"max_uses,omitempty" jsonschema:"how many calls it approves; default 10"`
	// Expires is how long the grant is valid, e.g. 12h or 7d; default 24h.
	Expires string `json:"expires,omitempty" jsonschema:"how long it holds, e.g. 12h or 7d; default 24h"`
	Note    string `json:"note,omitempty" jsonschema:"why, for the audit"`
}

// Grant is a standing approval. It counts as an approval by the people who gave it for every call that it covers, until it is used up,
// expires or is revoked. It never covers a destructive tool, nor a tool that always asks.
type Grant struct {
	Tenant string `json:"tenant"`
	ID     string `json:"grant_id"`
	Tool   string `json:"tool"`
	// Meaning is the [Tool.Meaning] of the contract when the grant was given. If the meaning changes, the grant covers nothing.
	Meaning string `json:"meaning"`
	// Agent is the only agent whose calls are covered; empty means all agents.
	Agent     string    `json:"agent,omitempty"`
	When      string    `json:"when"`
	MaxUses   int       `json:"max_uses"`
	Used      int       `json:"used"`
	ExpiresAt time.Time `json:"expires_at"`
	// By are the people who gave the grant.
	By []string `json:"by"`
	// Makers are the makers of the credentials of those in By who used one that somebody else made, as in [Principal].
	Makers map[string]string `json:"makers,omitempty"`
	// Claimed reports that the identity of one of them was not proved. Otherwise Proof is the weakest proof of theirs.
	Claimed bool   `json:"claimed,omitempty"`
	Proof   Proof  `json:"proof,omitempty"`
	Note    string `json:"note,omitempty"`
	// SessionID and Call say where the grant was given.
	SessionID string     `json:"session_id"`
	Call      string     `json:"call"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	RevokedBy string     `json:"revoked_by,omitempty"`
	// Ended says why a live grant covers no new call; empty when it may. It is filled in only when grants are listed.
	Ended string `json:"ended,omitempty"`
}

// GrantContractChanged is the value of [Grant].Ended which means that the tool's contract now has a different meaning than when the grant was given.
const GrantContractChanged = "contract_changed"

// Live reports whether the grant can still be used: it is not revoked, used up or expired.
func (g Grant) Live(now time.Time) bool {
	return g.RevokedAt == nil && g.Used < g.MaxUses && now.Before(g.ExpiresAt)
}

// PauseScope says what a pause holds back.
type PauseScope string

// The scopes.
const (
	PauseTenant  PauseScope = "tenant"
	PauseTool    PauseScope = "tool"
	PauseSession PauseScope = "session"
)

// Pause holds back calls that have not begun: all calls of a tenant, those of one tool, or those of one session and the sessions that it
// started. Running calls finish.
type Pause struct {
	Scope PauseScope `json:"scope"`
	// Target is the name of the tool or the id of the session; empty for a tenant.
	Target  string    `json:"target,omitempty"`
	By      string    `json:"by"`
	Claimed bool      `json:"claimed,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}
