// Package starter implements the command line: commands that start sessions and single calls, answer calls that wait for a person, and
// show what happened. Command jig runs them, together with the commands that run jig's own processes.
//
// A command is a method of app that returns a [cobra.Command]; app.root lists them all. It reads its flags, and gets what it asks for from
// an engine: the methods of package client, over Temporal or, with a server, over HTTP. Nothing here reaches the database, and nothing here
// decides: what a command shows about terms, calls or documents comes from the package that owns them.
//
// Results go to stdout, with print and line for people and as one JSON document with --output json; see app.output. Messages to people go to
// stderr, with say. Texts of models, tools and documents pass through oneLine, safeText or quoted, so that they cannot pass for the command's
// own. An error ends the command; exit.go turns it into words and an exit code.
//
// A follower follows a session: it prints events and texts as they come, and answers or shows the calls that wait. Begin with app.go for the
// commands, follow.go for sessions, and card.go for what people see before they decide.
package starter

import (
	"context"
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

// Settings returns the sources of the settings: the flags, the environment and the file written by jig-dev.
func (s Shell) Settings() (client.SettingsRequest, error) { return s.app.request() }

// Print writes data as one JSON document if the user asked for JSON, and the text otherwise.
func (s Shell) Print(text string, data any) error {
	if s.app.json() {
		return s.app.printJSON(data)
	}
	s.app.write(text)
	return s.app.failed
}

// Tenant returns the tenant that the user chose.
func (s Shell) Tenant() string { return s.app.flags.tenant }

// ConfirmDependents shows what ends with a credential and, on a terminal, asks whether to go on, unless yes is set. Its error ends the program.
func (s Shell) ConfirmDependents(ctx context.Context, question string, yes bool, list []identity.Dependent) error {
	return s.app.confirmDependents(ctx, question, yes, list)
}

// Stderr returns the stream for logs and for messages to people.
func (s Shell) Stderr() io.Writer { return s.app.stderr }

// Failed returns an error that ends the program with exit code 1 and without a message. It is for commands whose output says what failed.
func (s Shell) Failed() error { return silent(exitFailed) }

// Misuse marks an error as a mistake in the arguments or settings, so that the program ends with exit code 2.
func (s Shell) Misuse(err error) error { return usage(err) }
