package jig

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

// Permission says what a tool does to data.
type Permission string

// The permission levels. Read and draft tools run without approval, write tools wait for approval, and destructive tools never run without
// a person, whatever the settings say.
const (
	PermissionRead        Permission = "read"
	PermissionDraft       Permission = "draft"
	PermissionWrite       Permission = "write"
	PermissionDestructive Permission = "destructive"
)

// Writes reports whether a tool with this permission changes data: all do except read and draft. A missing or unknown permission counts as
// write.
func (p Permission) Writes() bool { return p != PermissionRead && p != PermissionDraft }

// Risk says how much harm a wrong call can do.
type Risk string

// The risk levels. High-risk calls wait for approval. Safe and moderate calls run at once and are treated alike; the difference is for people
// and for policy rules, which can require approval for one and not for the other.
const (
	RiskSafe     Risk = "safe"
	RiskModerate Risk = "moderate"
	RiskHigh     Risk = "high"
)

// ApprovalPolicy is the tool author's own setting for approvals.
type ApprovalPolicy string

// The approval policies.
const (
	ApprovalAuto      ApprovalPolicy = "auto"
	ApprovalAlwaysAsk ApprovalPolicy = "always_ask"
)

// Execution says where a tool runs.
type Execution string

// The ways to run a tool. Local is for read-only, idempotent tools that finish well within a second: they run as local activities, without
// an activity task of their own.
const (
	ExecutionActivity Execution = "activity"
	ExecutionLocal    Execution = "local"
)

// Tool is the declared contract of a tool. Zero values mean: permission write, risk moderate, approval auto, execution activity, not
// idempotent, and a timeout of DefaultToolTimeout.
type Tool struct {
	// Name is category.actionTarget, at most 64 characters; see [CheckToolName].
	Name string `json:"name"`
	// Version is the hash of the contract, including Revision; see package seal. For an execution spec it is the version of the document.
	Version string `json:"version"`
	// Meaning is the hash of the contract (or of the execution spec's document) without description, title and icon. Grants are bound to
	// it.
	Meaning string `json:"meaning,omitempty"`
	// Description tells the model when to use the tool and what it returns.
	Description string `json:"description"`
	// Category groups tools in the menu; default: the part of the name before the first dot.
	Category   string         `json:"category,omitempty"`
	Permission Permission     `json:"permission"`
	Risk       Risk           `json:"risk"`
	Approval   ApprovalPolicy `json:"approval"`
	// Idempotent reports that running the tool again with the same idempotency key has no further effect.
	Idempotent bool      `json:"idempotent"`
	Execution  Execution `json:"execution"`
	// InputSchema and OutputSchema are JSON Schema 2020-12, with an object at the top.
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Icon         string          `json:"icon,omitempty"`
	// RequiredPermission is a permission that the principal must hold; empty means none.
	RequiredPermission string `json:"required_permission,omitempty"`
	// Tenants lists the tenants that may see the tool; empty means all.
	Tenants []string `json:"tenants,omitempty"`
	// Bundle is the bundle that a Go tool belongs to: only tenants that have installed it see the tool. Empty means that every tenant does.
	Bundle string `json:"bundle,omitempty"`
	// Timeout bounds one attempt. In JSON: nanoseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxAttempts bounds the attempts of one call, across all workers and runs. 0 means that failures which may pass are retried for RetryFor,
	// however many attempts that takes, and that there are DefaultMaxAttempts attempts with any other failure.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// RetryFor is how long after the first failure an attempt may still begin, if the failure may pass: TIMEOUT, RATE_LIMITED or UNAVAILABLE. 0
	// means the worker's setting, which is DefaultRetryFor. In JSON: nanoseconds.
	RetryFor time.Duration `json:"retry_for,omitempty"`
	// ConcurrencyKey is a CEL expression over input. Among the calls of one pass, and among those of one composition or extraction, calls with
	// the same key run one after another, in the order in which they were requested. Keys are compared across tools, so a key should begin with
	// a word for what the tool changes, e.g. 'file ' + input.path. A call whose key is null or empty waits for no other. Empty means no key.
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	// OutputSections says how parts of the output are shown to people. So far it is only checked to be JSON and kept in the contract, for a
	// console.
	OutputSections json.RawMessage `json:"output_sections,omitempty"`
	// Confirm reports that the tool has a boolean input `confirmed` and acts only when it is true. An agent's call without it is answered
	// with requiresConfirmation, so that the agent asks first; in a composition, an extraction or a single call it fails.
	Confirm bool `json:"confirm,omitempty"`
	// Previews reports that the tool can describe what a call will change; see [Preview].
	Previews bool `json:"previews,omitempty"`
	// Undo names the tool that reverts this tool's effect. A composition step calls it if the step's `undo` names no tool, and undoing a session
	// calls it for the session's calls.
	Undo string `json:"undo,omitempty"`
	// UndoInput is a CEL expression over input and result, which is the data of the call's result. It gives the input of the tool Undo when a
	// session is undone. Empty means the input of the call. In a composition, the step's `undo` says the input.
	UndoInput string `json:"undo_input,omitempty"`
	// Labels say which kinds of data the tool reads and whether it sends data away. Nil means that its results are not trusted.
	Labels *Labels `json:"labels,omitempty"`
	// Revision is raised by the author when the behavior changes but the contract does not.
	Revision int `json:"revision,omitempty"`
	// Implementation is "go" for a Go tool, "person" for a tool that a person answers, or the kind of the execution spec. Tools of the engine
	// that a workflow answers, or that start one for their caller, have other values.
	Implementation string `json:"implementation,omitempty"`
}

