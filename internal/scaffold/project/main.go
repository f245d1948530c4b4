// Command worker runs jig's worker with this project's tools beside the built-in ones.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jig-run/jig/internal/scaffold/shop"
	"github.com/jig-run/jig/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs the worker until ctx ends. Its settings come from the environment and from the file that jig-dev writes.
func run(ctx context.Context) error {
	orders, err := shop.Open("orders")
	if err != nil {
		return err
	}
	defer orders.Close()
	settings, err := worker.LoadSettings(os.Environ())
	if err != nil {
		return err
	}
	return worker.Run(ctx, settings, settings.Logger(os.Stderr), shop.RefundTool(orders))
}
