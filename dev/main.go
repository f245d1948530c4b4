// Command jig-dev starts everything that jig needs: PostgreSQL and Temporal with its Web UI as child processes, and a worker. It only
// wires the packages below it and the worker; no package imports it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/dev/internal/stack"
)

// Exit codes: 2 means that a setting is wrong or that something the command needs is not available.
const (
	exitFailed   = 1
	exitSettings = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := command() //nolint:contextcheck // cobra passes the context to the commands
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) { // the command that the user gave has already printed its error
		return max(exit.ExitCode(), exitFailed)
	}
	message, hint := explain(err)
	fmt.Fprintln(os.Stderr, "error:", message)
	if hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", hint)
	}
	return exitSettings
}

// explain returns the message of an error and a hint on how to fix it.
func explain(err error) (message, hint string) {
	var taken *port.TakenError
	var locked *stack.LockedError
	var e *jig.Error
	switch {
	case errors.As(err, &taken):
		return taken.Error(), "stop that process, or choose another address with --temporal-addr, --ui-addr, --http-addr or --pg-port (port 0 picks a free one)"
	case errors.As(err, &locked):
		return locked.Error(), "stop it, or use --data-dir or --ephemeral"
	case errors.As(err, &e):
		return e.Message, e.Hint
	}
	return err.Error(), ""
}
