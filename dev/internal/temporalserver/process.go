package temporalserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// killPatience is how long a killed process may take to end.
	killPatience = 10 * time.Second
	// headLines is the number of lines kept for an error message.
	headLines = 20
)

// process is one run of the program.
type process struct {
	cmd *exec.Cmd
	// input stays open while the server is needed. When it is closed, the program exits.
	input   io.Closer
	reports chan report
	// exited is closed after the process has ended and err is set.
	exited chan struct{}
	err    error
	// asked is set before this package ends the process, so that its end is not reported as a failure.
	asked atomic.Bool
	said  head
}

// spawn starts the program and passes its configuration. The kernel kills the process when the thread that started it ends, so a
// goroutine stays locked to that thread until the process has ended.
func spawn(ctx context.Context, opts Options, cfg config) (*process, error) {
	running := context.WithoutCancel(ctx)
	document, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("the configuration of Temporal: %w", err)
	}
	p := &process{
		cmd:     exec.Command(opts.Program), //nolint:gosec,noctx // package program built it; Stop ends it, not a context
		reports: make(chan report, 8), exited: make(chan struct{}),
	}
	p.cmd.SysProcAttr = attributes()
	p.cmd.Stdout = &lines{each: p.report}
	p.cmd.Stderr = &lines{each: func(line []byte) { p.relay(running, opts.Log, line) }}
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	p.input = input
	begun := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		begun <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.exited)
	}()
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	if _, err := input.Write(append(document, '\n')); err != nil {
		return nil, fmt.Errorf("start Temporal: %w", errors.Join(err, p.kill(), p.ended()))
	}
	return p, nil
}

// signal asks the process to end. It does nothing if the process has already ended.
func (p *process) signal(sig syscall.Signal) {
	p.asked.Store(true)
	_ = p.cmd.Process.Signal(sig) //nolint:errcheck // see above
}

// kill kills the process and waits until it has ended.
func (p *process) kill() error {
	p.signal(syscall.SIGKILL)
	select {
	case <-p.exited:
		return nil
	case <-time.After(killPatience):
		return fmt.Errorf("the Temporal server (process %d) does not end", p.cmd.Process.Pid)
	}
}

// next returns the next report. If the process has ended without another report, the error says how it ended.
func (p *process) next(ctx context.Context) (report, error) {
	select {
	case r := <-p.reports:
		return r, nil
	case <-p.exited:
	case <-ctx.Done():
		return report{}, ctx.Err() //nolint:wrapcheck // the caller adds what it waited for
	}
	select { // all output has been read
	case r := <-p.reports:
		return r, nil
	default:
		return report{}, p.ended()
	}
}

// ended returns an error that explains why a process ended that should be running. The process must have ended.
func (p *process) ended() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("the Temporal server ended (%s)%s", how, p.said.String())
}

// report parses a line of standard output and passes it on.
func (p *process) report(line []byte) {
	var r report
	if json.Unmarshal(line, &r) != nil {
		p.said.add(line)
		return
	}
	select {
	case p.reports <- r:
	default: // the buffer is full of unread reports, so drop this one
	}
}

// relay logs a line of standard error. A line that is not a log record, for example of a panic's trace, is kept for the error message. While
// the server shuts down, its services fail each other's requests, so everything that it logs then has the level debug.
func (p *process) relay(ctx context.Context, log *slog.Logger, line []byte) {
	level, message, attrs, err := record(line)
	if err != nil {
		p.said.add(line)
		return
	}
	if p.asked.Load() {
		level = min(level, slog.LevelDebug)
	}
	log.LogAttrs(ctx, level, message, attrs...) //nolint:sloglint // the message is Temporal's
}

// record parses a line of slog.JSONHandler. It returns the attributes sorted by name.
func record(line []byte) (level slog.Level, message string, attrs []slog.Attr, err error) {
	var head struct {
		Level   slog.Level `json:"level"`
		Message string     `json:"msg"`
	}
	head.Level = slog.LevelError
	var fields map[string]any
	if err := errors.Join(json.Unmarshal(line, &head), json.Unmarshal(line, &fields)); err != nil {
		return 0, "", nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != slog.TimeKey && key != slog.LevelKey && key != slog.MessageKey {
			attrs = append(attrs, slog.Any(key, fields[key]))
		}
	}
	return head.Level, head.Message, attrs, nil
}

// head keeps the first lines that were written, because a panic prints its message before it lists all goroutines.
type head struct {
	mu    sync.Mutex
	lines []string
}

func (h *head) add(line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lines) < headLines {
		h.lines = append(h.lines, string(line))
	}
}

// String returns the lines with an introduction, or "" if there are no lines.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lines) == 0 {
		return ""
	}
	return "; it wrote:\n" + strings.Join(h.lines, "\n")
}

// lines is a writer that calls each for every complete line, without its line end.
type lines struct {
	each func(line []byte)
	rest []byte
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			l.each(line)
		}
		l.rest = rest
	}
}
