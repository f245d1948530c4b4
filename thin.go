package jig

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
