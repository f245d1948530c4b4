package starter

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/internal/remote/signin"
)

// Environment variables with which the command line reaches a server instead of Temporal.
const (
	envURL    = "JIG_URL"
	envAPIKey = "JIG_API_KEY" //nolint:gosec // the name of a variable
)

// meetTimeout is how long a server may take to say who a credential belongs to.
const meetTimeout = 10 * time.Second

// processesTitle is the title of the commands that run jig itself. They reach Temporal and the database directly.
const processesTitle = "Run jig itself:"

// serverURL returns the address of the server that the command line uses; empty if it talks to Temporal.
func (a *app) serverURL() string {
	if a.flags.address != "" {
		return ""
	}
	return cmp.Or(a.flags.url, a.env[envURL])
}

// meet asks the server who the user's credential belongs to, so that commands act in that tenant and as that principal. Commands that need no
// engine do not ask. If the server does not answer, the commands that need it say so.
func (a *app) meet(ctx context.Context, cmd *cobra.Command) error {
	apart := cmd.Name() == "new" // `key new` reaches nothing, nor do the commands below
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch {
	case a.flags.url != "" && a.flags.address != "":
		return usagef("--url and --temporal-address cannot be combined: one is a jig server, the other Temporal")
	case cmd.GroupID == processesTitle && a.flags.url != "":
		return usagef("--url: `%s` does not work over HTTP: it reaches Temporal and the database directly", cmd.CommandPath())
	case a.serverURL() == "", cmd.GroupID == processesTitle, slices.Contains([]string{"init", "login", "logout", "version", "completion", "help"}, cmd.Name()), apart:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, meetTimeout)
	defer cancel()
	o := remote.Options{URL: a.serverURL(), Token: a.credential, Principal: cmp.Or(a.flags.as, a.env["JIG_PRINCIPAL"]), Tenant: cmp.Or(a.flags.tenant, a.env["JIG_TENANT"])}
	if a.server, a.serverErr = remote.Dial(ctx, o); a.serverErr == nil {
		a.flags.tenant, a.flags.as = a.server.Tenant, a.server.Principal
	}
	if e := jig.AsError(a.serverErr); a.serverErr != nil && e.Reason == remote.ReasonCredential && a.env[envAPIKey] == "" {
		a.serverErr = e.WithHint("the server does not accept the login; run `jig login` again")
	}
	return nil
}

// credential returns the credential for the server: the API key in the environment, or the one of a login.
func (a *app) credential(ctx context.Context) (string, error) {
	if key := a.env[envAPIKey]; key != "" {
		return key, nil
	}
	if a.kept == nil {
		store, err := a.logins()
		if err != nil {
			return "", err
		}
		a.kept = signin.NewKeeper(store)
	}
	if token, err := a.kept.Token(ctx, a.serverURL()); err != nil || token != "" {
		return token, err
	}
	return "", usage(jig.Errorf(jig.CodeMissingParam, "there is no credential for the server at %s", a.serverURL()).WithField(envAPIKey).
		WithHint("run `jig login`, or set " + envAPIKey + "; `jig api-key create` makes a key"))
}

// overHTTP returns the engine behind a server.
func overHTTP(c *remote.Client) engine {
	return engine{
		sessions: c, calls: c, decisions: c, operations: c, reviews: c, readings: c, schedules: c, audits: c, Close: c.Close,
	}
}

// with connects to the engine, calls do, and closes the connection.
func (a *app) with(ctx context.Context, do func(engine) error) error {
	if a.serverErr != nil {
		return a.serverErr
	}
	if a.server != nil {
		defer a.server.Close()
		return do(overHTTP(a.server))
	}
	request, err := a.request()
	if err != nil {
		return err
	}
	if a.settings, err = client.LoadSettings(request); err != nil {
		return usage(err)
	}
	e, err := a.connect(ctx, a.settings)
	if err != nil {
		return err
	}
	defer e.Close()
	return do(e)
}
