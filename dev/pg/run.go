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

	"github.com/jig-run/jig/dev/port"
)

// child is one run of the server process.
type child struct {
	process *os.Process
	// exited is closed after the process has ended and err is set.
	exited chan struct{}
	err    error
	// asked is set before we end the process, so that its end is no surprise.
	asked atomic.Bool
}

// errNoFailure is how a process ends that somebody stopped in an orderly way.
var errNoFailure = errors.New("exit status 0")

// end is how the process ended, once exited is closed.
func (c *child) end() error {
	if c.err == nil {
		return errNoFailure
	}
	return c.err
}

// ended tells whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Start runs the server and waits until it answers. Starting a running server does nothing.
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
	// The shared memory of a server that was killed is released when the last of its backends has noticed.
	for {
		err := s.startOnce(ctx)
		if err == nil || !strings.Contains(err.Error(), "shared memory block") || ctx.Err() != nil {
			return err
		}
	}
}

// startOnce is one attempt of Start.
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

// spawn starts `postgres` and waits for its end in the background. The kernel ties the life of the process to the thread
// that started it, so a goroutine keeps that thread until the process has ended.
func (s *Server) spawn() (*child, error) {
	logFile, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL's log: %w", err)
	}
	cmd := exec.Command(filepath.Join(s.install.BinDir, "postgres"), s.arguments()...) //nolint:gosec,noctx // ended by Stop
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

// arguments of `postgres`: safe as in production, sized for a developer's machine.
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

// whyEnded explains the end of a server that should run.
func (s *Server) whyEnded(ctx context.Context, c *child) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("PostgreSQL: %w", &port.TakenError{Addr: s.addr})
	}
	return fmt.Errorf("PostgreSQL ended (%w); its log ends:\n%s", errors.Join(c.end(), listener.Close()), s.logTail())
}

// watch reports the end of a child that nobody asked for.
func (s *Server) watch(c *child) {
	<-c.exited
	if c.asked.Load() {
		return
	}
	select {
	case s.died <- fmt.Errorf("PostgreSQL ended by itself (%w); its log ends:\n%s", c.end(), s.logTail()):
	default:
	}
}

// Stop ends the server in an orderly way: open transactions are rolled back, everything committed is on disk. When that
// takes longer than ten seconds, or ctx is over, at once, and the next Start recovers what was committed. Stopping a stopped server
// does nothing. The error means that the server still runs.
func (s *Server) Stop(ctx context.Context) error {
	return s.halt(ctx, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL)
}

// Kill ends the server as a crash would; the next Start recovers what was committed.
func (s *Server) Kill(ctx context.Context) error { return s.halt(ctx, syscall.SIGKILL) }

// Restart stops the server and starts it again with the same data and address.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// halt ends the child with the first signal that works.
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

// end sends signals, each harsher than the one before, until the process has ended, and tells whether it has. When ctx is over, the
// first of several is not waited for.
func end(ctx context.Context, c *child, signals ...syscall.Signal) bool {
	for i, signal := range signals {
		// The error means that the process has ended already.
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

// logTail is the end of PostgreSQL's log, for error messages.
func (s *Server) logTail() string {
	content, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
