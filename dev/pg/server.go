package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jig-run/jig/dev/port"
)

const (
	// Superuser is the role that owns the server.
	Superuser = "postgres"
	// stopPatience is how long one kind of stopping may take before the next, harsher one.
	stopPatience = 10 * time.Second
	// startPatience is how long a server may take to answer; recovery after a crash is part of it.
	startPatience = 60 * time.Second
	// pollEvery is the pause between two looks at something that will change soon.
	pollEvery = 10 * time.Millisecond
)

// Options say where and how a server runs.
type Options struct {
	// Dir keeps the server's data, password and log. Required. When the system user that PostgreSQL runs as under root
	// cannot get there, a folder below /var/tmp is used in its place; Server.DataDir says which.
	Dir string
	// Port to listen on, at 127.0.0.1 only; 0 picks a free one.
	Port int
	// Ephemeral removes the data when the server is closed, and does not sync the new, empty data to disk first. Commits
	// are synced all the same.
	Ephemeral bool
	// BinDir holds the programs to use; empty looks for an installed PostgreSQL, then downloads one.
	BinDir string
	// Settings are further server settings, which win over ours.
	Settings map[string]string
	// Log gets what a person may want to know; nil is silent.
	Log *slog.Logger
}

// Server is a PostgreSQL server of our own. Its methods may be called from several goroutines, one after the other.
type Server struct {
	install   Install
	who       account
	dir       string
	addr      string
	secret    []byte
	ephemeral bool
	settings  map[string]string
	died      chan error

	mu    sync.Mutex
	child *child // nil when stopped
}

// New prepares a server: finds or downloads PostgreSQL, makes the data folder, initialises it when it is empty. It does
// not start it. A taken port is a *port.TakenError. The caller makes sure that no two servers use one Dir.
func New(ctx context.Context, opts Options) (*Server, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	addr, err := port.Claim(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port)))
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	who, err := runAs()
	if err != nil {
		return nil, err
	}
	dir, err := locate(opts.Dir, who)
	if err != nil {
		return nil, err
	}
	if err := own(dir, who); err != nil {
		return nil, err
	}
	s := &Server{
		who: who, dir: dir, addr: addr, ephemeral: opts.Ephemeral, settings: opts.Settings, died: make(chan error, 1),
	}
	if s.install, err = s.programs(ctx, opts); err != nil {
		return nil, err
	}
	if err := s.initialise(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// programs settles on the programs: those of opts, an installed PostgreSQL that fits the data, or a downloaded one.
func (s *Server) programs(ctx context.Context, opts Options) (Install, error) {
	if opts.BinDir != "" {
		return inspect(ctx, opts.BinDir)
	}
	made, err := dataMajor(s.DataDir())
	if err != nil {
		return Install{}, err
	}
	install, err := choose(Find(ctx), made, s.dir)
	if err == nil {
		return install, nil
	}
	fetched, fetchErr := fetch(ctx, s.cacheDir(), opts.Log)
	if fetchErr != nil && errors.Is(err, errNotInstalled) {
		return Install{}, fmt.Errorf("%w, and it could not be downloaded (%w): %s", err, fetchErr, howToInstall)
	}
	if fetchErr != nil {
		return Install{}, err
	}
	return choose([]Install{fetched}, made, s.dir)
}

// cacheDir keeps downloaded programs, where the account can run them.
func (s *Server) cacheDir() string {
	if cache, err := os.UserCacheDir(); err == nil && !s.who.drop {
		return filepath.Join(cache, "jig")
	}
	return filepath.Join(sharedTemp(), "jig-postgres-programs")
}

// Version of PostgreSQL, "15.14" say.
func (s *Server) Version() string { return s.install.Version }

// DataDir is PostgreSQL's own data folder, below Options.Dir or the folder that is used in its place.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

// LogFile is what PostgreSQL writes about itself.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "postgres.log") }

// Addr is host:port of the server; it stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// URL connects as role to database. The role's password is Password(role); roles other than Superuser are the caller's
// to make.
func (s *Server) URL(role, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, s.Password(role)), Host: s.addr, Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Died yields one error when the server ends without having been asked to.
func (s *Server) Died() <-chan error { return s.died }

// Close stops the server and, when it is ephemeral, removes its files.
func (s *Server) Close(ctx context.Context) error {
	err := s.Stop(ctx)
	if s.ephemeral {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
