package starter

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

type runFlags struct {
	task   string
	inputs []string
	model  string
	id     string
	follow bool
	detach bool
	yes    bool
	noWait bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run AGENT|COMPOSITION|FILE",
		Short: "Run an agent or a composition and wait until it ends",
		Long: `Run an agent, a composition or a prompt, registered or from a file, and wait until it ends. The session is
durable: it continues if this program is interrupted. Repeating a request with the same --id returns the existing session.`,
		Example: `  jig run dependency-review --input path=. --follow
  jig run ./my-agent.md --task "Summarize the README" --model anthropic/claude-sonnet-4-5
  jig run ./nightly.yaml --input since=2026-01-01 --yes
  jig run dependency-review --input @input.json --detach --output json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.detach && (f.follow || f.yes || f.noWait) {
				return usagef("--detach cannot be combined with --follow, --yes or --no-wait: it returns at once")
			}
			options, err := a.startOptions(args[0], f)
			if err != nil {
				return err
			}
			options.Source, options.Check = jig.SourceCLI, true
			return a.with(cmd.Context(), func(e engine) error { return a.runAny(cmd.Context(), e, options, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.task, "task", "", "task of the agent")
	flags.StringArrayVar(&f.inputs, "input", nil, "input: key=value (repeatable), @file.json, @- or a JSON object")
	flags.StringVar(&f.model, "model", "", "model to use instead of the agent's, e.g. anthropic/…, openai/…, script/…")
	flags.StringVar(&f.id, "id", "", "your own id for the session, e.g. order-7; repeating a request with its id returns the existing session")
	flags.BoolVar(&f.follow, "follow", false, "print events as they happen; on a terminal, prompt for approvals")
	flags.BoolVar(&f.detach, "detach", false, "print the session id and return at once")
	flags.BoolVar(&f.yes, "yes", false, "approve every call of this session that needs approval")
	flags.BoolVar(&f.noWait, "no-wait", false, "exit with code 3 as soon as nothing is running: it waits for a person, an event or a time, or is held back")
	return cmd
}

// startOptions builds the options from the agent's name or document and the flags, without the engine.
func (a *app) startOptions(agent string, f runFlags) (client.StartOptions, error) {
	o := client.StartOptions{
		Tenant: a.flags.tenant, ID: f.id, Agent: agent, Task: f.task, Model: f.model, Principal: a.principal(),
	}
	if f.id != "" {
		if err := client.CheckID(a.flags.tenant, f.id); err != nil {
			return o, usage(err)
		}
	}
	var err error
	if o.Input, o.Pairs, err = a.parseInputs(f.inputs); err != nil {
		return o, err
	}
	if !isFile(agent) {
		return o, nil
	}
	body, err := a.readFile(agent)
	if err != nil {
		return o, usage(err)
	}
	doc, problems := spec.Load(agent, body)
	if problems.OrNil() != nil {
		return o, usage(check([]spec.Document{doc}, problems, spec.Catalog{}))
	}
	if doc.Agent() == nil && doc.Execution() == nil {
		return o, usagef("%s is a %s; agents, compositions, prompts, tasks and thin tools can be run", agent, doc.Kind)
	}
	o.Agent, o.Document, o.DocumentName = doc.Name, string(body), agent
	return o, nil
}

// isFile reports whether a name refers to a document file rather than to an agent or a spec.
func isFile(name string) bool {
	return strings.ContainsAny(name, `/\`) || slices.Contains([]string{".md", ".yaml", ".yml", ".json"}, path.Ext(name)) || fileExists(name)
}

// runAny runs an agent, or calls an execution spec.
func (a *app) runAny(ctx context.Context, e engine, o client.StartOptions, f runFlags) error {
	isSpec, err := a.isSpec(ctx, e, o)
	if err != nil {
		return err
	}
	if !isSpec {
		return a.runSession(ctx, e, o, f)
	}
	if o.Task != "" || o.Model != "" {
		return usagef("--task and --model are for agents; %s is a composition", o.Agent)
	}
	if err := a.checkSpec(ctx, e, o); err != nil {
		return err
	}
	input := client.CallInput{
		Tenant: o.Tenant, Tool: o.Agent, Document: o.Document, DocumentName: o.DocumentName, Input: o.Input, Pairs: o.Pairs,
		Principal: o.Principal, Source: o.Source, Check: o.Check,
	}
	if o.Document != "" {
		input.Tool = ""
	}
	return a.runSpec(ctx, e, input, f)
}

// isSpec reports whether to run an execution spec rather than an agent. The kind of the document decides; without a document, the kind that
// is registered under the name does.
func (a *app) isSpec(ctx context.Context, e engine, o client.StartOptions) (bool, error) {
	if o.Document != "" {
		return spec.KindOf(o.DocumentName, []byte(o.Document)).IsExecution(), nil
	}
	named := jig.CheckToolName(o.Agent) == nil
	c, err := e.Catalog(ctx, a.flags.tenant)
	switch {
	case err == nil:
		return !slices.Contains(c.Agents, o.Agent) && (named || slices.Contains(c.Compositions, o.Agent)), nil
	case !named && noEngine(err): // start it as an agent: the worker that runs it reports an unknown name
		return false, nil
	}
	return false, err
}

// checkSpec checks the document of an execution spec against the catalog before it runs.
func (a *app) checkSpec(ctx context.Context, e engine, o client.StartOptions) error {
	if o.Document == "" {
		return nil
	}
	c, err := e.Catalog(ctx, a.flags.tenant)
	if err != nil {
		if noEngine(err) { // the worker that runs the call checks the document anyway
			return nil
		}
		return err
	}
	doc, problems := spec.Load(o.DocumentName, []byte(o.Document))
	docs, known := []spec.Document{doc}, catalogOf(&c)
	if err := a.readCalled(ctx, e, docs, &known); err != nil {
		return err
	}
	if problems = check(docs, problems, known); problems.OrNil() != nil {
		return usage(problems)
	}
	return nil
}

func (a *app) runSession(ctx context.Context, e engine, o client.StartOptions, f runFlags) error {
	started, err := e.Start(ctx, o)
	if err != nil {
		return err
	}
	id := started.SessionID
	if over, err := a.followStarted(ctx, e, started, f); over || err != nil {
		return err
	}
	result, err := e.Result(ctx, a.flags.tenant, id)
	if err != nil {
		return a.leave(ctx, id, err)
	}
	return a.report(ctx, e, result)
}

// followStarted follows a session until it has ended. over reports that there is nothing more to print, because the session was detached, waits
// for a person, or could not be followed.
func (a *app) followStarted(ctx context.Context, e engine, started client.Started, f runFlags) (over bool, err error) {
	id := started.SessionID
	if started.Existing {
		a.say("session %s already exists; nothing was started", a.err.bold(id))
	}
	if f.detach {
		return true, a.detached(id)
	}
	if !started.Existing {
		a.say("session %s started", a.err.bold(id))
	}
	fo := &follower{app: a, engine: e, id: id, noWait: f.noWait, mode: a.answerMode(f.follow, f.yes)}
	if f.follow {
		fo.show = func(event jig.Event) error { a.say("%s", a.eventLine(a.err, event)); return nil }
		fo.text = a.textOn(a.stderr, a.err)
	}
	err = fo.follow(ctx, 0)
	if errors.Is(err, errWaiting) {
		return true, a.printWaiting(fo.view)
	}
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound || ctx.Err() != nil {
		return true, a.leave(ctx, id, err)
	}
	return false, nil
}

// detached prints the id of a session that continues on its own.
func (a *app) detached(id string) error {
	if a.json() {
		return a.printJSON(struct {
			SessionID string `json:"session_id"`
			ClientID  string `json:"client_id,omitempty"`
		}{id, jig.ClientID(id)})
	}
	a.say("follow it with: %s", a.command("watch", id))
	return a.print("%s", id)
}

// leave prints how to return to a session that continues without this program.
func (a *app) leave(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil || errors.Is(err, errAborted) {
		a.say("\nthe session continues; follow it with: %s", a.command("watch", id))
		a.say("stop it with: %s", a.command("cancel", id))
	}
	return err
}

// printWaiting prints the result of --no-wait.
func (a *app) printWaiting(view jig.SessionView) error {
	if a.json() {
		if err := a.printJSON(protocol.ResultOf(view)); err != nil {
			return err
		}
	}
	return silent(exitWaiting)
}

// report prints how a session ended and returns its exit code as an error.
func (a *app) report(ctx context.Context, e engine, result client.PassResult) error {
	view, err := e.Status(ctx, a.flags.tenant, result.SessionID)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	return a.printReport(protocol.SessionResult{
		SessionID: result.SessionID, Status: result.Status, Answer: result.Answer, Reason: result.Reason,
		Passes: max(result.Passes, view.Pass), Calls: protocol.Counts(view.Counts), Error: result.Error,
	})
}

func (a *app) printReport(r protocol.SessionResult) error {
	var err error
	r.ClientID = jig.ClientID(r.SessionID)
	if a.json() {
		err = a.printJSON(r)
	} else {
		err = a.printRun(r)
	}
	if err != nil {
		return err
	}
	return silent(runExit(r))
}

func (a *app) printRun(r protocol.SessionResult) error {
	a.say("%s after %s; %s", a.statusWord(a.err, string(r.Status)), plural(r.Passes, "pass", "passes"), callCounts(r.Calls))
	if r.Error != nil {
		a.complain(r.Error)
	} else if r.Reason != "" && r.Reason != jig.ReasonAnswered {
		a.say("reason: %s", r.Reason)
	}
	switch {
	case len(r.Output) > 0:
		return a.print("%s", safeText(prettyJSON(r.Output)))
	case r.Answer != "":
		return a.print("%s", safeText(r.Answer))
	}
	return nil
}

// runExit returns the exit code of an ended session: 4 if one of its calls was denied or expired.
func runExit(r protocol.SessionResult) int {
	if r.Error != nil {
		if code := exitOf(r.Error); code == exitDenied {
			return code
		}
	}
	if r.Status != jig.StatusCompleted {
		return exitFailed
	}
	if r.Calls[jig.CallDenied]+r.Calls[jig.CallExpired] > 0 {
		return exitDenied
	}
	return exitDone
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// runSpec calls an execution spec and prints its output.
func (a *app) runSpec(ctx context.Context, e engine, input client.CallInput, f runFlags) error {
	started, err := e.StartCall(ctx, input, f.id)
	if err != nil {
		return err
	}
	if over, err := a.followStarted(ctx, e, started, f); over || err != nil {
		return err
	}
	result, err := e.WaitCall(ctx, a.flags.tenant, started.SessionID)
	if err != nil {
		return a.leave(ctx, started.SessionID, err)
	}
	view, err := e.Status(ctx, a.flags.tenant, started.SessionID)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	r := protocol.SessionResult{SessionID: started.SessionID, Status: view.Status, Passes: view.Pass, Calls: protocol.Counts(view.Counts)}
	whole, err := e.WholeResult(ctx, a.flags.tenant, result)
	if err != nil {
		return err
	}
	if whole != nil {
		r.Output, r.Error = rawOrNil(whole.Data), whole.Error
	}
	return a.printReport(r)
}
