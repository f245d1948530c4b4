package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/server"
)

// serverCommand is the argument that makes this program a server of the HTTP API.
const serverCommand = "server"

// serveAPI runs a server of the HTTP API in this process until ctx ends.
func serveAPI(ctx context.Context, args []string, stdout io.Writer) error {
	settings, err := serverSettings()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet(serverCommand, flag.ContinueOnError)
	flags.StringVar(&settings.Temporal.TaskQueue, "queue", taskQueue, "task queue of the workers")
	flags.IntVar(&settings.StartsPerTenant, "starts", 0, "sessions a second that each tenant may start; 0 for no limit")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	s, err := server.Start(ctx, settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer s.Stop(ctx)
	if _, err = fmt.Fprintln(stdout, ready, s.URL()); err != nil {
		return fmt.Errorf("report that the server is ready: %w", err)
	}
	<-ctx.Done()
	return nil
}

// serverSettings returns the settings of a server for the worker of the benchmarks, without rate limits and without a key to sign with, because
// that worker has no root key.
func serverSettings() (server.Settings, error) {
	s, err := server.ReadSettings(client.SettingsRequest{Environ: os.Environ(), TaskQueue: taskQueue})
	if err == nil && s.DatabaseURL == "" {
		err = errors.New("JIG_SERVER_DATABASE_URL must be set; `make bench` sets it")
	}
	if err != nil {
		return s, fmt.Errorf("the server's settings: %w", err)
	}
	s.Address, s.PublicURL, s.KeyFile, s.RatePerKey, s.RatePerAddress = "127.0.0.1:0", "", "", 0, 0
	return s, nil
}

// apiServers starts n servers of the HTTP API in separate processes, with flags of serveAPI, and makes a key for a tenant.
func (b *bench) apiServers(ctx context.Context, tenant string, n int, flags ...string) (list servers, key string, err error) {
	settings, err := serverSettings()
	if err != nil {
		return nil, "", err
	}
	key, _, err = server.CreateAPIKey(ctx, settings, slog.New(slog.DiscardHandler), credential.Credential{
		Tenant: tenant, Principal: "bench", Scopes: []string{credential.ScopeRead, credential.ScopeRun, credential.ScopeDecide},
	})
	if err != nil {
		return nil, "", fmt.Errorf("make an API key: %w", err)
	}
	list, err = b.launchServers(ctx, n, append([]string{serverCommand}, flags...)...)
	return list, key, err
}

// servers are servers in separate processes.
type servers []*process

func (b *bench) launchServers(ctx context.Context, n int, args ...string) (list servers, err error) {
	for range n {
		p, err := b.launch(ctx, nil, args...)
		if err != nil {
			list.kill()
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (s servers) kill() {
	for _, p := range s {
		p.kill()
	}
}
