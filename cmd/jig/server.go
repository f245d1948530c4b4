package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/identity/vouch"
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

Settings come from the flags, then the environment, then the file that jig-dev writes: the one that JIG_DEV_ENV names,
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

// rootKeyCommand returns the command that makes the key which certifies the keys of servers.
func rootKeyCommand(shell starter.Shell) *cobra.Command {
	c := &cobra.Command{
		Use:     "root-key",
		Short:   "Make the root key, which certifies the keys of servers",
		Example: `  jig root-key new --out root.key`,
	}
	var out string
	made := &cobra.Command{
		Use:   "new --out FILE",
		Short: "Make a root key",
		Long: `Make an Ed25519 key that certifies the keys of servers. Keep the file offline: whoever has it can make servers that vouch for anybody. Start
workers with the printed setting. JSON output: {"public_key", "file"}.`,
		Example: `  jig root-key new --out root.key`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			file, public, err := vouch.NewRoot()
			if err != nil {
				return err
			}
			if err := writeKey(shell, out, file); err != nil {
				return err
			}
			return shell.Print("JIG_ROOT_KEY="+public+"\n", map[string]string{"public_key": public, "file": out})
		},
	}
	made.Flags().StringVar(&out, "out", "", "file for the private key; it must not exist yet")
	c.AddCommand(made)
	return c
}

// serverKeyCommand returns the commands that manage the keys with which servers vouch for principals.
func serverKeyCommand(shell starter.Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "server-key",
		Short: "Manage the keys with which servers vouch for principals",
		Long: `Make, list and revoke the keys of servers. A server signs what it asks of workers with its key (JIG_SERVER_KEY). Workers accept keys that the
root key certified. To replace a key, make a new one and restart the server with it: both are valid until the old one expires.`,
		Example: `  jig server-key new --root root.key --out server.key
  jig server-key list`,
	}
	c.AddCommand(setupServerKeyCommand(shell), newServerKeyCommand(shell), listServerKeysCommand(shell), revokeServerKeyCommand(shell))
	return c
}