// ImplementationPerson is the implementation of a tool that a person answers: its calls wait for a reply and never run.
const ImplementationPerson = "person"

// Further implementations: a tool that is written in Go, and a thin tool.
const (
	implementationGo   = "go"
	implementationThin = "thin_tool"
)

// Defaults of a tool.
const (
	DefaultToolTimeout = time.Minute
	DefaultMaxAttempts = 3
	DefaultRetryFor    = 15 * time.Minute
	MaxToolNameLength  = 64
)

var toolNameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+$`)

// CheckToolName returns an error if a name is not of the form category.actionTarget.
func CheckToolName(name string) error {
	if len(name) <= MaxToolNameLength && toolNameForm.MatchString(name) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a tool name", name).WithField("name").
		WithHint("use category.actionTarget, e.g. data.searchRecords, at most 64 characters")
}

// WithDefaults returns the contract with defaults filled in.
func (t Tool) WithDefaults() Tool {
	setDefault(&t.Permission, PermissionWrite)
	setDefault(&t.Risk, RiskModerate)
	setDefault(&t.Approval, ApprovalAuto)
	setDefault(&t.Execution, ExecutionActivity)
	setDefault(&t.Timeout, DefaultToolTimeout)
	setDefault(&t.Implementation, implementationGo)
	if t.Category == "" {
		t.Category = categoryOf(t.Name)
	}
	return t
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func categoryOf(name string) string {
	for i := range len(name) {
		if name[i] == '.' {
			return name[:i]
		}
	}
	return name
}

// Unconfirmed returns the answer to a call that must not act yet: its tool requires confirmation (Confirm), and the input does not say
// `confirmed: true`. The data of the answer has requiresConfirmation, which is true, and a message. It returns nil when the call may act. An input that is not an object is an error.
func (t Tool) Unconfirmed(input []byte) (*ToolResult, error) {
	if !t.Confirm {
		return nil, nil // nil: the tool requires no confirmation, so the call may act
	}
	var flag struct {
		Confirmed bool `json:"confirmed"`
	}
	if err := json.Unmarshal(input, &flag); err != nil {
		return nil, Errorf(CodeInternal, "reading the input of %s: %w", t.Name, err)
	}
	if flag.Confirmed {
		return nil, nil // nil: the input confirms, so the call may act
	}
	what, _, more := strings.Cut(t.Description, ". ")
	if more {
		what += "."
	}
	data, err := json.Marshal(struct {
		RequiresConfirmation bool   `json:"requiresConfirmation"` //nolint:tagliatelle // the name that models know from other tools
		Message              string `json:"message"`
	}{true, "Nothing was done yet: ask the person whether this is what they want, and call again with confirmed: true when they say so. " + what})
	if err != nil {
		return nil, Errorf(CodeInternal, "encoding a confirmation: %w", err)
	}
	return &ToolResult{Success: true, Data: data, Summary: "needs a person's approval"}, nil
}

// ImplementationThin is the implementation of a thin tool. A thin tool checks its input, creates at most one entity, starts the entity's
// extraction and returns at once, while the extraction continues in the background.
const ImplementationThin = "thin_tool"

// Reasons for which thin tools reject a call, in addition to those that their authors define.
const (
	// ReasonBundleNotInstalled: the bundle that the tool belongs to is not installed for the tenant.
	ReasonBundleNotInstalled = "bundle_not_installed"
	// ReasonEntityNotFound: an entity that the tool needs does not exist, or the principal may not read it.
	ReasonEntityNotFound = "engagement_not_found"
	// ReasonIDORViolation: the id belongs to another tenant's entity. This reason appears only in the audit; the caller sees
	// ReasonEntityNotFound, as for an id that does not exist.
	ReasonIDORViolation = "idor_violation"
	// ReasonWorkspaceViolation: the entity is not in the workspace that the call names.
	ReasonWorkspaceViolation = "workspace_violation"
	// ReasonInsufficientGraph: too few entities are connected with the entity.
	ReasonInsufficientGraph = "insufficient_graph"
)
