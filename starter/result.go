package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/jsontext"
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
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			id := a.session(args[0])
			if wait {
				if err := a.awaitResult(ctx, e, id, args[1:]); err != nil {
					return err
				}
			}
			if len(args) == 2 {
				return a.callResult(ctx, e, id, args[1])
			}
			return a.sessionResult(ctx, e, id)
		}),
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
		return a.exitJSON(r, exitWaiting)
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
		return a.exitJSON(wholeRecord(r), code)
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

func (a *app) transcriptCommand() *cobra.Command {
	var instructions bool
	cmd := &cobra.Command{
		Use:   "transcript SESSION",
		Short: "Print what was asked, said and done in a session",
		Long: `Print what was asked and said in a session, and its calls with their outcome, oldest first. Inputs and results of calls are shortened to
2 KiB ("jig result SESSION CALL" prints them in full), other texts to 32 KiB.
JSON output: {"session_id", "opening": {"agent", "model", "instructions", "input", …}, "entries": [{"kind": "message"|"turn"|"call", …}]}.`,
		Example: `  jig transcript ses_…
  jig transcript ses_… --instructions
  jig transcript ses_… --output json | jq -r '.entries[] | select(.kind == "turn").text'`,
		Args: sessionArgs(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			return a.transcript(ctx, e, a.session(args[0]), instructions)
		}),
	}
	cmd.Flags().BoolVar(&instructions, "instructions", false, "also print the agent's instructions")
	return cmd
}

// transcript prints a transcript, page by page as text, or as one JSON document.
func (a *app) transcript(ctx context.Context, e engine, id string, instructions bool) error {
	var all protocol.Transcript
	pass, cursor := 0, ""
	for {
		page, err := ask(ctx, a, e, api.GetTranscript, protocol.TranscriptRequest{SessionID: id, Cursor: cursor})
		if err != nil {
			return err
		}
		if a.json() {
			if cursor == "" {
				all = page
			} else {
				all.Entries = append(all.Entries, page.Entries...)
			}
		} else if pass = a.printTranscript(page, instructions, pass); a.failed != nil {
			return a.failed
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if all.Next = ""; a.json() {
		all.Entries = append([]protocol.TranscriptEntry{}, all.Entries...)
		return a.printJSON(all)
	}
	return nil
}

// printTranscript prints a page. It returns the pass of its last entry, so that each pass is announced once.
func (a *app) printTranscript(page protocol.Transcript, instructions bool, pass int) (last int) {
	if page.Opening != nil {
		a.printOpening(page, instructions)
	}
	for _, entry := range page.Entries {
		if entry.Pass != pass {
			pass = entry.Pass
			a.line("\n%s", a.out.dim(fmt.Sprintf("pass %d", pass)))
		}
		a.line("%s", a.entryText(entry))
	}
	return pass
}

func (a *app) printOpening(page protocol.Transcript, instructions bool) {
	o := page.Opening
	rows := [][]string{{"session", a.out.bold(oneLine(page.SessionID, 0))}, {"agent", oneLine(o.Agent, 0)}}
	if o.Model != "" {
		rows = append(rows, []string{"model", oneLine(o.Model, 0)})
	}
	rows = append(rows, []string{"started", o.At.Local().Format(time.DateTime) + " by " + oneLine(o.RequestedBy, 0)})
	if len(o.Input) > 0 && string(o.Input) != "{}" {
		rows = append(rows, []string{"input", compact(o.Input, 400)})
	}
	a.table(rows)
	if instructions && o.Instructions != "" {
		a.line("\n%s\n%s", a.out.dim("instructions"), indent(safeText(o.Instructions), "  "))
	}
}

// entryText formats an entry for people.
func (a *app) entryText(entry protocol.TranscriptEntry) string {
	if entry.Kind == protocol.EntryCall {
		return a.callText(entry)
	}
	who := a.out.cyan(oneLine(cmp.Or(entry.By, "user"), 40))
	if entry.Kind == protocol.EntryTurn {
		who = a.out.bold(oneLine(cmp.Or(entry.Model, "model"), 80))
	}
	text := indent(safeText(entry.Text), "  ")
	if entry.Truncated {
		text += "\n  " + a.out.dim("(cut)")
	}
	return who + "\n" + text
}

func (a *app) callText(entry protocol.TranscriptEntry) string {
	head := fmt.Sprintf("%s %s %s", oneLine(entry.Call, 0), a.out.bold(oneLine(entry.Tool, 80)), a.statusWord(a.out, string(entry.Status)))
	if entry.EditedBy != "" {
		head += ", changed by " + oneLine(entry.EditedBy, 40)
	}
	lines := []string{head}
	if text := compact(entry.Input, 400); text != "" && text != "{}" {
		lines = append(lines, "  "+a.out.dim("in  ")+text)
	}
	out := oneLine(entry.Summary, 400)
	if entry.Error != nil {
		out = oneLine(string(entry.Error.Code)+": "+entry.Error.Message, 400)
	}
	if data := compact(entry.Result, 400); data != "" && data != "null" && entry.Error == nil {
		out = strings.TrimSpace(out + " " + a.out.dim(data))
	}
	if out != "" {
		lines = append(lines, "  "+a.out.dim("out ")+out)
	}
	if entry.Child != "" {
		lines = append(lines, "  → "+oneLine(entry.Child, 0))
	}
	return strings.Join(lines, "\n")
}

// compact formats a JSON value on one line, cut after limit characters.
func compact(raw json.RawMessage, limit int) string {
	if len(raw) == 0 {
		return ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return oneLine(string(raw), limit)
	}
	b, err := jsontext.Encode(v)
	if err != nil {
		return oneLine(string(raw), limit)
	}
	return oneLine(string(b), limit)
}
