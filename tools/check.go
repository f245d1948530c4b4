package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// checkContract refuses a contract that contradicts itself or lacks what a caller needs.
func checkContract(t Tool) error {
	c := t.contract
	bad := func(field, format string, args ...any) error {
		return unfit(c, field, jig.Errorf(jig.CodeInvalidInput, format, args...))
	}
	switch {
	case t.document:
		return bad("implementation", "a document defines it; only tools in code are registered")
	case t.handler == nil:
		return bad("implementation", "it has no function")
	case c.Previews && t.preview == nil:
		return bad("previews", "it has no function for previews; pass tools.WithPreview, or call Previewed")
	case strings.TrimSpace(c.Description) == "":
		return bad("description", "say when to use the tool and what it returns")
	case !slices.Contains([]jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}, c.Permission):
		return bad("permission", "%q is not one of read, draft, write, destructive", c.Permission)
	case !slices.Contains([]jig.Risk{jig.RiskSafe, jig.RiskModerate, jig.RiskHigh}, c.Risk):
		return bad("risk", "%q is not one of safe, moderate, high", c.Risk)
	case !slices.Contains([]jig.ApprovalPolicy{jig.ApprovalAuto, jig.ApprovalAlwaysAsk}, c.Approval):
		return bad("approval", "%q is not one of auto, always_ask", c.Approval)
	case !slices.Contains([]jig.Execution{jig.ExecutionActivity, jig.ExecutionLocal}, c.Execution):
		return bad("execution", "%q is not one of activity, local", c.Execution)
	case c.Execution == jig.ExecutionLocal && (c.Permission != jig.PermissionRead || !c.Idempotent):
		return bad("execution", "local is for tools that only read and are idempotent")
	case c.Timeout < 0:
		return bad("timeout", "it is negative")
	case c.MaxAttempts < 0:
		return bad("max_attempts", "it is negative")
	case c.RetryFor < 0:
		return bad("retry_for", "it is negative")
	case c.OutputSections != nil && !json.Valid(c.OutputSections):
		return bad("output_sections", "it is not JSON")
	}
	if err := c.Labels.Check(); err != nil {
		return unfit(c, "", jig.AsError(err))
	}
	if err := jig.CheckMarks(c.InputSchema); err != nil {
		return unfit(c, "input_schema", jig.AsError(err))
	}
	return nil
}
