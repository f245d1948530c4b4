package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/worker/wire"
)

// Exit codes are the same in every jig program. 2 means that a setting is wrong or that a server named by a setting does not answer.
const (
	exitDone     = 0
	exitFailed   = 1
	exitSettings = 2
)

// run runs the program and returns its exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := command(environ, stderr) //nolint:contextcheck // cobra passes a context to each command
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	e := jig.AsError(err)
	_, _ = fmt.Fprintf(stderr, "error: %s\n", e.Message)
	if e.Hint != "" {
		_, _ = fmt.Fprintf(stderr, "hint: %s\n", e.Hint)
	}
	var broke *wire.BrokenError
	if errors.As(err, &broke) {
		return exitFailed
	}
	return exitSettings
}

func command(environ []string, stderr io.Writer) *cobra.Command {
	load := func() (wire.Settings, error) {
		dev, err := client.ReadEnvFile(client.DevEnvFile)
		if err != nil {
			return wire.Settings{}, err
		}
		return wire.LoadSettings(environ, dev)
	}
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run the worker: it does the work of all sessions on its task queue",
		Long: `Run the worker until SIGTERM or Ctrl-C: it takes no new work then, and gives what runs time to finish.

Settings come from the environment, then from .jig/dev.env (written by "make dev"):

` + wire.Describe(),
		Example: `  worker migrate && worker
  JIG_TASK_QUEUE=jig-blue JIG_LOG_FORMAT=json worker`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := load()
			if err != nil {
				return err
			}
			return wire.Run(cmd.Context(), settings, settings.Logger(stderr))
		},
	}
	root.AddCommand(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date and give the worker's role its rights",
		Long: `Bring the schema up to date as the role of JIG_DATABASE_OWNER_URL, and give the role that JIG_DATABASE_URL names the rights
that a worker needs. It may run several times, and several at once.`,
		Example: `  JIG_DATABASE_OWNER_URL=postgres://owner@db/jig JIG_DATABASE_URL=postgres://jig_app@db/jig worker migrate`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := load()
			if err != nil {
				return err
			}
			if err := wire.Migrate(cmd.Context(), settings); err != nil {
				return err
			}
			_, err = fmt.Fprintln(stderr, "the schema is up to date")
			return err //nolint:wrapcheck // fails only when standard error is closed
		},
	})
	root.AddCommand(markRestored(load, stderr))
	return root
}
