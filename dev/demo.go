package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/client"
	"golang.org/x/term"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// The agent and the tools that the demo runs. All of them belong to the same bundle.
const (
	demoAgent   = "dependency-review"
	demoStart   = "review.start"
	demoPublish = "review.publish"
)

// demo shows the main job from start to end in two ways: with an agent that asks before it writes, and as an entity whose fields are
// filled by a graph of tasks.
type demo struct {
	*options
	path, report, model, cli string
	yes                      bool
	// pages lists the Web UI addresses of the sessions that the demo has run.
	pages []string
}

func demoCommand(o *options) *cobra.Command {
	d := &demo{options: o}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a real job to its end: a review of a Go module's dependencies, with approvals",
		Long: `Start everything with temporary data, and review a Go module's direct dependencies in two ways. First, the agent
dependency-review lists them, looks up their licenses, and asks before it writes its report. Then review.start creates a review that
is an entity: a graph of tasks fills in its modules, figures, a summary with checked claims, and a report; review.publish asks before
it writes the report. On a terminal you decide; with --yes, or without a terminal, the demo approves by itself and says so.
The servers get free ports, so that the demo runs beside another jig-dev.`,
		Example: `  jig-dev demo
  jig-dev demo --yes --path ../other/go.mod
  OPENAI_BASE_URL=http://localhost:11434/v1 jig-dev demo --model openai/qwen3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.hide(cmd.Flags().Changed)
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.path, "path", "go.mod", "the go.mod to review")
	f.StringVar(&d.report, "report", "reports/dependency-review.md", "file for the agent's report; the review's report is review.md in the same folder")
	f.StringVar(&d.model, "model", "", "anthropic/… or openai/… instead of the deterministic script")
	f.BoolVar(&d.yes, "yes", false, "approve without asking")
	f.StringVar(&d.cli, "jig", "", "the jig program; default: the one next to this program, or else `go run ./cmd/jig`")
	return cmd
}

func (d *demo) run(ctx context.Context) error {
	d.stack.Ephemeral = true
	r, err := d.start(ctx)
	if err != nil {
		return err
	}
	return errors.Join(d.both(ctx, r), r.stop(ctx))
}

func (d *demo) both(ctx context.Context, r *running) error {
	if !d.yes && !term.IsTerminal(int(os.Stdin.Fd())) {
		d.yes = true
		fmt.Fprintln(os.Stderr, "\nThere is no terminal to ask on, so the demo approves by itself.")
	}
	if err := d.byAgent(ctx, r); err != nil {
		return err
	}
	if err := d.asEntity(ctx, r); err != nil {
		return err
	}
	return d.linger(ctx, r)
}

// byAgent runs the job with the agent.
func (d *demo) byAgent(ctx context.Context, r *running) error {
	id := jig.SessionID(jig.DefaultTenant, "demo-"+strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
	said := fmt.Sprintf("run %s --input path=%s", demoAgent, d.path)
	args := append(d.program(), "run", demoAgent, "--id", id, "--input", "path="+d.path, "--input", "report="+d.report)
	if d.model != "" {
		args = append(args, "--model", d.model)
	}
	how := "--follow" // on a terminal: print each step, and ask the user when a decision is needed
	if d.yes {
		how = "--yes"
	}
	fmt.Fprintf(os.Stderr, `
1. An agent lists the modules that %s requires, looks up all their licenses in parallel, and asks before it writes its report.

  $ jig %s %s
`, d.path, said, how)
	d.page(r, "the agent's session", id)
	fmt.Fprintln(os.Stderr)
	if err := within(ctx, r, append(args, how)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\nThe report: %s\n", whole(d.report))
	return nil
}

// page records and prints the address at which the Web UI shows a session. It does nothing with --yes or without a Web UI.
func (d *demo) page(r *running, what, session string) {
	if d.yes || r.UIAddress() == "" {
		return
	}
	line := fmt.Sprintf("%s: %s/namespaces/%s/workflows/%s", what, r.UIAddress(), r.Namespace(), session)
	d.pages = append(d.pages, line)
	fmt.Fprintf(os.Stderr, "  %s\n", line)
}

// whole returns an absolute path, so that people can click on it.
func whole(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// asEntity creates a review as an entity, follows the tasks that fill it, and publishes it.
func (d *demo) asEntity(ctx context.Context, r *running) error {
	c, err := client.Dial(ctx, client.Options{Temporal: sdk.Options{HostPort: r.TemporalAddress(), Namespace: r.Namespace()}})
	if err != nil {
		return fmt.Errorf("the demo: %w", err)
	}
	defer c.Close()
	input := map[string]string{"module": d.path}
	if d.model != "" {
		input["model"] = d.model
	}
	fmt.Fprintf(os.Stderr, `
2. The same review as an entity: a tool creates it and answers at once. A graph of tasks then fills in its fields; each task runs as
soon as the tasks it depends on have finished.

  $ jig trigger %s --input module=%s
`, demoStart, d.path)
	var made spec.ThinResult
	began := time.Now()
	if err := call(ctx, c, demoStart, input, &made); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  answered after %d ms: review %s, filled by session %s\n", time.Since(began).Milliseconds(), made.EntityID, made.SessionID)
	d.page(r, "the review's tasks", made.SessionID)
	fmt.Fprintln(os.Stderr)
	if err := follow(ctx, c, made); err != nil {
		return err
	}
	if err := tell(ctx, c, made.EntityID); err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(d.report), "review.md")
	fmt.Fprintf(os.Stderr, "\nThe report is published after a person has approved it:\n\n  $ jig trigger %s --input id=%s --input path=%s\n\n", demoPublish, made.EntityID, path)
	args := append(d.program(), "trigger", demoPublish, "--input", "id="+made.EntityID, "--input", "path="+path)
	if d.yes {
		args = append(args, "--yes")
	}
	if err := within(ctx, r, args); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\nThe report: %s\n", whole(path))
	return nil
}

// call makes one call and reads its data.
func call(ctx context.Context, c *client.Client, tool string, input, data any) error {
	raw, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("the input of %s: %w", tool, err)
	}
	result, err := c.Trigger(ctx, client.CallInput{Tool: tool, Input: raw, Principal: jig.Principal{ID: "demo", Claimed: true}}, "")
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	given, err := c.WholeResult(ctx, jig.DefaultTenant, result)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", tool, err)
	case given == nil:
		return fmt.Errorf("%s is %s and has no result", tool, result.Status)
	case given.Error != nil:
		return fmt.Errorf("%s: %w", tool, given.Error)
	}
	if err := json.Unmarshal(given.Data, data); err != nil {
		return fmt.Errorf("the result of %s: %w", tool, err)
	}
	return nil
}

// follow shows the tasks of the review as they end, and counts the lookups of its modules.
func follow(ctx context.Context, c *client.Client, made spec.ThinResult) error {
	p := progress{review: made.EntityID, began: time.Now()}
	if err := c.Watch(ctx, jig.DefaultTenant, made.SessionID, 0, p.event); err != nil {
		return fmt.Errorf("following the review: %w", err)
	}
	return nil
}

// progress is the state of a review that the demo follows.
type progress struct {
	review string
	began  time.Time
	// looked counts the modules that were found in the module cache, blind the modules that were not.
	looked, blind int
}

func (p *progress) event(e jig.Event) error {
	//nolint:exhaustive // only these events say how a task ended
	switch e.Type {
	case jig.EventTaskCompleted, jig.EventTaskFailed, jig.EventTaskSkipped:
	default:
		return nil
	}
	var about struct {
		EntityID string    `json:"entity_id"`
		Task     string    `json:"task"`
		Because  string    `json:"because"`
		Error    jig.Error `json:"error"`
	}
	if err := json.Unmarshal(e.Data, &about); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if about.EntityID != p.review {
		p.count(about.Task, e.Type)
		return nil
	}
	line := "✓ " + about.Task
	switch {
	case e.Type == jig.EventTaskFailed:
		line = "✗ " + about.Task + ": " + about.Error.Message
	case e.Type == jig.EventTaskSkipped:
		line = "– " + about.Task + ", because of " + about.Because
	case about.Task == "record":
		line += fmt.Sprintf(" (%s looked up)", modules(p.looked+p.blind))
		if p.blind > 0 {
			line += fmt.Sprintf("; nothing is known about %d: is the module cache filled?", p.blind)
		}
	}
	fmt.Fprintf(os.Stderr, "  %5.1f s  %s\n", time.Since(p.began).Seconds(), line)
	return nil
}

// count counts a module by the end of the task that looks it up; it ignores other tasks.
func (p *progress) count(task string, ended jig.EventType) {
	switch {
	case task != "inspect":
	case ended == jig.EventTaskCompleted:
		p.looked++
	case ended == jig.EventTaskFailed:
		p.blind++
	}
}

// tell prints the checked claims of the summary.
func tell(ctx context.Context, c *client.Client, id string) error {
	var method struct{ Value string }
	var checked struct {
		Value []entity.TextClaim
	}
	for field, into := range map[string]any{"method": &method, "citations": &checked} {
		if err := call(ctx, c, "entities.get", map[string]string{"id": id, "field": field}, into); err != nil {
			return err
		}
	}
	if checked.Value == nil {
		return jig.Errorf(jig.CodeInvalidOutput, "the claims of the review %s were not accepted", id).WithHint("see the errors of its tasks above")
	}
	fmt.Fprintf(os.Stderr, "\nThe summary makes %d claims, and each cites modules of this review:\n\n", len(checked.Value))
	for _, claim := range checked.Value {
		fmt.Fprintf(os.Stderr, "  ✓ %s (cites %s)\n", claim.Text, modules(len(claim.SourceEntityIDs)))
	}
	fmt.Fprintf(os.Stderr, "\nMethod: %s.\n", method.Value)
	return nil
}

// modules formats a number of modules as text.
func modules(n int) string {
	if n == 1 {
		return "1 module"
	}
	return fmt.Sprintf("%d modules", n)
}

// linger keeps the Web UI running if the demo runs on a terminal, so that the user can look at the session.
func (d *demo) linger(ctx context.Context, r *running) error {
	if d.yes || r.UIAddress() == "" {
		fmt.Fprintln(os.Stderr, "\nThe demo keeps no data and stops now; `jig-dev` starts a server that keeps running, with its Web UI.")
		return nil
	}
	fmt.Fprintf(os.Stderr, "\nEverything stays up until Ctrl-C, and the Web UI shows\n  %s\n", strings.Join(d.pages, "\n  "))
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.Failed():
		return err
	case err := <-r.broken():
		return err
	}
}

// program returns the command that runs jig.
func (d *demo) program() []string {
	if d.cli != "" {
		return []string{d.cli}
	}
	if found := besides(); found != "" {
		return []string{found}
	}
	return []string{"go", "run", "./cmd/jig"}
}

// besides returns the path of the jig command line in the folder of this program, or "" if there is none.
func besides() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	found, err := exec.LookPath(filepath.Join(filepath.Dir(self), "jig"))
	if err != nil {
		return ""
	}
	return found
}
