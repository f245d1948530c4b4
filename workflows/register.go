// Package workflows is the durable part of the engine. [Pass] runs agent sessions, one pass at a time; [Call] runs a single tool
// call; [Composition] and [Extraction] answer calls that consist of other calls.
//
// Workflow code decides only in which order things happen and what to wait for. Activities do everything that reads, writes or computes
// on data. The package imports no store, no CEL and no spec parser.
//
// Four ideas explain most of it:
//
//   - A run holds references to calls and their states in a callTable, never their data. It starts those that are ready, and the store says
//     what became of them.
//   - Signals and updates go through one inbox and one activity, Hear, which decides what they change. Nothing is lost when a run ends: close
//     in pass.go drains every channel before the run continues as new.
//   - A composition, an extraction and a child session are workflows of their own. They report the calls that wait for people to the session
//     that started them ([Waiting]), so that one query shows everything that is open.
//   - What people see of a run, in search attributes and in the Web UI, follows from its state. status.go and describe.go write it.
//
// Begin with Pass in pass.go, then runCalls in calls.go and startReady in calltable.go. The histories in testdata must replay with the code.
package workflows

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// Moves says how runs move between versions of workers: each moves to the current version with its next task, so an approval that waits for days
// does not pin an old worker.
const Moves = workflow.VersioningBehaviorAutoUpgrade

// Register registers everything that a worker needs to run jig: the workflows, the engine's activities, the activities that clients start
// directly, and each of the given tools under its own name, which the Web UI shows. Calls of other tools also run under their tools'
// names, but through a dynamic activity, because tools that are documents are not known in advance.
//
// address is how people who use this machine reach Temporal. It stands in the commands that the Web UI shows. If it is empty, the commands use
// the address of the temporal command's own settings.
func Register(w worker.Registry, a *activities.Activities, tools []string, address string) {
	w.RegisterWorkflowWithOptions(reachedAt(address, Pass), workflow.RegisterOptions{Name: protocol.PassWorkflow})
	w.RegisterWorkflowWithOptions(reachedAt(address, Call), workflow.RegisterOptions{Name: protocol.CallWorkflow})
	w.RegisterWorkflowWithOptions(reachedAt(address, Composition), workflow.RegisterOptions{Name: protocol.CompositionWorkflow})
	w.RegisterWorkflowWithOptions(reachedAt(address, Extraction), workflow.RegisterOptions{Name: protocol.ExtractionWorkflow})

	named := func(name string, fn any) {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	named("Open", a.Open)
	named("OpenCall", a.OpenCall)
	named("Think", a.Think)
	named("AwaitResume", a.AwaitResume)
	named("AwaitStart", a.AwaitStart)
	named("StartsIn", a.StartsIn)
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

	named(protocol.Sweep, a.Sweep)
	for _, answer := range activities.Answers(a) {
		named(answer.Name, activities.Answering(a, answer))
	}
	for _, tool := range tools {
		named(tool, func(ctx context.Context, in activities.RunInput) (activities.Ran, error) { return a.RunTool(ctx, in) })
	}
	w.RegisterDynamicActivity(func(ctx context.Context, args converter.EncodedValues) (activities.Ran, error) {
		return runNamed(ctx, a, args)
	}, activity.DynamicRegisterOptions{})
}

// runNamed runs a call of a tool whose name is not registered, because the tool is a document or only another worker has it. If the input
// is not a call, it returns the error that Temporal returns for an unregistered activity.
func runNamed(ctx context.Context, a *activities.Activities, args converter.EncodedValues) (activities.Ran, error) {
	var in activities.RunInput
	name := activity.GetInfo(ctx).ActivityType.Name
	if err := args.Get(&in); err != nil || in.Call == "" {
		return activities.Ran{}, temporal.NewApplicationError("unable to find activityType="+name, "ActivityNotRegisteredError") //nolint:wrapcheck // it is created here
	}
	return a.RunTool(ctx, in)
}
