package starter

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// triggerFlags set a call's id and determine what happens if the call waits for a person.
type triggerFlags struct {
	id     string
	yes    bool
	noWait bool
}

// add adds the flags; yes is the description of --yes.
func (f *triggerFlags) add(cmd *cobra.Command, yes string) {
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "your own id for the call, e.g. order-7; repeating a request with its id returns the existing call")
	flags.BoolVar(&f.yes, "yes", false, yes)
	flags.BoolVar(&f.noWait, "no-wait", false, "exit with code 3 as soon as nothing is running: it waits for a person, an event or a time, or is held back")
}

func (a *app) triggerCommand() *cobra.Command {
	var f triggerFlags
	var inputs []string
	cmd := &cobra.Command{
		Use:   "trigger TOOL",
		Short: "Run one tool call without a model",
		Long: `Run a single durable tool call. It is admitted, approved, recorded and run exactly once, like a call from a model. Quick tools answer at
once. Repeating a request with the same --id returns the existing call; another request with that id is a conflict.`,
		Example: `  jig trigger deps.license --input module=go.temporal.io/sdk --input version=v1.50.0
  jig trigger file.write --input @page.json --yes`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := client.CallInput{Tool: args[0]}
			err := jig.CheckToolName(call.Tool)
			if err != nil {
				return usage(err)
			}
			if call.Input, call.Pairs, err = a.parseInputs(inputs); err != nil {
				return err
			}
			return a.trigger(cmd.Context(), call, f)
		},
	}
	cmd.Flags().StringArrayVar(&inputs, "input", nil, "input: key=value (repeatable), @file.json, @- or a JSON object")
	f.add(cmd, "approve the call if it needs approval")
	return cmd
}

// trigger makes one call as the user, in the user's tenant, and prints its result.
func (a *app) trigger(ctx context.Context, call client.CallInput, f triggerFlags) error {
	return a.triggerMade(ctx, f, func(engine) (client.CallInput, error) { return call, nil })
}

// triggerMade is trigger for a call that depends on what is registered or stored.
func (a *app) triggerMade(ctx context.Context, f triggerFlags, made func(e engine) (client.CallInput, error)) error {
	if f.id != "" {
		if err := client.CheckID(a.flags.tenant, f.id); err != nil {
			return usage(err)
		}
	}
	return a.with(ctx, func(e engine) error {
		call, err := made(e)
		if err != nil {
			return err
		}
		call.Tenant, call.Principal, call.Source = a.flags.tenant, a.principal(), jig.SourceCLI
		return a.runCall(ctx, e, call, f)
	})
}

// runCall makes a call, handles approvals while it waits, and prints its result.
func (a *app) runCall(ctx context.Context, e engine, input client.CallInput, f triggerFlags) error {
	if f.noWait {
		return a.runCallNoWait(ctx, e, input, f)
	}
	result, err := e.Trigger(ctx, input, f.id)
	if err != nil {
		if jig.AsError(err).Reason == client.ReasonNoWorker {
			a.say("the call is stored as session %s and runs as soon as a worker is available", result.SessionID)
		}
		return err
	}
	if result.Status.Final() {
		return a.printCall(result)
	}
	fo := &follower{app: a, engine: e, id: result.SessionID, mode: a.answerMode(true, f.yes)}
	if err = fo.handleWaiting(ctx); err == nil { // it may wait again, for example for a reconciliation
		err = fo.follow(ctx, 0)
	}
	session := result.SessionID
	if err == nil {
		result, err = e.WaitCall(ctx, a.flags.tenant, session)
	}
	if err != nil {
		return a.leave(ctx, session, err)
	}
	return a.printCall(result)
}

// runCallNoWait makes a call and prints its result or, as soon as nothing in its session is running, what it waits for.
func (a *app) runCallNoWait(ctx context.Context, e engine, input client.CallInput, f triggerFlags) error {
	input.Check = true
	started, err := e.StartCall(ctx, input, f.id)
	if err != nil {
		return err
	}
	fo := &follower{app: a, engine: e, id: started.SessionID, noWait: true, mode: a.answerMode(false, f.yes)}
	err = fo.follow(ctx, 0)
	if errors.Is(err, errWaiting) {
		waiting := client.CallResult{SessionID: started.SessionID, ClientID: started.ClientID, Call: jig.CallID(1, 1), Status: jig.CallWaiting}
		for _, c := range fo.view.Calls {
			if c.Call == waiting.Call {
				waiting.Status = c.Status
			}
		}
		waiting.Pending = protocol.WaitingCalls(fo.view)
		return a.printWaitingCall(waiting)
	}
	if err != nil {
		if jig.AsError(err).Reason == client.ReasonNoWorker {
			a.say("the call is stored as session %s and runs as soon as a worker is available", started.SessionID)
		}
		return a.leave(ctx, started.SessionID, err)
	}
	result, err := e.WaitCall(ctx, a.flags.tenant, started.SessionID)
	if err != nil {
		return err
	}
	return a.printCall(result)
}

// printWaitingCall prints the result of --no-wait.
func (a *app) printWaitingCall(waiting client.CallResult) error {
	if a.json() {
		if err := a.printJSON(callReport(waiting)); err != nil {
			return err
		}
	}
	return silent(exitWaiting)
}

// callReport returns the JSON output of `trigger`, which has the same shape as the client's result.
func callReport(r client.CallResult) client.CallResult {
	if r.Result != nil {
		result := *r.Result
		result.Data = rawOrNil(result.Data)
		r.Result = &result
	}
	return r
}

func (a *app) printCall(r client.CallResult) error {
	if a.json() {
		return a.exitJSON(callReport(r), callExit(r.Status))
	}
	a.say("%s %s (%s)", r.Call, a.statusWord(a.err, string(r.Status)), r.SessionID)
	if r.Result == nil {
		return silent(callExit(r.Status))
	}
	if r.Result.Error != nil {
		a.complain(r.Result.Error)
		return silent(callExit(r.Status))
	}
	if r.Result.Summary != "" {
		a.say("%s", oneLine(r.Result.Summary, 200))
	}
	a.sayEntity(r.Result.Data)
	a.sayGrant(r.Result.Data)
	text := cmp.Or(r.Result.Markdown, prettyJSON(r.Result.Data))
	if text == "" {
		return silent(callExit(r.Status))
	}
	a.line("%s", safeText(text))
	return silent(callExit(r.Status))
}

func callExit(status jig.CallStatus) int {
	switch status { //nolint:exhaustive // the others are failures
	case jig.CallSucceeded, jig.CallDuplicate:
		return exitDone
	case jig.CallDenied, jig.CallExpired:
		return exitDenied
	case jig.CallWaiting, jig.CallUnknown:
		return exitWaiting
	default:
		return exitFailed
	}
}
