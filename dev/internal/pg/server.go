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

	"github.com/jig-run/jig/dev/internal/port"
)

const (
	// Superuser is the role that owns the server.
	Superuser = "postgres"
	// stopPatience is how long to wait after a signal before sending the next, harsher one.
	stopPatience = 10 * time.Second
	// startPatience is how long a server may take to answer, including recovery after a crash.
	startPatience = 60 * time.Second
	// pollEvery is the pause between two checks of a condition.
	pollEvery = 10 * time.Millisecond
)

// Options says where and how a server runs.
type Options struct {
	// Dir is the folder for the server's data, password and log. Required. Under root, PostgreSQL runs as another system user; if
	// that user cannot reach Dir, a folder below /var/tmp is used instead. [Server.DataDir] returns the actual folder.
	Dir string
	// Port is the port at 127.0.0.1; 0 picks a free port.
	Port int
	// Ephemeral removes the data when the server is closed; those of a process that was killed are removed when the next ephemeral server starts in
	// the same parent folder. It also keeps PostgreSQL's log of changes small, and skips syncing the new, empty data folder to disk. Commits
	// are still synced.
	Ephemeral bool
	// BinDir is the folder with the programs to use. If it is empty, New looks for an installed PostgreSQL, and downloads one if
	// there is none.
	BinDir string
	// Settings holds further server settings. They override the settings of this package.
	Settings map[string]string
	// Log receives messages for people; nil discards them.
	Log *slog.Logger
}

// Server is a private PostgreSQL server. Several goroutines may call its methods, but not at the same time.
type Server struct {
	install   Install
	who       account
	dir       string
	addr      string
	secret    []byte
	ephemeral bool
	settings  map[string]string
	died      chan error

	// release ends the mark that the files of an ephemeral server are in use. owns says that the folder belongs to the account.
	release func() error
	owns    bool

	mu    sync.Mutex
	child *child // nil if the server is stopped
}

// New prepares a server but does not start it: it finds or downloads PostgreSQL, and creates and initializes the data folder if
// necessary. If the port is in use, the error is a *port.TakenError. The caller must make sure that no two servers use one Dir.
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
	s := &Server{
		who: who, dir: dir, addr: addr, ephemeral: opts.Ephemeral, settings: opts.Settings, died: make(chan error, 1),
		release: func() error { return nil },
	}
	if err := s.prepare(ctx, opts); err != nil {
		return nil, errors.Join(s.full(err), s.discard())
	}
	return s, nil
}

// prepare creates and initializes the data folder if necessary.
func (s *Server) prepare(ctx context.Context, opts Options) (err error) {
	if s.ephemeral {
		if s.release, err = s.mark(ctx, opts.Log); err != nil {
			return err
		}
	}
	if err := own(s.dir, s.who); err != nil {
		return err
	}
	s.owns = true
	if s.install, err = s.programs(ctx, opts); err != nil {
		return err
	}
	return s.initialise(ctx)
}

// programs returns the programs to use: those of opts, an installed PostgreSQL that fits the data, or a downloaded one.
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

// cacheDir returns the folder for downloaded programs. The account can run programs in it.
func (s *Server) cacheDir() string {
	if cache, err := os.UserCacheDir(); err == nil && !s.who.drop {
		return filepath.Join(cache, "jig")
	}
	return filepath.Join(sharedTemp(), "jig-postgres-programs")
}

// Version returns the version of PostgreSQL, e.g. "15.14".
func (s *Server) Version() string { return s.install.Version }

// DataDir returns PostgreSQL's data folder, below Options.Dir or the folder that replaces it.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

// LogFile returns the path of PostgreSQL's log.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "postgres.log") }

// Addr returns the host:port of the server. It stays the same after a restart.
func (s *Server) Addr() string { return s.addr }

// URL returns the URL for connecting to database as role, with Password(role) as the password. The caller must create roles other
// than [Superuser].
func (s *Server) URL(role, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, s.Password(role)), Host: s.addr, Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Died returns a channel that yields one error if the server ends without having been asked to.
func (s *Server) Died() <-chan error { return s.died }

// Close stops the server and, if it is ephemeral, removes its files.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.Stop(ctx), s.discard())
}
