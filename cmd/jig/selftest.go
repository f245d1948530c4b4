package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/selfcheck"
	"github.com/jig-run/jig/internal/setting"
	"github.com/jig-run/jig/server"
	"github.com/jig-run/jig/starter"
)

// Environment variables of the server that the command tests, and of the credentials of two tenants.
const (
	envURL      = "JIG_URL"
	envKey      = "JIG_API_KEY"
	envOtherKey = "JIG_OTHER_API_KEY"
)

// selftestCommand returns the commands that test an installation.
func selftestCommand(shell starter.Shell) *cobra.Command {
	c := &cobra.Command{
		Use:     "selftest",
		Short:   "Test a running server",
		Long:    `Ask whether a server is ready, or test it from outside, with the operations that its OpenAPI document lists.`,
		Example: `  jig selftest isolation`,
	}
	c.AddCommand(readyCommand(shell), isolationCommand(shell))
	return c
}

func readyCommand(shell starter.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "ready",
		Short: "Ask whether the server on this machine is ready",
		Long: `Ask the server that listens on JIG_HTTP_ADDR whether it is ready: whether the database, its schema and Temporal answer. The exit code is 1 if it is
not. It is the health check of containers that have no other program.`,
		Example: `  jig selftest ready`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := serverSettings(shell)
			if err != nil {
				return err
			}
			if err := settings.Probe(cmd.Context()); err != nil {
				return err
			}
			return shell.Print("ready\n", map[string]bool{"ready": true})
		},
	}
}

