package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/dev/internal/stack"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/server"
	"github.com/jig-run/jig/worker"
)

// anyPort is an address with a port that the system picks.
const anyPort = "127.0.0.1:0"

// options holds the values of the flags.
type options struct {
	stack    stack.Options
	noWorker bool
	noServer bool
	httpAddr string
	logLevel string
	pgPort   int
	quiet    bool
	// private writes no dev.env, which may belong to a running jig-dev: only a child process uses the servers, and has the settings in its
	// environment.
	private bool
}

func (o *options) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&o.stack.TemporalAddress, "temporal-addr", "127.0.0.1:7233", "address of Temporal's frontend; port 0 picks a free one")
	f.StringVar(&o.stack.UIAddress, "ui-addr", "127.0.0.1:8233", "address of the Web UI; port 0 picks a free one")
	f.IntVar(&o.pgPort, "pg-port", 5433, "port of PostgreSQL on 127.0.0.1; 0 picks a free one")
	f.StringToStringVar(&o.stack.PGSettings, "pg-setting", nil, "further settings of PostgreSQL, e.g. work_mem=64MB,log_statement=all")
	f.StringVar(&o.stack.DataDir, "data-dir", ".jig", "folder for data, logs and dev.env")
	f.StringVar(&o.stack.Namespace, "namespace", "default", "Temporal namespace")
	f.BoolVar(&o.stack.Fresh, "fresh", false, "start with empty data")
	f.BoolVar(&o.stack.Ephemeral, "ephemeral", false, "keep no data")
	f.BoolVar(&o.noWorker, "no-worker", false, "start no worker")
	f.BoolVar(&o.noServer, "no-server", false, "start no server (HTTP API)")
	f.StringVar(&o.httpAddr, "http-addr", "", "address of the server; port 0 picks a free one (default 127.0.0.1:8480, with --ephemeral a free port)")
	f.BoolVar(&o.stack.NoUI, "no-ui", false, "start no Web UI")
	f.BoolVar(&o.quiet, "quiet", false, "print nothing while starting")
	f.StringVar(&o.logLevel, "log-level", "error", "lowest level that the servers and the worker log: debug, info, warn or error")
}

// hide makes the servers private to this process and its child: they get free ports, except where the user has given an address, and dev.env stays
// as it is. given reports whether the user has given a flag.
func (o *options) hide(given func(flag string) bool) {
	o.private = true
	if !given("temporal-addr") {
		o.stack.TemporalAddress = anyPort
	}
	if !given("ui-addr") {
		o.stack.UIAddress = anyPort
	}
	if !given("pg-port") {
		o.pgPort = 0
	}
}

// running is everything that was started.
type running struct {
	*stack.Stack
	worker *worker.Worker
	server *server.Server
	// key is the API key of the server.
	key string
	// proofs are the settings with which the server vouches for its users, and the worker checks that.
	proofs []string
}

// Environment returns the environment of the stack and of the server.
func (r *running) Environment() []string {
	env := append(r.Stack.Environment(), r.proofs...)
	if r.server != nil {
		env = append(env, "JIG_URL="+r.server.URL(), "JIG_API_KEY="+r.key)
	}
	return env
}

// start starts the stack and, unless the flags disable them, a worker and a server in this process.
func (o *options) start(ctx context.Context) (*running, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is not one of debug, info, warn, error", o.logLevel)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	s := o.stack
	s.PGPort, s.Log, s.Migrate, s.GrantServer = o.pgPort, logger, store.Migrate, store.GrantServer
	s.Permissions = "*" // the machine belongs to one person; a tenant's document replaces this
	s.OwnerURL = os.Getenv("JIG_DATABASE_OWNER_URL")
	if s.AppURL, s.ServerURL = "", ""; s.OwnerURL != "" {
		s.AppURL, s.ServerURL = os.Getenv("JIG_DATABASE_URL"), os.Getenv("JIG_SERVER_DATABASE_URL")
	}
	s.Progress = o.progress
	started, err := stack.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &running{Stack: started}
	if err := o.ready(ctx, r, logger); err != nil {
		return nil, errors.Join(err, r.stop(ctx))
	}
	return r, nil
}

