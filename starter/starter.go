// Package starter implements the command line: commands that start sessions and single calls, answer calls that wait for a person, and
// show what happened. They reach the engine through package client, never through the database. Command jig runs them, together with the
// commands that run jig's own processes.
package starter

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
)

// Program is one run of the command line.
type Program struct {
	// Args begins with the program's own name, like [os.Args].
	Args []string
	// Environ is the environment, in the form of [os.Environ].
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Processes returns the commands that run jig's own processes, such as the worker. The help lists them in their own section. It may be
	// nil.
	Processes func(Shell) []*cobra.Command
}

// Run runs the program and returns its exit code; the help of the root command explains the codes.
func (p Program) Run(ctx context.Context) int {
	return p.app().run(ctx, p.Args[1:])
}

// Command returns the root of the program's commands.
func (p Program) Command() *cobra.Command { return p.app().root() }

func (p Program) app() *app {
	a := newApp(p.Args[0], p.Environ, p.Stdin, p.Stdout, p.Stderr)
	a.processes = p.Processes
	return a
}

// Shell gives the commands of [Program.Processes] access to the settings and the output of the command line. Its methods need the parsed
// flags, so they may only be called while a command runs.
type Shell struct{ app *app }

// Settings returns the sources of the settings: the flags, the environment and the file written by `make dev`.
func (s Shell) Settings() (client.SettingsRequest, error) { return s.app.request() }

// Print writes data as one JSON document if the user asked for JSON, and the text otherwise.
func (s Shell) Print(text string, data any) error {
	if s.app.json() {
		return s.app.printJSON(data)
	}
	if _, err := io.WriteString(s.app.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Tenant returns the tenant that the user chose.
func (s Shell) Tenant() string { return s.app.flags.tenant }

// Ends shows what ends with a credential and, on a terminal, asks whether to go on, unless yes is set. Its error ends the program.
func (s Shell) Ends(ctx context.Context, question string, yes bool, list []identity.Dependent) error {
	return s.app.ends(ctx, question, yes, list)
}

// Stderr returns the stream for logs and for messages to people.
func (s Shell) Stderr() io.Writer { return s.app.stderr }

// Failed returns an error that ends the program with exit code 1 and without a message. It is for commands whose output says what failed.
func (s Shell) Failed() error { return silent(exitFailed) }

// Misuse marks an error as a mistake in the arguments or settings, so that the program ends with exit code 2.
func (s Shell) Misuse(err error) error { return usage(err) }
