package jig

import "encoding/json"

// ImplementationThin is the implementation of a thin tool. A thin tool checks its input, creates at most one entity, starts the entity's
// extraction and returns at once, while the extraction continues in the background.
const ImplementationThin = "thin_tool"

// Reasons for which thin tools reject a call, in addition to those that their authors define.
const (
	// ReasonBundleNotInstalled: the bundle that the tool belongs to is not installed for the tenant.
	ReasonBundleNotInstalled = "bundle_not_installed"
	// ReasonEngagementNotFound: an entity that the tool needs does not exist, or the principal may not read it.
	ReasonEngagementNotFound = "engagement_not_found"
	// ReasonIDORViolation: the id belongs to another tenant's entity. This reason appears only in the audit; the caller sees
	// ReasonEngagementNotFound, as for an id that does not exist.
	ReasonIDORViolation = "idor_violation"
	// ReasonWorkspaceViolation: the entity is not in the workspace that the call names.
	ReasonWorkspaceViolation = "workspace_violation"
	// ReasonInsufficientGraph: too few entities are connected with the entity.
	ReasonInsufficientGraph = "insufficient_graph"
)

// ThinTool is a parsed thin tool, apart from its contract. Templates (${ … }) and CEL expressions read `input`, `entities.<name>` (with
// `id`, `type`, `title`, `content` and `connected`, a list of `{id, type, title}`), `tenant` and `principal`. In URL they also read
// `entity.id` and `session.id`.
type ThinTool struct {
	// Bundle is the bundle that must be installed; empty means none.
	Bundle string `json:"bundle,omitempty"`
	// Entities are the entities that the tool needs, in the order in which they are looked up.
	Entities []ThinEntity `json:"entities,omitempty"`
	// Requires are checked in order once all entities have been found. The first one that does not hold rejects the call.
	Requires []ThinRequirement `json:"requires,omitempty"`
	Creates  *ThinCreation     `json:"creates,omitempty"`
	// Starts is the extraction to start for the created entity; nil for none.
	Starts *ThinStart `json:"starts,omitempty"`
	// URL is a template for the returned link; empty means the worker's default form.
	URL string `json:"url,omitempty"`
}

// ThinEntity is an entity that a thin tool needs.
type ThinEntity struct {
	Name string `json:"name"`
	// ID is a template for the entity's id. If it yields null or the empty text and Optional is set, the entity is null.
	ID       string `json:"id"`
	Type     string `json:"type"`
	Optional bool   `json:"optional,omitempty"`
	// Workspace is a template for the workspace that the entity must be in. If it yields null or the empty text, there is no check.
	Workspace string `json:"workspace,omitempty"`
	// Connected says which connected entities are available as `connected`; nil means none.
	Connected *ThinConnected `json:"connected,omitempty"`
}

// ThinConnected selects the entities that are connected with another.
type ThinConnected struct {
	// Types are the entity types that count; empty means all.
	Types []string `json:"types,omitempty"`
	// Depth is the maximum distance in relations; default 1, at most MaxConnectedDepth.
	Depth int `json:"depth,omitempty"`
	// AtLeast is the number of connected entities required; with fewer, the call is rejected with ReasonInsufficientGraph.
	AtLeast int `json:"at_least,omitempty"`
}

// ThinRequirement is a condition that must hold for a thin tool to act.
type ThinRequirement struct {
	// Check is a boolean CEL expression.
	Check string `json:"check"`
	// Code is the reason for the rejection, in snake_case: one of the Reasons above or one that the author defines.
	Code string `json:"code"`
	// Message is a template for a message that tells the caller what to do.
	Message string `json:"message,omitempty"`
}

// ThinCreation describes the entity that a thin tool creates.
type ThinCreation struct {
	Type string `json:"type"`
	// Title is a template. Fields is a document of templates that gives the entity's content.
	Title  string          `json:"title,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"`
	// Key is a template. A second call with the same key gets the entity and the extraction of the first. If it is empty, each call creates
	// its own entity.
	Key string `json:"key,omitempty"`
	// Relations and Workspaces are documents of templates: lists of ids by relation name, and a list of workspace names.
	Relations  json.RawMessage `json:"relations,omitempty"`
	Workspaces json.RawMessage `json:"workspaces,omitempty"`
}

// ThinStart describes the extraction that a thin tool starts.
type ThinStart struct {
	// Fields are the only fields to fill; empty means all.
	Fields []string `json:"fields,omitempty"`
	// Input is a document of templates, available to the tasks as `input`.
	Input json.RawMessage `json:"input,omitempty"`
}

// ThinResult is the result data of a thin tool that acted.
type ThinResult struct {
	EntityID string `json:"entity_id,omitempty"`
	// URL is a link to the entity.
	URL string `json:"url,omitempty"`
	// SessionID is the session that runs the extraction; empty when none was started.
	SessionID string `json:"session_id,omitempty"`
	// Created is false when an earlier call with the same key made the entity.
	Created bool `json:"created"`
}
