package starter

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func (a *app) resultCommand() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "result SESSION [CALL]",
		Short: "Print the answer or the output of a session, or the result of one of its calls",
		Long: `Print the result of a session: the answer of an agent, or the output of a tool or a composition. With a call, print that call's
result in full. While there is no result yet, the exit code is 3; --wait waits for it.

JSON output for a session: that of "jig run"; for a call: {"session_id", "call", "tool", "status", "input", "result"?, …}.`,
		Example: `  jig result ses_…
  jig result ses_… 1.1/create
  jig result ses_… --wait --output json | jq .output`,
		Args: sessionArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				id := a.session(args[0])
				if wait {
					if err := a.awaitResult(cmd.Context(), e, id, args[1:]); err != nil {
						return err
					}
				}
				if len(args) == 2 {
					return a.callResult(cmd.Context(), e, id, args[1])
				}
				return a.sessionResult(cmd.Context(), e, id)
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the session, or the call, has ended")
	return cmd
}

// awaitResult waits until a session has ended or, if a call is given, until that call has.
func (a *app) awaitResult(ctx context.Context, e engine, id string, call []string) error {
	fo := &follower{app: a, engine: e, id: id, quiet: true}
	if len(call) == 0 {
		return fo.follow(ctx, 0)
	}
	fo.show = func(event jig.Event) error {
		if event.CallID != call[0] {
			return nil
		}
		record, err := e.Record(ctx, a.flags.tenant, id, call[0])
		if err == nil && record.Status.Final() {
			return errEnded
		}
		return err
	}
	if err := fo.follow(ctx, 0); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// errEnded ends following because a call has its result.
var errEnded = errors.New("the call has ended")

func (a *app) sessionResult(ctx context.Context, e engine, id string) error {
	r, err := e.SessionResult(ctx, a.flags.tenant, id)
	if err != nil {
		return err
	}
	if r.Status.Final() {
		return a.printReport(r)
	}
	if a.json() {
		if err := a.printJSON(r); err != nil {
			return err
		}
		return silent(exitWaiting)
	}
	a.say("session %s has not ended: it is %s; wait for it with: %s", id, a.statusWord(a.err, string(r.Status)), a.command("result", id, "--wait"))
	for _, p := range r.Pending {
		a.say("  %s %s waits for a person; see it with: %s", oneLine(p.Call, 0), oneLine(p.Tool, 0), a.command("approvals", "show", p.SessionID, p.Call))
	}
	if view, err := e.Status(ctx, a.flags.tenant, id); err == nil {
		a.sayHeld(view)
	}
	return silent(exitWaiting)
}

// callResult prints the result of one call.
func (a *app) callResult(ctx context.Context, e engine, id, call string) error {
	r, err := e.Record(ctx, a.flags.tenant, id, call)
	if err != nil {
		return err
	}
	code := callExit(r.Status)
	if !r.Status.Final() {
		code = exitWaiting
	}
	if a.json() {
		if err := a.printJSON(wholeRecord(r)); err != nil {
			return err
		}
		return silent(code)
	}
	if !r.Status.Final() {
		a.say("%s %s has no result yet: it is %s", oneLine(r.Call, 0), oneLine(r.Tool, 0), a.statusWord(a.err, string(r.Status)))
		if r.Child != "" {
			a.say("session %s answers it", oneLine(r.Child, 0))
		}
		return silent(code)
	}
	return a.printCall(protocol.CallResult{SessionID: r.SessionID, Call: r.Call, Status: r.Status, Result: r.Result})
}

// wholeRecord leaves out empty values, which are not JSON.
func wholeRecord(r protocol.CallRecord) protocol.CallRecord {
	r.Input = rawOrNil(r.Input)
	r.Result = callReport(protocol.CallResult{Result: r.Result}).Result
	return r
}
