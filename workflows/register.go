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

// These signals pass between a session and the compositions and sessions that answer its calls. Other programs must not send them.
const (
	// signalWake tells a composition about a decision on one of its calls, or that an event arrived.
	signalWake = "jig.wake"
	// signalYield asks a composition to end in its current state, because another workflow will continue it.
	signalYield = "jig.yield"
	// signalWaiting tells a session which calls wait for a person in the composition or session that answers one of its calls.
	signalWaiting = "jig.waiting"
)

// signals returns the channel of a signal. Temporal's Web UI shows the signal with its description.
func signals(ctx workflow.Context, name string) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: signalDescription(name)})
}

// internal begins the descriptions of signals that only jig sends. Temporal lists every signal that a workflow receives.
const internal = "Internal: do not send it. "

// signalDescription returns what a signal does, with an example of its input.
func signalDescription(name string) string {
	switch name {
	case protocol.SignalApprove:
		return `Approve a call that waits: {"call":"3.1","by":"ana"}`
	case protocol.SignalDeny:
		return `Deny a call that waits: {"call":"3.1","by":"ana","reason":"not yet"}`
	case protocol.SignalDelegate:
		return `Delegate your decision about a call: {"call":"3.1","by":"ana","to":"carl"}`
	case protocol.SignalAnswer:
		return `Answer a question: {"call":"3.1","by":"ana","value":"eu"}`
	case protocol.SignalReconcile:
		return `Say what became of a call whose outcome is unknown: {"call":"3.1","by":"ana","outcome":"happened"}; or not_happened, or give_up`
	case protocol.SignalMessage:
		return `Send a message to the agent: {"text":"Use the short form","by":"ana"}`
	case protocol.SignalEvent:
		return `Report an event to compositions that wait for it: {"name":"paid","data":{"order":"2026-0042"}}`
	case protocol.SignalSettled:
		return internal + "Says that a call whose outcome was unknown has been settled."
	case signalWaiting:
		return internal + "Says which calls wait for people in a composition or a session that this session started."
	case signalWake:
		return internal + "Says that somebody decided about a step, or that an event arrived."
	case signalYield:
		return internal + "Asks this workflow to end, because another one continues the composition."
	}
	return ""
}

// heardWords says what a signal or an update does, for the summary of the activity that applies it.
func heardWords(name string) string {
	switch name {
	case protocol.SignalMessage:
		return "take a message to the agent"
	case protocol.SignalEvent:
		return "take an event"
	case protocol.SignalAnswer:
		return "apply an answer to a question"
	case protocol.SignalReconcile:
		return "apply what a person says about an unknown outcome"
	}
	return "apply a decision about a call"
}

// updateOptions returns the options of an update's handler, with what the update does and an example of its input.
func updateOptions(name string) workflow.UpdateHandlerOptions {
	var text string
	switch name {
	case protocol.UpdateDecide:
		text = `Decide about calls that wait, and learn the outcome: {"call":"3.1","by":"ana","answer":"approve"}; or deny, or delegate`
	case protocol.UpdateReconcile:
		text = `Say what became of a call whose outcome is unknown, and learn whether that counts: {"call":"3.1","by":"ana","outcome":"happened"}`
	case protocol.UpdateAnswer:
		text = `Answer a question, and learn whether the answer counts: {"call":"3.1","by":"ana","value":"eu"}`
	case protocol.UpdateWait:
		text = "Wait until the call has its result or waits for a person, and return its state. It takes no input."
	}
	return workflow.UpdateHandlerOptions{Description: text}
}