// ready starts the server and the worker, and unless private writes the addresses to dev.env in between.
func (o *options) ready(ctx context.Context, r *running, logger *slog.Logger) error {
	proofs, err := serverKeys(r.DataDir(), time.Now())
	if err != nil {
		return err
	}
	r.proofs = proofs
	if !o.noServer {
		if err := o.startServer(ctx, r, logger); err != nil {
			return err
		}
	}
	if !o.private {
		if err := writeEnv(r.DataDir(), r.Environment()); err != nil {
			return err
		}
	}
	if o.noWorker {
		return nil
	}
	return o.startWorker(ctx, r, logger)
}

// startServer starts the server with a new API key of the tenant default, which may do everything. The keys of earlier runs end.
func (o *options) startServer(ctx context.Context, r *running, logger *slog.Logger) error {
	address := cmp.Or(o.httpAddr, "127.0.0.1:8480")
	if o.httpAddr == "" && o.stack.Ephemeral {
		address = anyPort
	}
	address, err := port.Claim(ctx, address)
	if err != nil {
		return err
	}
	settings, err := server.ReadSettings(client.SettingsRequest{Environ: append(append(os.Environ(), r.Environment()...), server.EnvAddress+"="+address)})
	if err != nil {
		return err
	}
	settings.DevLogin = settings.PublicURL == "" && len(settings.Proxies) == 0
	began := time.Now()
	o.progress("starting the server", 0)
	if r.key, err = newKey(ctx, settings, logger); err == nil {
		r.server, err = server.Start(ctx, settings, logger)
	}
	if err != nil {
		return err
	}
	o.progress("starting the server", time.Since(began))
	return nil
}

// newKey makes the API key of the development server, and revokes those of earlier starts.
func newKey(ctx context.Context, settings server.Settings, logger *slog.Logger) (string, error) {
	const name = "jig-dev"
	old, err := server.APIKeys(ctx, settings, logger, jig.DefaultTenant)
	if err != nil {
		return "", err
	}
	for _, k := range old {
		if k.Name == name && k.RevokedAt == nil {
			if err := server.RevokeAPIKey(ctx, settings, logger, k.Tenant, k.ID); err != nil {
				return "", err
			}
		}
	}
	text, _, err := server.CreateAPIKey(ctx, settings, logger, credential.Credential{
		Tenant: jig.DefaultTenant, Name: name, Principal: "dev", Scopes: credential.Scopes(),
	})
	return text, err
}

func (o *options) startWorker(ctx context.Context, r *running, logger *slog.Logger) error {
	settings, err := worker.ReadSettings(client.SettingsRequest{Environ: append(os.Environ(), r.Environment()...)})
	if err != nil {
		return err
	}
	began := time.Now()
	o.progress("starting the worker", 0)
	if r.worker, err = worker.Start(ctx, settings, logger); err == nil {
		err = r.worker.MakeCurrent(ctx)
	}
	if err != nil {
		return err
	}
	o.progress("starting the worker", time.Since(began))
	return nil
}

func (o *options) progress(step string, took time.Duration) {
	switch {
	case o.quiet:
	case took == 0:
		fmt.Fprintf(os.Stderr, "… %s\n", step)
	default:
		fmt.Fprintf(os.Stderr, "✓ %s (%s)\n", step, took.Round(10*time.Millisecond))
	}
}

// stop stops the server, then the worker, so that it can store the results of running work, and then PostgreSQL and Temporal.
func (r *running) stop(ctx context.Context) error {
	if r.server != nil {
		r.server.Stop(ctx)
	}
	if r.worker != nil {
		r.worker.Stop()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return r.Stop(ctx)
}

// broken returns a channel that yields an error when the worker cannot continue. It is nil without a worker.
func (r *running) broken() <-chan error {
	if r.worker == nil {
		return nil
	}
	return r.worker.Broken()
}

// unserved returns a channel that yields an error when the server cannot continue. It is nil without a server.
func (r *running) unserved() <-chan error {
	if r.server == nil {
		return nil
	}
	return r.server.Broken()
}
