package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/starter"
	"github.com/jig-run/jig/worker"
)

// workerCommand returns the command that runs a worker.
func workerCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Run the worker: it does the work of all sessions on its task queue",
		Long: `Run the worker until SIGTERM or Ctrl-C. It then takes no new work and gives running work time to finish.

Settings come from the flags, then the environment, then the file that jig-dev writes: the one that JIG_DEV_ENV names,
or .jig/dev.env in this folder or the nearest one above it:

` + worker.Describe(),
		Example: `  jig migrate && jig worker
  JIG_TASK_QUEUE=jig-blue JIG_LOG_FORMAT=json jig worker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := settingsOf(shell)
			if err != nil {
				return err
			}
			err = worker.Run(cmd.Context(), settings, settings.Logger(shell.Stderr()))
			var broke *worker.BrokenError
			if err == nil || errors.As(err, &broke) {
				return err
			}
			return shell.Misuse(err)
		},
	}
}

// migrateCommand returns the command that brings the database's schema up to date.
func migrateCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date and give the worker's role its rights",
		Long: `Bring the schema up to date as the role of JIG_DATABASE_OWNER_URL, and give the role that JIG_DATABASE_URL names the rights
that a worker needs, and the role that JIG_SERVER_DATABASE_URL names those of a server. It can run repeatedly, and several can run at once.`,
		Example: `  JIG_DATABASE_OWNER_URL=postgres://owner@db/jig JIG_DATABASE_URL=postgres://jig_app@db/jig jig migrate`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := settingsOf(shell)
			if err != nil {
				return err
			}
			if err := worker.Migrate(cmd.Context(), settings); err != nil {
				return shell.Misuse(err)
			}
			_, err = fmt.Fprintln(shell.Stderr(), "the schema is up to date")
			return err //nolint:wrapcheck // fails only when standard error is closed
		},
	}
}

// settingsOf reads the worker's settings. Its errors end the program with the exit code for settings.
func settingsOf(shell starter.Shell) (worker.Settings, error) {
	request, err := shell.Settings()
	if err != nil {
		return worker.Settings{}, err
	}
	settings, err := worker.ReadSettings(request)
	if err != nil {
		return worker.Settings{}, shell.Misuse(err)
	}
	return settings, nil
}
