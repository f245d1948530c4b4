package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/dev/internal/program"
	"github.com/jig-run/jig/dev/internal/temporalserver"
)

// Stack is a running set of servers.
type Stack struct {
	opts     Options
	release  func() error // unlocks the data folder
	postgres *pg.Server   // nil if an existing server is used
	temporal *temporalserver.Server
	ownerURL string
	appURL   string
	// serverURL is empty if the server's role is not wanted.
	serverURL string
	failed    chan error
	// stopped is closed when the stack begins to stop.
	stopped chan struct{}
	stop    sync.Once
}

// Start starts everything and returns when it is ready for use. If a part fails, Start stops the parts that are running. The error
// is a *port.TakenError if a port is in use, and a *LockedError if the data folder is in use.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.OwnerURL != "" && (opts.Fresh || opts.Ephemeral) {
		return nil, errors.New("a fresh or ephemeral start would remove databases of the given PostgreSQL server: " +
			"leave that option out, or unset JIG_DATABASE_OWNER_URL so that a private server is started")
	}
	s := &Stack{opts: opts, failed: make(chan error, 1), stopped: make(chan struct{}), release: func() error { return nil }}
	if err := s.start(ctx); err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stopping))
	}
	return s, nil
}

// start starts the parts in the order of their dependencies.
func (s *Stack) start(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.checkAddresses(ctx); err != nil {
		return err
	}
	built, err := program.Temporal(ctx, func(progress string) { s.opts.Progress(progress, 0) })
	if err != nil {
		return err
	}
	temporalURL, err := s.startDatabase(ctx)
	if err != nil {
		return err
	}
	ui := s.opts.UIAddress
	if s.opts.NoUI {
		ui = ""
	}
	return s.step("starting "+program.Describe(built, ui != ""), func() (err error) {
		s.temporal, err = temporalserver.Start(ctx, temporalserver.Options{
			Program: built, DatabaseURL: temporalURL, Address: s.opts.TemporalAddress, UIAddress: ui,
			Namespace: s.opts.Namespace, Retention: s.opts.Retention, Settings: s.opts.TemporalSettings,
			Log: s.opts.Log, OnFatal: s.fail,
		})
		return err
	})
}

// prepare creates and locks the data folder.
func (s *Stack) prepare() error {
	if err := os.MkdirAll(s.opts.DataDir, 0o755); err != nil { //nolint:gosec // PostgreSQL's system user must pass through
		return fmt.Errorf("data folder: %w", err)
	}
	if s.opts.Ephemeral {
		return nil
	}
	release, err := lock(s.opts.DataDir)
	if err == nil {
		s.release = release
	}
	return err
}

// checkAddresses returns an error if Temporal or the Web UI cannot listen on its address. It is called before anything that takes time.
func (s *Stack) checkAddresses(ctx context.Context) error {
	if _, err := port.Claim(ctx, s.opts.TemporalAddress); err != nil {
		return fmt.Errorf("the address of Temporal: %w", err)
	}
	if s.opts.NoUI {
		return nil
	}
	if _, err := port.Claim(ctx, s.opts.UIAddress); err != nil {
		return fmt.Errorf("the address of the Web UI: %w", err)
	}
	return nil
}

// startDatabase starts PostgreSQL or uses the existing server, creates jig's database and roles, and runs the migrations. It
// returns the URL for Temporal.
func (s *Stack) startDatabase(ctx context.Context) (string, error) {
	temporalURL := s.opts.OwnerURL
	if s.opts.OwnerURL != "" {
		if err := s.adoptRoles(ctx); err != nil {
			return "", err
		}
	} else if err := s.startPostgres(ctx); err != nil {
		return "", err
	} else {
		temporalURL = s.postgres.URL(temporalRole, "postgres")
	}
	if s.opts.Migrate == nil {
		return temporalURL, nil
	}
	return temporalURL, s.step("migrating jig's database", func() error {
		if err := s.opts.Migrate(ctx, s.ownerURL, AppRole); err != nil || s.serverURL == "" {
			return err
		}
		role, err := url.Parse(s.serverURL)
		if err != nil {
			return fmt.Errorf("the URL of the server's role: %w", err)
		}
		return s.opts.GrantServer(ctx, s.ownerURL, role.User.Username())
	})
}

// adoptRoles takes the roles of an existing server, or makes those that the options do not name.
func (s *Stack) adoptRoles(ctx context.Context) (err error) {
	s.ownerURL, s.appURL = s.opts.OwnerURL, s.opts.AppURL
	if s.appURL == "" {
		if s.appURL, err = adoptRole(ctx, s.ownerURL, AppRole, "JIG_DATABASE_URL"); err != nil {
			return err
		}
	}
	if s.opts.GrantServer == nil {
		return nil
	}
	if s.serverURL = s.opts.ServerURL; s.serverURL == "" {
		s.serverURL, err = adoptRole(ctx, s.ownerURL, ServerRole, "JIG_SERVER_DATABASE_URL")
	}
	return err
}

// startPostgres starts a private PostgreSQL server and creates jig's database and roles on it.
func (s *Stack) startPostgres(ctx context.Context) error {
	dir := filepath.Join(s.opts.DataDir, "pg")
	if s.opts.Ephemeral {
		var err error
		if dir, err = os.MkdirTemp("", "jig-dev-*"); err != nil {
			return fmt.Errorf("temporary data folder: %w", err)
		}
		// Remove the folder, because PostgreSQL's system user must create it.
		if err := os.Remove(dir); err != nil {
			return fmt.Errorf("temporary data folder: %w", err)
		}
	}
	opts := pg.Options{
		Dir: dir, Port: s.opts.PGPort, Ephemeral: s.opts.Ephemeral, Settings: s.opts.PGSettings, Log: s.opts.Log,
	}
	if s.opts.Fresh {
		if err := pg.Remove(ctx, dir); err != nil {
			return err
		}
	}
	began := time.Now()
	server, err := pg.New(ctx, opts)
	if err != nil {
		return err
	}
	s.postgres = server
	go s.guard(server)
	name := "starting PostgreSQL " + server.Version()
	s.opts.Progress(name, 0)
	if err := server.Start(ctx); err != nil {
		return err
	}
	if err := makeRoles(ctx, server, s.opts.Ephemeral); err != nil {
		return err
	}
	s.ownerURL, s.appURL = server.URL(OwnerRole, databaseName), server.URL(AppRole, databaseName)
	if s.opts.GrantServer != nil {
		s.serverURL = server.URL(ServerRole, databaseName)
	}
	s.opts.Progress(name, time.Since(began))
	return nil
}

// step runs a part of the start and reports it.
func (s *Stack) step(name string, do func() error) error {
	s.opts.Progress(name, 0)
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	s.opts.Progress(name, time.Since(began))
	return nil
}

// guard reports every unexpected end of PostgreSQL until the stack is stopped.
func (s *Stack) guard(server *pg.Server) {
	for {
		select {
		case err := <-server.Died():
			s.fail(err)
		case <-s.stopped:
			return
		}
	}
}

// fail reports the first failure of a running part.
func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Stop stops everything, in the opposite order, and removes ephemeral data. It may be called again.
func (s *Stack) Stop(ctx context.Context) error {
	s.stop.Do(func() { close(s.stopped) })
	var errs []error
	if s.temporal != nil {
		errs = append(errs, s.temporal.Stop(ctx))
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Close(ctx))
	}
	errs = append(errs, s.release())
	s.release = func() error { return nil }
	return errors.Join(errs...)
}
