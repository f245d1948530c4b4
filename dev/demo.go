package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/jig-run/jig"
)

// demoAgent is the agent that the demo runs.
const demoAgent = "dependency-review"

// demo is the main job from start to end, before the user's eyes.
type demo struct {
	*options
	path, report, model, cli string
	yes                      bool
}

func demoCommand(o *options) *cobra.Command {
	d := &demo{options: o}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a real job to its end: a review of a Go module's licences, with an approval",
		Long: `Start everything, with data that are not kept, and let the agent dependency-review look at a Go module's direct
dependencies: it lists them, names their licences, and asks before it writes its report. On a terminal you are asked; with
--yes, or without a terminal, the demo approves by itself and says so.`,
		Example: `  dev demo
  dev demo --yes --path ../other/go.mod
  OPENAI_BASE_URL=http://localhost:11434/v1 dev demo --model openai/qwen3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&d.path, "path", "go.mod", "the go.mod to review")
	f.StringVar(&d.report, "report", "reports/dependency-review.md", "where the report goes")
	f.StringVar(&d.model, "model", "", "anthropic/… or openai/… in place of the deterministic script")
	f.BoolVar(&d.yes, "yes", false, "approve without asking")
	f.StringVar(&d.cli, "jig", "", "the jig program; default: the one beside this program, else `go run ./starter`")
	return cmd
}

func (d *demo) run(ctx context.Context) error {
	d.stack.Ephemeral = true
	r, err := d.start(ctx)
	if err != nil {
		return err
	}
	return errors.Join(d.review(ctx, r), r.stop(ctx))
}

func (d *demo) review(ctx context.Context, r *running) error {
	id := jig.NewSessionID()
	args := append(d.program(), "run", demoAgent, "--id", id, "--input", "path="+d.path, "--input", "report="+d.report, "--follow")
	if d.model != "" {
		args = append(args, "--model", d.model)
	}
	if !d.yes && !term.IsTerminal(int(os.Stdin.Fd())) {
		d.yes = true
		fmt.Fprintln(os.Stderr, "\nThere is no terminal to ask on: the demo approves by itself.")
	}
	if d.yes {
		args = append(args, "--yes")
	}
	page := fmt.Sprintf("%s/namespaces/%s/workflows/%s", r.UIAddress(), r.Namespace(), id)
	fmt.Fprintf(os.Stderr, "\nAgent %s reviews %s. Session %s, in the Web UI at\n  %s\n\n", demoAgent, d.path, id, page)
	if err := within(ctx, r, args); err != nil {
		return err
	}
	report, err := filepath.Abs(d.report)
	if err != nil {
		report = d.report
	}
	fmt.Fprintf(os.Stderr, "\nThe report:  %s\nThe session: %s\n", report, page)
	return d.linger(ctx, r)
}

// linger keeps the Web UI up on a terminal, so that the session can be looked at.
func (d *demo) linger(ctx context.Context, r *running) error {
	if d.yes || r.UIAddress() == "" {
		fmt.Fprintln(os.Stderr, "\nThe demo keeps no data and stops now; `make dev` starts a server that stays, with its Web UI.")
		return nil
	}
	fmt.Fprintln(os.Stderr, "\nEverything stays up until Ctrl-C.")
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.Failed():
		return err
	case err := <-r.broken():
		return err
	}
}

// program is the command that runs jig.
func (d *demo) program() []string {
	if d.cli != "" {
		return []string{d.cli}
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "jig")
		if found, err := exec.LookPath(beside); err == nil {
			return []string{found}
		}
	}
	return []string{"go", "run", "./starter"}
}
