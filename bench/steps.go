package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
)

// StepsInput is the input of the composition baselines: the number of calls of a tool, one after another.
type StepsInput struct {
	Tenant string
	Tool   string
	Steps  int
}

// Steps is the baseline B0 for a composition: the same calls written by hand with the SDK, one after another in one run. The input of each call
// is one more than the output of the previous call. A local activity admits the call, and an activity runs it with the same Go function as jig.
// The ledger and the events are therefore the same. It lacks the composition language, undo on cancellation, and a bounded history.
func Steps(ctx workflow.Context, in StepsInput) (*toolOutput, error) {
	var a *activities.Activities
	var e *engine
	ctx = baselineOptions(ctx)
	ref := protocol.SessionRef{Tenant: in.Tenant, SessionID: workflow.GetInfo(ctx).WorkflowExecution.ID}
	var opened activities.Opened
	err := workflow.ExecuteLocalActivity(ctx, a.OpenCall, activities.OpenCallInput{
		SessionRef: ref,
		Call:       protocol.CallInput{Tool: in.Tool, Input: json.RawMessage(`{"n":1}`), Principal: jig.Principal{ID: "bench"}},
	}).Get(ctx, &opened)
	if err != nil {
		return nil, err //nolint:wrapcheck // a workflow returns Temporal's own errors
	}
	for n := 1; n <= in.Steps; n++ {
		step := StepInput{SessionRef: ref, Tool: in.Tool, Step: n}
		var call string
		if err := workflow.ExecuteLocalActivity(ctx, e.AdmitStep, step).Get(ctx, &call); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		var ran activities.Ran
		if err := workflow.ExecuteActivity(ctx, in.Tool, activities.RunInput{SessionRef: ref, Call: call}).Get(ctx, &ran); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
	}
	var settled activities.Settled
	err = workflow.ExecuteLocalActivity(ctx, a.SettleCall, activities.PassRef{SessionRef: ref, Pass: opened.Pass}).Get(ctx, &settled)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	var last toolOutput
	err = workflow.ExecuteLocalActivity(ctx, e.StepOutput, StepInput{SessionRef: ref, Step: in.Steps}).Get(ctx, &last)
	return &last, err //nolint:wrapcheck // as above
}

// StepInput names a step of the baseline.
type StepInput struct {
	protocol.SessionRef
	Tool string
	Step int
}

// AdmitStep admits the call of one step in the same way as a composition's call: it checks the input against the tool's schema, asks
// policy, computes the digest, and stores the call in the ledger. It returns the call's id.
func (e *engine) AdmitStep(ctx context.Context, in StepInput) (string, error) {
	before, err := e.StepOutput(ctx, StepInput{SessionRef: in.SessionRef, Step: in.Step - 1})
	if err != nil {
		return "", err
	}
	tool, ok := e.registry.Tool(in.Tool)
	if !ok {
		return "", fmt.Errorf("there is no tool %s", in.Tool)
	}
	call := jig.Call{
		Tenant: in.Tenant, SessionID: in.SessionID, ID: jig.CallID(1, in.Step), Pass: 1, Ordinal: in.Step, Tool: tool.Name,
		Version: tool.Version, Idempotent: tool.Idempotent, Status: jig.CallReserved, Input: fmt.Appendf(nil, `{"n":%d}`, before.N+1),
	}
	if err := e.registry.Validate(tool.Name, call.Input); err != nil {
		return "", err
	}
	ruling, err := policy.NewSet().Rule(ctx, tool, call, jig.Session{}, time.Now())
	if err != nil {
		return "", err
	}
	if ruling.Verdict != jig.VerdictRun {
		return "", fmt.Errorf("the verdict of policy on %[2]s is %[1]s", ruling.Verdict, tool.Name)
	}
	call.Verdict, call.Reasons, call.PolicyVersion = ruling.Verdict, ruling.Reasons, ruling.PolicyVersion
	if call.Digest, err = stepDigest(e.store.Installation(), call); err != nil {
		return "", err
	}
	err = e.store.Admit(ctx, ledger.Admission{Tenant: in.Tenant, SessionID: in.SessionID, Pass: 1, Calls: []jig.Call{call}})
	return call.ID, err
}

// StepOutput returns the output of a step, or a zero output for the step before the first one.
func (e *engine) StepOutput(ctx context.Context, in StepInput) (out toolOutput, err error) {
	if in.Step < 1 {
		return out, nil
	}
	call, err := e.store.Call(ctx, in.Tenant, in.SessionID, jig.CallID(1, in.Step))
	if err != nil {
		return out, err
	}
	if call.Result == nil || !call.Result.Success {
		return out, fmt.Errorf("call %s is %s", call.ID, call.Status)
	}
	if err := json.Unmarshal(call.Result.Data, &out); err != nil {
		return out, fmt.Errorf("read the result of %s: %w", call.ID, err)
	}
	return out, nil
}

// stepDigest returns the digest that is checked when the call runs. Because the members are sorted and nothing needs escaping,
// encoding/json writes the RFC 8785 form.
func stepDigest(installation string, c jig.Call) (string, error) {
	document, err := json.Marshal(struct {
		Call         string          `json:"call"`
		Input        json.RawMessage `json:"input"`
		Installation string          `json:"installation"`
		Policy       string          `json:"policy_version"`
		Preview      json.RawMessage `json:"preview"`
		Session      string          `json:"session"`
		Tenant       string          `json:"tenant"`
		Tool         string          `json:"tool"`
		V            int             `json:"v"`
		Version      string          `json:"version"`
	}{c.ID, c.Input, installation, c.PolicyVersion, nil, c.SessionID, c.Tenant, c.Tool, 2, c.Version})
	if err != nil {
		return "", fmt.Errorf("digest call %s: %w", c.ID, err)
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:]), nil
}

// BareSteps is the same chain without a store, to measure the cost of Temporal alone. Its results are shown but have no target.
func BareSteps(ctx workflow.Context, in StepsInput) (*toolOutput, error) {
	ctx = baselineOptions(ctx)
	for n := range in.Steps {
		if err := workflow.ExecuteLocalActivity(ctx, nothing, n).Get(ctx, nil); err != nil {
			return nil, err //nolint:wrapcheck // a workflow returns Temporal's own errors
		}
		if err := workflow.ExecuteActivity(ctx, nothingActivity, n).Get(ctx, nil); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
	}
	return &toolOutput{N: in.Steps}, nil
}
