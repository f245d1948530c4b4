package jig

import (
	"encoding/json"
	"regexp"
	"time"
)

// Permission says what a tool does to data.
type Permission string

// The permission levels. Read and draft tools run by themselves; write suspends for approval; destructive never runs
// without a person, whatever the settings say.
const (
	PermissionRead        Permission = "read"
	PermissionDraft       Permission = "draft"
	PermissionWrite       Permission = "write"
	PermissionDestructive Permission = "destructive"
)

// Writes reports whether a tool with this permission changes data: all do but read and draft. A permission that is missing or
// unknown counts as write.
func (p Permission) Writes() bool { return p != PermissionRead && p != PermissionDraft }

// Risk says how much harm a wrong call can do.
type Risk string

// The risk levels. High asks. Safe and moderate run at once and are treated alike: the difference is for people and for the rules of a
// policy, which can ask for the one and not for the other.
const (
	RiskSafe     Risk = "safe"
	RiskModerate Risk = "moderate"
	RiskHigh     Risk = "high"
)

// ApprovalPolicy is the tool author's own word on approvals.
type ApprovalPolicy string

// The approval policies.
const (
	ApprovalAuto      ApprovalPolicy = "auto"
	ApprovalAlwaysAsk ApprovalPolicy = "always_ask"
)

// Execution says where a tool runs.
type Execution string

// The ways to run a tool. Local is for tools that are read-only, idempotent and quick (well under a second): they run
// beside the workflow, without a task of their own.
const (
	ExecutionActivity Execution = "activity"
	ExecutionLocal    Execution = "local"
)

// Tool is a tool's declared contract. Its zero values mean: permission write, risk moderate, approval auto, execution
// activity, not idempotent, a time-out of DefaultToolTimeout, DefaultMaxAttempts attempts.
type Tool struct {
	// Name is category.actionTarget, at most 64 characters; see CheckToolName.
	Name string `json:"name"`
	// Version is the hash of the contract, Revision included; see package seal. The version of an execution spec's contract is
	// that of its document.
	Version string `json:"version"`
	// Meaning is the hash of the contract, or of the execution spec's document, without description, title and icon. Grants are
	// bound to it.
	Meaning string `json:"meaning,omitempty"`
	// Description tells the model when to use the tool and what it gives back.
	Description string `json:"description"`
	// Category groups the tool menu; default: the name's first part.
	Category   string         `json:"category,omitempty"`
	Permission Permission     `json:"permission"`
	Risk       Risk           `json:"risk"`
	Approval   ApprovalPolicy `json:"approval"`
	// Idempotent says that running the tool again under the same idempotency key changes nothing more.
	Idempotent bool      `json:"idempotent"`
	Execution  Execution `json:"execution"`
	// InputSchema and OutputSchema are JSON Schema 2020-12, objects at the top.
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Icon         string          `json:"icon,omitempty"`
	// RequiredPermission is a permission the principal must hold; none when empty.
	RequiredPermission string `json:"required_permission,omitempty"`
	// Tenants lists the tenants that may see the tool; all when empty.
	Tenants []string `json:"tenants,omitempty"`
	// Bundle is the bundle that a tool in code comes with: tenants without it do not see the tool. Empty for everybody's.
	Bundle string `json:"bundle,omitempty"`
	// Timeout bounds one attempt. In JSON: nanoseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxAttempts bounds the attempts of one call, over all workers and runs.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// ConcurrencyKey is CEL over input; calls with the same key run one after another.
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	// OutputSections says how parts of the output are shown to people. Nothing reads it yet but the check that it is JSON: it is kept in
	// the contract for a console.
	OutputSections json.RawMessage `json:"output_sections,omitempty"`
	// Confirm says that the tool has a boolean input `confirmed`: a call without it does nothing, and one with it acts. An agent's call
	// is then answered with requiresConfirmation, so that the agent asks; in a composition, an extraction or a call by itself it fails.
	Confirm bool `json:"confirm,omitempty"`
	// Undo names the tool that takes this one's effect back. A step of a composition whose `undo` names no tool calls it.
	Undo string `json:"undo,omitempty"`
	// Revision is raised by the author when behaviour changes and the contract does not.
	Revision int `json:"revision,omitempty"`
	// Implementation is "go" for a tool in code, "person" for one that a person answers, or the kind of its execution spec.
	Implementation string `json:"implementation,omitempty"`
}

// MayRetry reports whether jig may repeat a call of the tool that failed with err, without asking a person. A call that writes may be
// repeated when nothing happened (NotExecuted), or when the tool is idempotent and the repetition has the same idempotency key and
// input; other calls always. Whether a repetition is worthwhile is another question: see [Code.Retryable].
func (t Tool) MayRetry(err *Error) bool { return mayRetry(t.Permission.Writes(), t.Idempotent, err) }

func mayRetry(writes, idempotent bool, err *Error) bool {
	return !writes || idempotent || err != nil && err.NotExecuted
}

// ImplementationPerson is the implementation of a tool that a person answers: its calls wait for a reply and never run.
const ImplementationPerson = "person"

// Defaults of a tool.
const (
	DefaultToolTimeout = time.Minute
	DefaultMaxAttempts = 3
	MaxToolNameLength  = 64
)

var toolNameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+$`)

// CheckToolName refuses a name that is not category.actionTarget.
func CheckToolName(name string) error {
	if len(name) <= MaxToolNameLength && toolNameForm.MatchString(name) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a tool name", name).WithField("name").
		WithHint("use category.actionTarget, e.g. data.searchRecords, at most 64 characters")
}

// WithDefaults returns the contract with its defaults filled in.
func (t Tool) WithDefaults() Tool {
	setDefault(&t.Permission, PermissionWrite)
	setDefault(&t.Risk, RiskModerate)
	setDefault(&t.Approval, ApprovalAuto)
	setDefault(&t.Execution, ExecutionActivity)
	setDefault(&t.Timeout, DefaultToolTimeout)
	setDefault(&t.MaxAttempts, DefaultMaxAttempts)
	setDefault(&t.Implementation, "go")
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
