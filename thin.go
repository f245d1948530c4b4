package jig

import "encoding/json"

// ImplementationThin is the implementation of a thin tool: it checks, creates at most one entity, starts its extraction and returns
// at once, with the work going on in the background.
const ImplementationThin = "thin_tool"

// Reasons by which thin tools reject a call, beside those that their authors give.
const (
	// ReasonBundleNotInstalled: the tenant does not have the bundle that the tool belongs to (any more).
	ReasonBundleNotInstalled = "bundle_not_installed"
	// ReasonEngagementNotFound: an entity that the tool works from is not there, or the principal may not read it.
	ReasonEngagementNotFound = "engagement_not_found"
	// ReasonIDORViolation: the id is that of another tenant's entity. It stands in the audit alone: the caller is told
	// ReasonEngagementNotFound, as for an id that is nobody's.
	ReasonIDORViolation = "idor_violation"
	// ReasonWorkspaceViolation: the entity is not in the workspace that the call names.
	ReasonWorkspaceViolation = "workspace_violation"
	// ReasonInsufficientGraph: too few entities are connected with it.
	ReasonInsufficientGraph = "insufficient_graph"
)

// ThinTool is a thin tool as parsed, beside its contract. Templates (${ … }) and CEL read `input`, `entities.<name>` (`id`, `type`,
// `title`, `content`, `connected`: a list of `{id, type, title}`), `tenant`, `principal` and, in URL, `entity.id` and `session.id`.
type ThinTool struct {
	// Bundle that must be installed; none when empty.
	Bundle string `json:"bundle,omitempty"`
	// Entities are those that it works from, in the order in which they are looked up.
	Entities []ThinEntity `json:"entities,omitempty"`
	// Requires are checked in their order once all entities are found; the first that does not hold rejects the call.
	Requires []ThinRequirement `json:"requires,omitempty"`
	Creates  *ThinCreation     `json:"creates,omitempty"`
	// Starts is the extraction of what was created; nil for none.
	Starts *ThinStart `json:"starts,omitempty"`
	// URL is a template of the link that is returned; the worker's own form of links when it is empty.
	URL string `json:"url,omitempty"`
}

// ThinEntity is an entity that a thin tool works from.
type ThinEntity struct {
	Name string `json:"name"`
	// ID is a template of the entity's id. When it gives null or the empty text and Optional is set, the entity is null.
	ID       string `json:"id"`
	Type     string `json:"type"`
	Optional bool   `json:"optional,omitempty"`
	// Workspace is a template of the workspace that it must be in; it is not looked at when that gives null or the empty text.
	Workspace string `json:"workspace,omitempty"`
	// Connected says which entities are read as `connected`; none when nil.
	Connected *ThinConnected `json:"connected,omitempty"`
}

// ThinConnected are the entities that are connected with one.
type ThinConnected struct {
	// Types are those that count; all when empty.
	Types []string `json:"types,omitempty"`
	// Depth is how many relations away they may be; default 1, at most MaxConnectedDepth.
	Depth int `json:"depth,omitempty"`
	// AtLeast is how many there must be, or the call is rejected with ReasonInsufficientGraph.
	AtLeast int `json:"at_least,omitempty"`
}

// ThinRequirement must hold for a thin tool to act.
type ThinRequirement struct {
	// Check is CEL that gives a boolean.
	Check string `json:"check"`
	// Code is the reason of the rejection, snake_case: one of the Reasons above or the author's own.
	Code string `json:"code"`
	// Message is a template that tells the caller what to do.
	Message string `json:"message,omitempty"`
}

// ThinCreation is the entity that a thin tool creates.
type ThinCreation struct {
	Type string `json:"type"`
	// Title is a template; Fields is a document of templates: the entity's content.
	Title  string          `json:"title,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"`
	// Key is a template: a second call with the same key gets the entity of the first, and its extraction. Each call makes its own
	// when it is empty.
	Key string `json:"key,omitempty"`
	// Relations and Workspaces are documents of templates: lists of ids by name, and a list of names.
	Relations  json.RawMessage `json:"relations,omitempty"`
	Workspaces json.RawMessage `json:"workspaces,omitempty"`
}

// ThinStart is the extraction that a thin tool starts.
type ThinStart struct {
	// Fields are the only ones to be filled; all when empty.
	Fields []string `json:"fields,omitempty"`
	// Input is a document of templates that the tasks read as `input`.
	Input json.RawMessage `json:"input,omitempty"`
}

// ThinResult is the data of a thin tool that acted.
type ThinResult struct {
	EntityID string `json:"entity_id,omitempty"`
	// URL is where the entity can be looked at.
	URL string `json:"url,omitempty"`
	// SessionID is the session of the extraction; empty when none was started.
	SessionID string `json:"session_id,omitempty"`
	// Created is false when an earlier call with the same key made the entity.
	Created bool `json:"created"`
}
