package jig

import "time"

// GrantRequest asks for a standing approval: with an approval, or by the tool grants.create.
type GrantRequest struct {
	// Tool that the grant is for; with an approval, that of the call (and left out).
	Tool string `json:"tool,omitempty" jsonschema:"the tool whose calls it approves"`
	// Agent narrows it to the calls of one agent; with an approval default the call's, "*" for all.
	Agent string `json:"agent,omitempty" jsonschema:"only calls of this agent; * for all"`
	// When is CEL over the names that policies have, input among them; true or false. Default true.
	When string `json:"when,omitempty" jsonschema:"CEL condition over the call, e.g. input.amount < 100"`
	// MaxUses bounds the calls that it approves; default 10.
	MaxUses int `json:"max_uses,omitempty" jsonschema:"how many calls it approves; default 10"`
	// Expires is how long it holds, e.g. 12h or 7d; default 24h.
	Expires string `json:"expires,omitempty" jsonschema:"how long it holds, e.g. 12h or 7d; default 24h"`
	Note    string `json:"note,omitempty" jsonschema:"why, for the audit"`
}

// Grant is a standing approval: it counts as the word of those who gave it on every call that it covers, until it is used up,
// expires or is revoked. It never covers a destructive tool, nor one that always asks.
type Grant struct {
	Tenant string `json:"tenant"`
	ID     string `json:"grant_id"`
	Tool   string `json:"tool"`
	// Meaning is that of the tool's contract when the grant was given. Under a contract that means something else it covers nothing.
	Meaning string `json:"meaning"`
	// Agent is the only agent whose calls it covers; all when empty.
	Agent     string    `json:"agent,omitempty"`
	When      string    `json:"when"`
	MaxUses   int       `json:"max_uses"`
	Used      int       `json:"used"`
	ExpiresAt time.Time `json:"expires_at"`
	// By are the people who gave it.
	By      []string `json:"by"`
	Claimed bool     `json:"claimed,omitempty"`
	Note    string   `json:"note,omitempty"`
	// SessionID and Call are where it was given.
	SessionID string     `json:"session_id"`
	Call      string     `json:"call"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	RevokedBy string     `json:"revoked_by,omitempty"`
	// Ended says why a grant that is live covers no new call; empty for one that may. It is filled in when grants are listed.
	Ended GrantEnd `json:"ended,omitempty"`
}

// GrantEnd says why a live grant covers no new call.
type GrantEnd string

// GrantContractChanged is the end of a grant whose tool has a contract now that means something else than when it was given.
const GrantContractChanged GrantEnd = "contract_changed"

// Live reports whether the grant can still be used.
func (g Grant) Live(now time.Time) bool {
	return g.RevokedAt == nil && g.Used < g.MaxUses && now.Before(g.ExpiresAt)
}

// GrantCeiling bounds the grants of a tenant, whoever gives them.
type GrantCeiling struct {
	// MaxUses of one grant; default 1,000.
	MaxUses int `json:"max_uses,omitempty"`
	// MaxAge of one grant; default 30 days. In JSON: nanoseconds.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// Off allows none.
	Off bool `json:"off,omitempty"`
}

// WithDefaults fills in the zero values.
func (c GrantCeiling) WithDefaults() GrantCeiling {
	setDefault(&c.MaxUses, 1000)
	setDefault(&c.MaxAge, 30*24*time.Hour)
	return c
}

// PauseScope says what a pause holds back.
type PauseScope string

// The scopes.
const (
	PauseTenant  PauseScope = "tenant"
	PauseTool    PauseScope = "tool"
	PauseSession PauseScope = "session"
)

// Pause holds calls back that have not begun: all of a tenant, those of one tool, or those of one session and the sessions
// that it started. Those that run finish.
type Pause struct {
	Scope PauseScope `json:"scope"`
	// Target is the tool's name or the session's id; empty for the tenant.
	Target  string    `json:"target,omitempty"`
	By      string    `json:"by"`
	Claimed bool      `json:"claimed,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}
