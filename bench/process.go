package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// workerCommand is the argument that makes this program a worker.
const workerCommand = "worker"

// ready begins the line that a worker prints when it has begun to poll, and a server when it accepts requests; its address follows. After that a
// worker prints the entries of bench.write and bench.mark, one per line.
const ready = "ready"

// serve runs a worker in this process until ctx ends.
func serve(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	queue := flags.String("queue", taskQueue, "task queue")
	tasks := flags.Int("workflow-tasks", defaultWorkflowTasks(), "workflow tasks at the same time")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	e, err := readEnvironment()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(stdout)
	engine, err := newEngine(ctx, e.database, "", func(one entry) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(one) //nolint:errcheck // the reader has gone
	})
	if err != nil {
		return err
	}
	defer engine.close()
	temporal, err := dial(ctx, e)
	if err != nil {
		return err
	}
	defer temporal.Close()
	w, err := startWorker(temporal, *queue, engine, *tasks)
	if err != nil {
		return err
	}
	defer w.Stop()
	mu.Lock()
	_, err = fmt.Fprintln(stdout, ready)
	mu.Unlock()
	if err != nil {
		return fmt.Errorf("report that the worker is ready: %w", err)
	}
	<-ctx.Done()
	return nil
}

// process is a worker or a server in a separate process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	// url is the address of a server.
	url string
}

// spawn starts a worker process and waits until it polls. The process ends with ctx at the latest.
func (b *bench) spawn(ctx context.Context, queue string) (*process, error) {
	return b.launch(ctx, nil, workerCommand, "-queue", queue, "-workflow-tasks", strconv.Itoa(b.workflowTasks))
}

// launch starts this program with other arguments and waits until it is ready. settings are further variables of its environment.
func (b *bench) launch(ctx context.Context, settings []string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program itself
	cmd.Env = append(os.Environ(), settings...)
	cmd.Stderr = b.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a %s: %w", args[0], err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	up := make(chan string, 1)
	go func() {
		defer close(p.done)
		b.read(stdout, up)
		_ = cmd.Wait() //nolint:errcheck // it was killed
	}()
	select {
	case p.url = <-up:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("the %s ended before it was ready", args[0])
	case <-time.After(30 * time.Second):
		p.kill()
		return nil, fmt.Errorf("the %s was not ready within 30 s", args[0])
	}
}

// read passes on the output of a process: the address in the ready line, and the entries.
func (b *bench) read(stdout io.Reader, up chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var one entry
		address, isReady := strings.CutPrefix(lines.Text(), ready)
		switch {
		case isReady:
			up <- strings.TrimSpace(address)
		case json.Unmarshal(lines.Bytes(), &one) == nil:
			b.entries.enter(one)
		}
	}
}

// kill kills the process with SIGKILL and waits until it has ended. It may be called again.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() //nolint:errcheck // an error means that the process has already ended
	<-p.done
}

// memory returns the resident memory in bytes.
func (p *process) memory() (float64, error) {
	content, err := os.ReadFile(p.file("statm")) //nolint:gosec // the /proc file of a process that this program started
	if err != nil {
		return 0, fmt.Errorf("memory of the worker: %w", err)
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0, errors.New("memory of the worker: unexpected file format")
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0, fmt.Errorf("memory of the worker: %w", err)
	}
	return pages * float64(os.Getpagesize()), nil
}

// processor returns the CPU time used so far, user and system.
func (p *process) processor() (time.Duration, error) {
	content, err := os.ReadFile(p.file("stat")) //nolint:gosec // as above
	if err != nil {
		return 0, fmt.Errorf("CPU time of the worker: %w", err)
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("CPU time of the worker: unexpected file format")
	}
	var ticks float64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of the worker: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks / ticksPerSecond * float64(time.Second)), nil
}

// ticksPerSecond is USER_HZ, which is the same on every Linux.
const ticksPerSecond = 100

func (p *process) file(name string) string {
	return fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name)
}
