package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/server"
	"github.com/jig-run/jig/starter"
)

// apiKeyCommand returns the commands that manage the API keys of a tenant.
func apiKeyCommand(shell starter.Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "api-key",
		Short: "Manage the API keys with which programs use the server",
		Long: `Create, list and revoke API keys of a tenant. A key acts as one principal, and its scopes say what it may do:

  read    read what the tenant has
  run     start sessions and call tools
  decide  decide calls that wait for a person, revoke standing approvals, pause tools and the tenant
  author  register, change and remove documents and bundles; test tools; disable people and keys
  operate trigger, pause, resume and delete the schedules of others
  manage  create and revoke API keys over HTTP, and read credential events

These commands need JIG_SERVER_DATABASE_URL.`,
		Example: `  jig api-key create --principal ci --name "nightly build"
  jig api-key list
  jig api-key revoke abcdefghij234567`,
	}
	c.AddCommand(createKeyCommand(shell), listKeysCommand(shell), revokeKeyCommand(shell))
	return c
}

func createKeyCommand(shell starter.Shell) *cobra.Command {
	var k credential.Credential
	var expires string
	c := &cobra.Command{
		Use:   "create --principal PRINCIPAL",
		Short: "Create an API key and print it, once",
		Long: `Create an API key and print it. Only its hash is stored, so it cannot be printed again. A key with the scope decide may approve and deny
calls as its principal.`,
		Example: `  jig api-key create --principal ci
  jig api-key create --principal ana --scope read --scope decide --expires 30d`,
		Args: cobra.NoArgs,
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, _ []string) error {
			if expires != "" {
				lasts, err := duration.Parse(expires)
				if err != nil {
					return shell.Misuse(err)
				}
				at := time.Now().Add(lasts).UTC()
				k.ExpiresAt = &at
			}
			k.Tenant = shell.Tenant()
			text, created, err := server.CreateAPIKey(ctx, s, logger, k)
			if err != nil {
				return shell.Misuse(err)
			}
			return shell.Print(text+"\n", credential.CreatedKey{Credential: created, Text: text})
		}),
	}
	flags := c.Flags()
	flags.StringVar(&k.Principal, "principal", "", "principal that the key acts as")
	flags.StringVar(&k.Name, "name", "", "what the key is for")
	flags.StringArrayVar(&k.Scopes, "scope", credential.DefaultScopes(), "what the key may do: "+strings.Join(credential.Scopes(), ", ")+" (repeatable)")
	flags.StringVar(&expires, "expires", "", "how long the key is valid, e.g. 12h or 30d (default: until it is revoked)")
	return c
}

// keyList is the JSON output of `api-key list`.
type keyList struct {
	Keys []credential.Credential `json:"api_keys"`
}

func listKeysCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the API keys of the tenant, also those that are no longer valid",
		Example: `  jig api-key list
  jig api-key list --tenant acme --output json`,
		Args: cobra.NoArgs,
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, _ []string) error {
			keys, err := server.APIKeys(ctx, s, logger, shell.Tenant())
			if err != nil {
				return shell.Misuse(err)
			}
			return shell.Print(tableOfKeys(keys, time.Now()), keyList{Keys: keys})
		}),
	}
}

// tableOfKeys formats keys as a table.
func tableOfKeys(keys []credential.Credential, now time.Time) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tPRINCIPAL\tSCOPES\tSTATE\tLAST USED\tNAME")
	for _, k := range keys {
		state, used := "valid", "never"
		switch {
		case k.RevokedAt != nil:
			state = "revoked"
		case !k.Valid(now):
			state = "expired"
		case k.ExpiresAt != nil:
			state = "until " + k.ExpiresAt.Local().Format(time.DateTime)
		}
		if k.UsedAt != nil {
			used = k.UsedAt.Local().Format(time.DateTime)
		}
		_, _ = fmt.Fprintf(w, "%s\t%q\t%s\t%s\t%s\t%q\n", k.ID, k.Principal, strings.Join(k.Scopes, ","), state, used, k.Name)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}

func revokeKeyCommand(shell starter.Shell) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke an API key, at once and for good",
		Long: `Revoke an API key. Requests with it are refused from then on, and its open streams end within a second. The command first lists what else
ends, such as keys and schedules that were made with it, and asks on a terminal whether to go on.`,
		Example: `  jig api-key revoke abcdefghij234567`,
		Args:    cobra.ExactArgs(1),
		RunE: withSettings(shell, func(ctx context.Context, s server.Settings, logger *slog.Logger, args []string) error {
			list, err := server.Dependents(ctx, s, logger, shell.Tenant(), args[0])
			if err == nil {
				err = shell.ConfirmDependents(ctx, "Revoke the key?", yes, list)
			}
			if err != nil {
				return err
			}
			if err := server.RevokeAPIKey(ctx, s, logger, shell.Tenant(), args[0]); err != nil {
				return err
			}
			return shell.Print("revoked\n", map[string]string{"id": args[0]})
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}
