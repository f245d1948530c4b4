package workflows

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
)

// Register makes a worker able to run jig: the workflows, the engine's activities, the reads that clients start by
// themselves, and each tool of the given names under its own name, which is what the Web UI shows. A call of any other tool runs
// under its name too: tools that are documents are not known beforehand.
func Register(w worker.Registry, a *activities.Activities, tools []string) {
	w.RegisterWorkflowWithOptions(Pass, workflow.RegisterOptions{Name: PassWorkflow})
	w.RegisterWorkflowWithOptions(Call, workflow.RegisterOptions{Name: CallWorkflow})
	w.RegisterWorkflowWithOptions(Composition, workflow.RegisterOptions{Name: CompositionWorkflow})
	w.RegisterWorkflowWithOptions(Extraction, workflow.RegisterOptions{Name: ExtractionWorkflow})
	w.RegisterWorkflowWithOptions(Sweep, workflow.RegisterOptions{Name: SweepWorkflow})

	named := func(name string, fn any) {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	named("Open", a.Open)
	named("OpenCall", a.OpenCall)
	named("Think", a.Think)
	named("AwaitResume", a.AwaitResume)
	named("Admit", a.Admit)
	named("Hear", a.Hear)
	named("Expire", a.Expire)
	named("Settle", a.Settle)
	named("SettleCall", a.SettleCall)
	named("CallState", a.CallState)
	named("End", a.End)
	named("RunLocal", a.RunLocal)
	named("Standing", a.Standing)
	named("Compose", a.Compose)
	named("AbandonFrame", a.AbandonFrame)
	named("BeginChild", a.BeginChild)
	named("EndChild", a.EndChild)
	named("Sweep", a.Sweep)

	named(ReadStatus, a.Status)
	named(ReadApprovals, a.ListApprovals)
	named(ReadEvents, a.ListEvents)
	named(ReadCatalog, a.ListCatalog)
	named(ReadArtifact, a.FetchArtifact)
	named(WriteArtifact, a.Upload)
	named(ReadGrants, a.ListGrants)
	named(ReadPauses, a.ListPauses)
	named(ReadAudit, a.ReadAudit)
	named(ReadPending, a.ListPending)
	named(ReadCall, a.Show)
	named(ReadFigures, a.Figures)
	named(ReadEntity, a.Entity)
	named(ReadBacktest, a.Backtest)
	named(ReadPolicies, a.ListPolicies)
	named(WritePause, a.Pause)
	named(WriteResume, a.Resume)

	for _, tool := range tools {
		named(tool, func(ctx context.Context, in activities.RunInput) (activities.Ran, error) { return a.RunTool(ctx, in) })
	}
	w.RegisterDynamicActivity(func(ctx context.Context, args converter.EncodedValues) (activities.Ran, error) {
		return runNamed(ctx, a, args)
	}, activity.DynamicRegisterOptions{})
}

// runNamed runs a call under a name that is not registered: that of a tool which is a document, or which another worker has. What is
// not a call is answered as Temporal does for a name that nobody registered.
func runNamed(ctx context.Context, a *activities.Activities, args converter.EncodedValues) (activities.Ran, error) {
	var in activities.RunInput
	name := activity.GetInfo(ctx).ActivityType.Name
	if err := args.Get(&in); err != nil || in.Call == "" {
		return activities.Ran{}, temporal.NewApplicationError("unable to find activityType="+name, "ActivityNotRegisteredError") //nolint:wrapcheck // it is made here
	}
	return a.RunTool(ctx, in)
}