// setUpKeys is the JSON output of `server-key setup`. RootKey is the private root key.
type setUpKeys struct {
	Made      bool       `json:"made"`
	RootKey   string     `json:"root_key,omitempty"`
	PublicKey string     `json:"public_key,omitempty"`
	ID        string     `json:"id,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

func setupServerKeyCommand(shell starter.Shell) *cobra.Command {
	var out, rootOut, lasts string
	c := &cobra.Command{
		Use:   "setup --out FILE --root-out FILE",
		Short: "Make a root key and a server's key, unless the server's key exists",
		Long: `Make a root key and a server's key that it certifies, for an installation that has none. It writes the server's key, and the public root key for
workers (JIG_ROOT_KEY_FILE), and prints the private root key, which is stored nowhere. Keep it offline: the next server's key needs it. If the server's key
exists, nothing is made. JSON output: {"made", "root_key"?, "public_key"?, "id"?, "expires_at"?}.`,
		Example: `  jig server-key setup --out server.key --root-out root.pub`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			lifetime, err := duration.Parse(lasts)
			if err != nil {
				return shell.Misuse(err)
			}
			if rootOut == "" {
				return shell.Misuse(jig.Errorf(jig.CodeMissingParam, "--root-out is missing: the file for the public root key").WithField("root-out"))
			}
			if _, err := os.Stat(out); err == nil {
				return shell.Print(out+" exists; nothing was made\n", setUpKeys{})
			}
			root, public, err := vouch.NewRoot()
			if err != nil {
				return err
			}
			file, key, err := vouch.NewServerKey(root, time.Now(), lifetime)
			if err != nil {
				return shell.Misuse(err)
			}
			if err := os.WriteFile(rootOut, []byte(public+"\n"), 0o644); err != nil { //nolint:gosec // the key is public, and the user names the file
				return shell.Misuse(jig.Errorf(jig.CodeInvalidInput, "the public root key cannot be written: %w", err).WithField("root-out"))
			}
			if err := writeKey(shell, out, file); err != nil {
				return err
			}
			return shell.Print(fmt.Sprintf("The private root key. Keep it offline: it is stored nowhere, and the next server's key needs it.\n\n%s\nJIG_ROOT_KEY=%s\n%s, valid until %s\n",
				root, public, key.ID, key.Until.Format(time.RFC3339)),
				setUpKeys{Made: true, RootKey: string(root), PublicKey: public, ID: key.ID, ExpiresAt: &key.Until})
		},
	}
	c.Flags().StringVar(&out, "out", "", "file for the server's private key")
	c.Flags().StringVar(&rootOut, "root-out", "", "file for the public root key")
	c.Flags().StringVar(&lasts, "lifetime", "90d", "how long the server's key is valid, at most 400d")
	return c
}

func newServerKeyCommand(shell starter.Shell) *cobra.Command {
	var root, out, lasts string
	c := &cobra.Command{
		Use:   "new --root FILE --out FILE",
		Short: "Make a server's key and certify it with the root key",
		Long: `Make an Ed25519 key for servers, with a certificate of the root key. Several servers may use the same key. It needs no database: run it where
the root key is, and bring the new file to the servers. JSON output: {"id", "file", "expires_at"}.`,
		Example: `  jig server-key new --root root.key --out server.key
  jig server-key new --root root.key --out server-2.key --lifetime 30d`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			lifetime, err := duration.Parse(lasts)
			if err != nil {
				return shell.Misuse(err)
			}
			signs, err := os.ReadFile(root) //nolint:gosec // the user names the file
			if err != nil {
				return shell.Misuse(jig.Errorf(jig.CodeInvalidInput, "the root key cannot be read: %w", err).WithField("root"))
			}
			file, key, err := vouch.NewServerKey(signs, time.Now(), lifetime)
			if err != nil {
				return shell.Misuse(err)
			}
			if err := writeKey(shell, out, file); err != nil {
				return err
			}
			return shell.Print(fmt.Sprintf("%s, valid until %s\n", key.ID, key.Until.Format(time.RFC3339)),
				map[string]any{"id": key.ID, "file": out, "expires_at": key.Until})
		},
	}
	c.Flags().StringVar(&root, "root", "", "file of the root key")
	c.Flags().StringVar(&out, "out", "", "file for the private key; it must not exist yet")
	c.Flags().StringVar(&lasts, "lifetime", "90d", "how long the key is valid, at most 400d")
	return c
}

// serverKeyList is the JSON output of `server-key list`.
type serverKeyList struct {
	Keys []vouch.Stored `json:"server_keys"`
}

func listServerKeysCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the keys of servers that have started, also those that are no longer valid",
		Long:    `List the keys of servers that have started. It needs JIG_SERVER_DATABASE_URL.`,
		Example: `  jig server-key list`,
		Args:    cobra.NoArgs,
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, _ []string) error {
			keys, err := server.VouchingKeys(ctx, s, logger)
			if err != nil {
				return shell.Misuse(err)
			}
			return shell.Print(tableOfServerKeys(keys), serverKeyList{Keys: keys})
		}),
	}
}

func tableOfServerKeys(keys []vouch.Stored) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tFIRST USED\tSTATE")
	for _, k := range keys {
		state := "not revoked"
		if k.RevokedAt != nil {
			state = "revoked at " + k.RevokedAt.Local().Format(time.DateTime)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", k.ID, k.CreatedAt.Local().Format(time.DateTime), state)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}

func revokeServerKeyCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a server's key, at once and for good",
		Long: `Revoke a server's key. Within a second, workers refuse everything that it signed, including starts that still wait for a worker and the
mandates of schedules. It needs JIG_SERVER_DATABASE_URL.`,
		Example: `  jig server-key revoke srv_0123456789abcdef0123456789abcdef`,
		Args:    cobra.ExactArgs(1),
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, args []string) error {
			if err := server.RevokeVouchingKey(ctx, s, logger, args[0]); err != nil {
				return err
			}
			return shell.Print("revoked\n", map[string]string{"id": args[0]})
		}),
	}
}

// writeKey writes a private key to a new file that only its owner can read.
func writeKey(shell starter.Shell, out string, content []byte) error {
	if out == "" {
		return shell.Misuse(jig.Errorf(jig.CodeMissingParam, "--out is missing: the file for the private key").WithField("out"))
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrExist) {
		return shell.Misuse(jig.Errorf(jig.CodeConflict, "%s already exists; a key is never overwritten", out).WithField("out").
			WithHint("give another --out, or remove the file if nobody needs the key"))
	}
	if err != nil {
		return shell.Misuse(jig.Errorf(jig.CodeInvalidInput, "the key cannot be written: %w", err).WithField("out"))
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the key: %w", errors.Join(err, os.Remove(out)))
	}
	return nil
}