func isolationCommand(shell starter.Shell) *cobra.Command {
	var suite selfcheck.Isolation
	var input string
	c := &cobra.Command{
		Use:   "isolation",
		Short: "Check that a server keeps tenants apart",
		Long: `Check that a server keeps tenants apart. The command calls every operation with the ids and names of another tenant; the answer must be exactly
the same as for an id that does not exist. It also calls every operation with each kind of credential that must be refused. JIG_URL is the server.
JIG_API_KEY and JIG_OTHER_API_KEY are keys of two tenants, with all scopes.

If JIG_SERVER_DATABASE_URL is set, the command creates the other keys that it needs (a revoked one, an expired one, keys with single scopes, and a
second tenant's key if JIG_OTHER_API_KEY is not set), and revokes them afterwards. Otherwise it says what it did not test.

The command makes a harmless call of --tool in both tenants, which stays in their lists. Use a tenant that exists only for the test as the one of
JIG_OTHER_API_KEY: it keeps what the requests create, such as calls. The exit code is 1 if something was found.`,
		Example: `  jig selftest isolation
  JIG_URL=https://jig.example.com JIG_API_KEY=… JIG_OTHER_API_KEY=… jig selftest isolation --requests 10000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if suite.Input = json.RawMessage(input); !json.Valid(suite.Input) {
				return shell.Misuse(jig.Errorf(jig.CodeInvalidInput, "--input is not JSON").WithField("input"))
			}
			end, err := prepareIsolation(cmd.Context(), shell, &suite)
			defer end()
			if err != nil {
				return err
			}
			report, err := suite.Run(cmd.Context())
			if err != nil {
				return err
			}
			if err := shell.Print(textOfReport(report), report); err != nil || len(report.Findings) == 0 {
				return err
			}
			return shell.Failed()
		},
	}
	flags := c.Flags()
	flags.IntVar(&suite.Requests, "requests", 0, "send at least this many requests; every case is tried at least once")
	flags.StringVar(&suite.Tool, "tool", "todo.write", "tool that both tenants may call")
	flags.StringVar(&input, "input", `{"items": []}`, "input of the call")
	return c
}

// prepareIsolation fills in the server and the credentials. end ends the keys that it has made.
func prepareIsolation(ctx context.Context, shell starter.Shell, suite *selfcheck.Isolation) (end func(), err error) {
	end = func() {}
	request, err := shell.Settings()
	if err != nil {
		return end, err
	}
	env := setting.Reader{Env: client.ParseEnviron(request.Environ), Dev: request.DevEnv}
	suite.URL, suite.Owner, suite.Other = env.Text(envURL, ""), env.Text(envKey, ""), env.Text(envOtherKey, "")
	for name, value := range map[string]string{envURL: suite.URL, envKey: suite.Owner} {
		if value == "" {
			return end, shell.Misuse(jig.Errorf(jig.CodeMissingParam, "%s is not set", name).WithField(name))
		}
	}
	settings, err := serverSettings(shell)
	if err != nil {
		return end, err
	}
	if settings.DatabaseURL == "" {
		if suite.Other == "" {
			return end, shell.Misuse(jig.Errorf(jig.CodeMissingParam, "%s is not set", envOtherKey).WithField(envOtherKey).
				WithHint("set it to a key of another tenant, or set " + server.EnvDatabaseURL + ", with which the command makes one"))
		}
		return end, nil
	}
	maker := &keyMaker{shell: shell, settings: settings}
	return func() { maker.end(context.WithoutCancel(ctx)) }, maker.complete(ctx, suite)
}

// keyMaker makes keys for a test.
type keyMaker struct {
	shell    starter.Shell
	settings server.Settings
	made     []credential.Credential
}

// expired is how long the key is valid that the test needs as an expired one.
const expired = time.Second

// complete makes the keys that a suite does not have.
func (m *keyMaker) complete(ctx context.Context, suite *selfcheck.Isolation) error {
	tenant, err := suite.Tenant(ctx)
	if err != nil {
		return err
	}
	if suite.Other == "" {
		if suite.Other, err = m.key(ctx, "selftest-"+strings.ToLower(rand.Text())[:8], nil, credential.Scopes()...); err != nil {
			return err
		}
	}
	suite.Scoped, suite.Invalid = map[string]string{}, map[string]string{}
	for _, scope := range credential.Scopes() {
		if suite.Scoped[scope], err = m.key(ctx, tenant, nil, scope); err != nil {
			return err
		}
	}
	if suite.Invalid[selfcheck.Revoked], err = m.key(ctx, tenant, nil, credential.Scopes()...); err != nil {
		return err
	}
	last := m.made[len(m.made)-1]
	if err := server.RevokeAPIKey(ctx, m.settings, m.settings.Logger(m.shell.Stderr()), tenant, last.ID); err != nil {
		return err
	}
	at := time.Now().Add(expired)
	if suite.Invalid[selfcheck.Expired], err = m.key(ctx, tenant, &at, credential.Scopes()...); err != nil {
		return err
	}
	return suite.Expire(ctx, suite.Invalid[selfcheck.Expired])
}

func (m *keyMaker) key(ctx context.Context, tenant string, expires *time.Time, scopes ...string) (string, error) {
	text, k, err := server.CreateAPIKey(ctx, m.settings, m.settings.Logger(m.shell.Stderr()), credential.Credential{
		Tenant: tenant, Name: "jig selftest", Principal: "selftest", Scopes: scopes, ExpiresAt: expires,
	})
	if err == nil {
		m.made = append(m.made, k)
	}
	return text, err
}

// end revokes the keys.
func (m *keyMaker) end(ctx context.Context) {
	logger := m.settings.Logger(m.shell.Stderr())
	for _, k := range m.made {
		if err := server.RevokeAPIKey(ctx, m.settings, logger, k.Tenant, k.ID); err != nil {
			_, _ = fmt.Fprintf(m.shell.Stderr(), "the key %s of tenant %s was not revoked: %v\n", k.ID, k.Tenant, err)
		}
	}
}

func textOfReport(r selfcheck.Report) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%d operations, %d requests, %d findings\n", r.Operations, r.Requests, len(r.Findings))
	for _, f := range r.Findings {
		_, _ = fmt.Fprintf(&b, "  found: %s\n", f)
	}
	for _, n := range r.NotTested {
		_, _ = fmt.Fprintf(&b, "  not tested: %s\n", n)
	}
	return b.String()
}
