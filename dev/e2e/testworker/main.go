// Command testworker is jig's worker with the probes of the end-to-end tests as additional tools. JIG_TEST_REVISION makes it another
// version, in which the contract of one probe is different.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jig-run/jig/dev/internal/probe"
	"github.com/jig-run/jig/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	settings, err := worker.LoadSettings(os.Environ())
	if err == nil {
		err = worker.Run(ctx, settings, settings.Logger(os.Stderr), probe.Tools(os.Getenv("JIG_TEST_REVISION"))...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // the only deferred call has been made
	}
}
