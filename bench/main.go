// Command bench measures jig against named baselines on one machine, both sides in the same run, and writes the results to a document. It
// wires its own small engine, from tools that do nothing and a planner that asks no model. It needs a running PostgreSQL and Temporal, whose
// addresses come from the environment. It must not depend on the worker's wiring.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the whole program: the benchmarks, or a worker or server that they start in a separate process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case workerCommand:
			return serve(ctx, args[1:], stdout)
		case serverCommand:
			return serveAPI(ctx, args[1:], stdout)
		case listenerCommand:
			return serveListener(ctx, stdout)
		}
	}
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if o.flush > 0 && os.Getenv(flushedVariable) == "" {
		return flushing(ctx, o.flush, args, stdout, stderr)
	}
	b, err := open(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	rows, failed := b.measure(ctx)
	if ctx.Err() != nil {
		return failed
	}
	report := b.machine(ctx) + table(rows)
	if _, err := io.WriteString(stdout, report); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if failed != nil || o.out == "" {
		return failed
	}
	b.say("writing %s", o.out)
	return writeDocument(o.out, report)
}
