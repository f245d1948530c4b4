package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/server"
	"github.com/jig-run/jig/starter"
)

// serverCommand returns the command that runs a server.
func serverCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "server",
		Short: "Run the server: the HTTP API",
		Long: `Run the server until SIGTERM or Ctrl-C. It then accepts no more requests, ends event streams, and gives other requests time to finish.
Workers do the work; any number of servers may run. Clients need an API key ("jig api-key create").

Settings come from the flags, then the environment, then the file that "make dev" and jig-dev write: the one that JIG_DEV_ENV names,
or .jig/dev.env in this folder or the nearest one above it:

` + server.Describe(),
		Example: `  jig migrate && jig server
  JIG_HTTP_ADDR=:8443 JIG_PUBLIC_URL=https://jig.example.com:8443 JIG_TLS_CERT=jig.crt JIG_TLS_KEY=jig.key jig server`,
		Args: cobra.NoArgs,
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, _ []string) error {
			if err := server.Run(ctx, s, logger); err != nil {
				return shell.Misuse(err)
			}
			return nil
		}),
	}
}

// openapiCommand returns the command that prints the OpenAPI document.
func openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "openapi",
		Short:   "Print the OpenAPI document of the HTTP API",
		Long:    `Print the OpenAPI 3.1 document of the HTTP API, which a server also serves at /openapi.json. It needs no database.`,
		Example: `  jig openapi > openapi.json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, err := server.OpenAPI()
			if err != nil {
				return err
			}
			if _, err = cmd.OutOrStdout().Write(document); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
			return nil
		},
	}
}

// serverSettings reads the server's settings. Its errors end the program with the exit code for settings.
func serverSettings(shell starter.Shell) (server.Settings, error) {
	request, err := shell.Settings()
	if err != nil {
		return server.Settings{}, err
	}
	settings, err := server.ReadSettings(request)
	if err != nil {
		return server.Settings{}, shell.Misuse(err)
	}
	return settings, nil
}

// withSettings returns a command's RunE that calls run with the server's settings.
func withSettings(
	shell starter.Shell, run func(ctx context.Context, s server.Settings, logger *slog.Logger, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		settings, err := serverSettings(shell)
		if err != nil {
			return err
		}
		return run(cmd.Context(), settings, settings.Logger(shell.Stderr()), args)
	}
}
