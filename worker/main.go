// Command worker runs jig's Temporal worker. `worker migrate` brings the database's schema up to date, and `worker mark-restored` holds
// calls back after a restore from a backup. Settings come from the environment; `worker --help` lists them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
