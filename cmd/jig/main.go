// Command jig is all of jig in one program: the command line, which starts and watches sessions and decides the calls that wait for a
// person, and the commands that run jig itself: `jig worker`, `jig server`, `jig migrate`, `jig mark-restored`, `jig api-key`,
// `jig root-key`, `jig server-key`, `jig openapi` and `jig selftest`.
//
// The command line is package starter. The commands here read the settings of a worker or a server and call package worker or package server;
// they contain no rules. docs_test.go checks that every command in the documentation exists.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/starter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := starter.Program{
		Args: os.Args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Processes: processes,
	}.Run(ctx)
	stop()
	os.Exit(code)
}

// processes returns the commands that run jig itself.
func processes(shell starter.Shell) []*cobra.Command {
	return []*cobra.Command{
		workerCommand(shell), serverCommand(shell), migrateCommand(shell), markRestoredCommand(shell), apiKeyCommand(shell), rootKeyCommand(shell), serverKeyCommand(shell),
		openapiCommand(), selftestCommand(shell),
	}
}
