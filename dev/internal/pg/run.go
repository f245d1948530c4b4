package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig/dev/internal/port"
)

// child is one run of the server process.
type child struct {
	process *os.Process
	// exited is closed after the process has ended and err is set.
	exited chan struct{}
	err    error
	// asked is set before this package ends the process, so that watch does not report the end as a failure.
	asked atomic.Bool
}

// errNoFailure is the error for a process that somebody else stopped with an orderly shutdown.
var errNoFailure = errors.New("exit status 0")

// end returns how the process ended. It may be called once exited is closed.
func (c *child) end() error {
	if c.err == nil {
		return errNoFailure
	}
	return c.err
}

// ended reports whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Start starts the server and waits until it answers. It does nothing if the server is running.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil && !s.child.ended() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := clearStale(ctx, s.DataDir()); err != nil {
		return err
	}
	// The shared memory of a killed server is released only when its last backend has ended.
	for {
		err := s.full(s.startOnce(ctx))
		if err == nil || !strings.Contains(err.Error(), "shared memory block") || ctx.Err() != nil {
			return err
		}
	}
}

// startOnce makes one attempt to start the server.
func (s *Server) startOnce(ctx context.Context) error {
	started, err := s.spawn()
	if err != nil {
		return err
	}
	if err := s.ready(ctx, started); err != nil {
		end(ctx, started, syscall.SIGKILL)
		return err
	}
	s.child = started
	go s.watch(started)
	return nil
}

// spawn starts `postgres` and waits for its end in the background. The kernel stops the process when the thread that started it
// ends, so a goroutine stays locked to that thread until the process has ended.
func (s *Server) spawn() (*child, error) {
	logFile, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL's log: %w", err)
	}
	cmd := exec.Command(filepath.Join(s.install.BinDir, "postgres"), s.arguments()...) //nolint:gosec,noctx // Stop ends it, not a context
	cmd.SysProcAttr = attributes(s.who)
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	cmd.Stdout, cmd.Stderr = logFile, logFile

	c := &child{exited: make(chan struct{})}
	begun := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		begun <- err
		if err == nil {
			c.err = cmd.Wait()
		}
		c.err = errors.Join(c.err, logFile.Close())
		close(c.exited)
	}()
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return c, nil
}

// arguments returns the arguments of `postgres`: as durable as in production, with memory sizes for a developer's machine. The log of changes of
// an ephemeral server is small, because nobody restores or replicates it.
func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port.Number(s.addr)),
		"unix_socket_directories": "",
		"max_connections":         "200",
		"shared_buffers":          "256MB",
		"max_wal_size":            "2GB",
		"fsync":                   "on",
		"jit":                     "off",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
	}
	if s.ephemeral {
		settings["max_wal_size"], settings["wal_level"], settings["max_wal_senders"] = "1GB", "minimal", "0"
	}
	maps.Copy(settings, s.settings)
	args := []string{"-D", s.DataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// ready waits until the server answers a query.
func (s *Server) ready(ctx context.Context, c *child) error {
	var last error
	err := poll(ctx, func() bool {
		if c.ended() {
			return true
		}
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		var conn *pgx.Conn
		if conn, last = pgx.Connect(attempt, s.URL(Superuser, "postgres")); last != nil {
			return false
		}
		last = conn.Close(attempt)
		return last == nil
	})
	if err != nil {
		return fmt.Errorf("PostgreSQL on %s does not answer: %w (last: %w); its log ends:\n%s", s.addr, err, last, s.logTail())
	}
	if c.ended() {
		return s.whyEnded(ctx, c)
	}
	return nil
}

// whyEnded returns an error that explains why a server ended that should be running.
func (s *Server) whyEnded(ctx context.Context, c *child) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("PostgreSQL: %w", &port.TakenError{Addr: s.addr})
	}
	return fmt.Errorf("PostgreSQL ended (%w); its log ends:\n%s", errors.Join(c.end(), listener.Close()), s.logTail())
}

// watch reports the end of a child that ended without having been asked to.
func (s *Server) watch(c *child) {
	<-c.exited
	if c.asked.Load() {
		return
	}
	select {
	case s.died <- s.full(fmt.Errorf("PostgreSQL ended by itself (%w); its log ends:\n%s", c.end(), s.logTail())):
	default:
	}
}

// Stop shuts the server down: open transactions are rolled back, and committed data are on disk. If that takes longer than ten
// seconds, or if ctx ends, Stop ends the server immediately, and the next Start recovers the committed data. It does nothing if
// the server is stopped. An error means that the server is still running.
func (s *Server) Stop(ctx context.Context) error {
	return s.halt(ctx, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL)
}

// Kill ends the server as a crash would; the next Start recovers the committed data.
func (s *Server) Kill(ctx context.Context) error { return s.halt(ctx, syscall.SIGKILL) }

// Restart stops the server and starts it again with the same data and address.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// halt sends the signals one after another until the child has ended.
func (s *Server) halt(ctx context.Context, signals ...syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return nil
	}
	s.child.asked.Store(true)
	if !end(ctx, s.child, signals...) {
		return fmt.Errorf("PostgreSQL (process %d) does not stop", s.child.process.Pid)
	}
	s.child = nil
	return nil
}

// end sends signals, each harsher than the one before, until the process has ended, and reports whether it has. If ctx has ended, end
// does not wait after the first of several signals.
func end(ctx context.Context, c *child, signals ...syscall.Signal) bool {
	for i, signal := range signals {
		// An error means that the process has already ended.
		_ = c.process.Signal(signal) //nolint:errcheck // see above
		var over <-chan struct{}
		if i == 0 && len(signals) > 1 {
			over = ctx.Done()
		}
		select {
		case <-c.exited:
			return true
		case <-over:
		case <-time.After(stopPatience):
		}
	}
	return false
}

// logTail returns the end of PostgreSQL's log, for error messages.
func (s *Server) logTail() string {
	content, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
