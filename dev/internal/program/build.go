package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// sayAfter is the time after which a wait is reported.
	sayAfter = 5 * time.Second
	// sayEvery is the interval of further reports.
	sayEvery = 10 * time.Second
)

// arguments returns the arguments of `go` for building a program at path. Linking takes half as long without debugging
// information. -v lists packages as they are compiled.
func arguments(path string) []string {
	return []string{"build", "-v", "-ldflags=-s -w", "-o", path, "."}
}

// build compiles the module in source into a program at path. The file appears there only when it is complete.
func build(ctx context.Context, source, path string, say func(string)) error {
	scratch, err := os.MkdirTemp(filepath.Dir(path), "build-*")
	if err != nil {
		return fmt.Errorf("create a folder for the Temporal server: %w", err)
	}
	defer os.RemoveAll(scratch) // if this fails, prune removes it with the folder
	say("building the Temporal server, once for this version (minutes, unless much of it is in Go's build cache)")
	total := packages(ctx, source, say)
	output := &counter{}
	done := every(say, func(passed time.Duration) string {
		return fmt.Sprintf("building the Temporal server: %s after %s", output.progress(total), passed)
	})
	defer done()
	cmd := command(ctx, source, arguments(filepath.Join(scratch, name))...)
	cmd.Stderr = output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the Temporal server in %s: %w\n%s", source, err, output.failure())
	}
	if err := os.Rename(filepath.Join(scratch, name), path); err != nil {
		return fmt.Errorf("keep the Temporal server: %w", err)
	}
	return nil
}

// packages counts the packages of the program. This also downloads their modules. It returns 0 if the number is unknown; the
// build then reports the error.
func packages(ctx context.Context, source string, say func(string)) int {
	done := every(say, func(passed time.Duration) string {
		return fmt.Sprintf("fetching the modules of the Temporal server: %s", passed)
	})
	defer done()
	out, err := command(ctx, source, "list", "-deps", ".").Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// command returns a `go` command in the module at source, which is not part of a workspace.
func command(ctx context.Context, source string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // this package makes the arguments
	cmd.Dir = source
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // an interrupt makes go end its compilers, too
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd
}

// counter counts the packages that `go build -v` lists, and keeps its other output.
type counter struct {
	packages atomic.Int64
	rest     []byte
	errors   []string
}

// Write never fails.
func (c *counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, rest, found := bytes.Cut(c.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.rest = rest
		if text := string(line); strings.ContainsAny(text, " #\t") {
			c.errors = append(c.errors, text)
		} else {
			c.packages.Add(1)
		}
	}
}

// progress describes how many of the packages have been compiled. total is 0 if it is unknown.
func (c *counter) progress(total int) string {
	if total == 0 {
		return fmt.Sprintf("%d packages", c.packages.Load())
	}
	return fmt.Sprintf("%d of at most %d packages", c.packages.Load(), total)
}

// failure returns the output of the build without the names of packages. The build must have ended.
func (c *counter) failure() string {
	return strings.Join(append(c.errors, string(c.rest)), "\n")
}

// every passes a text to say after five seconds, and then every ten seconds, until done is called.
func every(say func(string), text func(passed time.Duration) string) (done func()) {
	began := time.Now()
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(sayAfter)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				timer.Reset(sayEvery)
				say(text(time.Since(began).Round(time.Second)))
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
