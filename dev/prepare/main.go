// Command prepare builds the Temporal server unless it is in the cache, as jig-dev does when it starts. The Makefile runs it in
// parallel with the build of jig-dev.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jig-run/jig/dev/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := program.Temporal(ctx, func(progress string) { fmt.Fprintln(os.Stderr, "…", progress) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
