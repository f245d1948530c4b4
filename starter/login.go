package starter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/internal/remote/signin"
)

// envKeyring is the variable that keeps logins out of the operating system's keyring, if it is "off".
const envKeyring = "JIG_KEYRING"

// loginFlags are the flags of `jig login`.
type loginFlags struct {
	device   bool
	audience string
	// tenant is the tenant that the user named; empty otherwise.
	tenant string
}

func (a *app) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to a server with your identity provider",
		Long: `Log in to the server in JIG_URL or --url, with the server's identity provider. Commands then act as you, unless JIG_API_KEY is set.
A browser opens on this machine (set BROWSER to use another program). With --device, or if no browser can be opened, log in on any device. If
the server has several tenants, name yours with --tenant.

The login is stored in the keyring of the operating system. Without one, or with JIG_KEYRING=off, it is stored in a file that only you can read.
JSON output: {"server", "tenant", "principal", "name"?, "stored", "expires_at"?}.`,
		Example: `  jig login --url https://jig.example.com
  jig login --device`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.tenant = a.env["JIG_TENANT"] // not the default tenant
			if cmd.Flags().Changed("tenant") {
				f.tenant = a.flags.tenant
			}
			return a.logIn(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&f.device, "device", false, "log in with a browser on another device")
	cmd.Flags().StringVar(&f.audience, "audience", "", "audience of the access tokens, if it is not the server's address")
	return cmd
}

// loggedIn is the JSON output of `login`.
type loggedIn struct {
	Server    string    `json:"server"`
	Tenant    string    `json:"tenant"`
	Principal string    `json:"principal"`
	Name      string    `json:"name,omitempty"`
	Stored    string    `json:"stored"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

func (a *app) logIn(ctx context.Context, f loginFlags) error {
	if err := a.needsServer(); err != nil {
		return err
	}
	store, err := a.logins()
	if err != nil {
		return err
	}
	p, err := signin.Discover(ctx, signin.Options{Server: a.serverURL(), Tenant: f.tenant, Audience: f.audience})
	if err != nil {
		return err
	}
	var l signin.Login
	if f.device || !signin.CanOpen(a.env) && p.TakesDevices() {
		l, err = p.Device(ctx, a.showCode)
	} else {
		l, err = p.Browser(ctx, a.showAddress)
	}
	if err != nil {
		return err
	}
	c, err := remote.Dial(ctx, remote.Options{URL: a.serverURL(), Token: func(context.Context) (string, error) { return l.AccessToken, nil }})
	if err != nil {
		return err
	}
	defer c.Close()
	where, err := store.Save(ctx, l)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(loggedIn{Server: l.Server, Tenant: c.Tenant, Principal: c.Principal, Name: c.Me.Name, Stored: where, ExpiresAt: l.ExpiresAt})
	}
	if where == signin.InKeyring {
		where = "the keyring of the operating system"
	}
	if a.env[envAPIKey] != "" {
		a.say("%s is set, so commands still use the API key", envAPIKey)
	}
	return a.print("logged in to %s as %s, tenant %s; the login is stored in %s", l.Server, oneLine(c.Principal, 0), c.Tenant, where)
}

// showAddress opens the browser, and shows the address in case that fails.
func (a *app) showAddress(address string) {
	a.say("log in at %s", oneLine(address, 0))
	if err := signin.Open(a.env, address); err != nil {
		a.say("no browser could be opened (%v); open the address yourself, on this machine", err)
	}
}

func (a *app) showCode(c signin.Code) {
	a.say("open %s and enter the code %s", oneLine(c.Address, 0), a.err.bold(oneLine(c.Code, 0)))
	if c.Complete != "" {
		a.say("or open %s and check that the code is the same", oneLine(c.Complete, 0))
	}
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Log out of a server",
		Long: `Delete the login to the server in JIG_URL or --url, and revoke it at the identity provider. The current access token stays valid until it
expires, after a few minutes. JSON output: {"server", "logged_out"}; logged_out is false if there was no login.`,
		Example: `  jig logout
  jig logout --url https://jig.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logOut(cmd.Context()) },
	}
}

func (a *app) logOut(ctx context.Context) error {
	if err := a.needsServer(); err != nil {
		return err
	}
	store, err := a.logins()
	if err != nil {
		return err
	}
	l, ok, err := store.Load(a.serverURL())
	if err != nil {
		return err
	}
	if ok {
		if err := store.Remove(ctx, a.serverURL()); err != nil {
			return err
		}
		if err := l.Revoke(ctx); err != nil {
			a.say("the login is deleted here, but could not be revoked at the identity provider: %s", oneLine(jig.AsError(err).Message, 0))
		}
	}
	switch {
	case a.json():
		return a.printJSON(map[string]any{"server": a.serverURL(), "logged_out": ok})
	case !ok:
		return a.print("not logged in to %s", a.serverURL())
	}
	return a.print("logged out of %s", a.serverURL())
}

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show who commands act as and what they may do",
		Long: `Show the tenant and the principal that commands act as. With a server, also show the roles and permissions, and the scopes of the credential.
JSON output: that of GET /v1/me; without a server {"tenant", "principal", "proof"}.`,
		Example: `  jig whoami
  jig whoami --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case a.serverErr != nil:
				return a.serverErr
			case a.server == nil && a.json():
				return a.printJSON(map[string]any{"tenant": a.flags.tenant, "principal": a.flags.as, "proof": jig.ProofClaimed})
			case a.server == nil:
				return a.print("%s, tenant %s, over Temporal (a claim that is not checked)", oneLine(a.flags.as, 0), a.flags.tenant)
			case a.json():
				return a.printJSON(a.server.Me)
			}
			return a.showMe(a.server.Me)
		},
	}
}

// showMe prints the owner of a credential and what it allows.
func (a *app) showMe(me api.Me) error {
	who := oneLine(me.Principal, 0)
	if me.Name != "" {
		who += fmt.Sprintf(" (%s)", oneLine(me.Name, 0))
	}
	lasts := ""
	if me.Credential.ExpiresAt != nil {
		lasts = " until " + me.Credential.ExpiresAt.Local().Format(time.DateTime)
	}
	list := func(words []string) string { return cmp.Or(oneLine(strings.Join(words, ", "), 0), "none") }
	return a.printTable([][]string{
		{"principal", who},
		{"tenant", me.Tenant},
		{"server", a.serverURL()},
		{"credential", strings.ReplaceAll(me.Credential.Kind, "_", " ") + lasts},
		{"scopes", list(me.Credential.Scopes)},
		{"roles", list(me.Roles)},
		{"groups", list(me.Groups)},
		{"proof", string(me.Proof)},
	})
}

// needsServer returns an error if the user named no server.
func (a *app) needsServer() error {
	if a.serverURL() == "" {
		return usage(jig.Errorf(jig.CodeMissingParam, "no server was given").WithField("url").WithHint("set " + envURL + " or give --url"))
	}
	return nil
}

// logins returns the user's stored logins.
func (a *app) logins() (*signin.Store, error) {
	return signin.NewStore(a.env[envKeyring] != "off")
}
