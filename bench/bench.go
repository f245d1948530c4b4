package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/store"
)

// taskQueue is the task queue of the worker in this process.
const taskQueue = "bench"

// bench is one run of the program: its options and the engine that it measures.
type bench struct {
	options
	environment
	stderr   io.Writer
	temporal sdk.Client
	jig      *client.Client
	engine   *engine
	worker   worker.Worker
	// model is the HTTP server that P18 uses as its language model.
	model *httptest.Server
	// entries receives the times at which bench.write and bench.mark were entered, in this process and in separate worker processes.
	entries  *entries
	profiles int
}

// environment holds the addresses of PostgreSQL and Temporal.
type environment struct {
	address, namespace, database string
}

func readEnvironment() (environment, error) {
	e := environment{
		address: os.Getenv("JIG_TEMPORAL_ADDRESS"), namespace: os.Getenv("JIG_TEMPORAL_NAMESPACE"),
		database: os.Getenv("JIG_DATABASE_URL"),
	}
	if e.address == "" || e.namespace == "" || e.database == "" {
		return e, errors.New("JIG_TEMPORAL_ADDRESS, JIG_TEMPORAL_NAMESPACE and JIG_DATABASE_URL must be set; " +
			"`make bench` starts both servers and sets them")
	}
	return e, nil
}

func dial(ctx context.Context, e environment) (sdk.Client, error) {
	// jig and the baselines share this connection, so both send requests as jig's programs do.
	c, err := client.DialTemporal(ctx, sdk.Options{HostPort: e.address, Namespace: e.namespace}, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}

// open brings the schema up to date and starts the engine, with a worker in this process.
func open(ctx context.Context, o options, stderr io.Writer) (*bench, error) {
	e, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	if owner := os.Getenv("JIG_DATABASE_OWNER_URL"); owner != "" {
		role, err := store.RoleOf(e.database)
		if err == nil {
			err = store.Migrate(ctx, owner, role)
		}
		if err != nil {
			return nil, fmt.Errorf("migrate: %w", err)
		}
	}
	b := &bench{options: o, environment: e, stderr: stderr, entries: newEntries(), model: startStandIn()}
	if b.engine, err = newEngine(ctx, e.database, b.model.URL+"/v1/", b.entries.enter); err != nil {
		b.close()
		return nil, err
	}
	if b.temporal, err = dial(ctx, e); err != nil {
		b.close()
		return nil, err
	}
	b.jig = client.New(b.temporal, client.Options{TaskQueue: taskQueue})
	if b.worker, err = startWorker(b.temporal, taskQueue, b.engine, o.workflowTasks); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() {
	if b.worker != nil {
		b.worker.Stop()
	}
	if b.temporal != nil {
		b.temporal.Close()
	}
	if b.engine != nil {
		b.engine.close()
	}
	b.model.Close()
}

// say reports progress on stderr.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.stderr, "bench: "+format+"\n", args...)
}

// figure is one of the design's benchmarks. measure returns a row for each of its parts.
type figure struct {
	id      string
	measure func(ctx context.Context, b *bench) ([]row, error)
}

// figures lists the benchmarks in the order in which they run. Those that leave much data behind come last.
func figures() []figure {
	return []figure{
		{"p1", latency},
		{"p2", throughput},
		{"p3", thinTools},
		{"p4", decisions},
		{"p8", evaluation},
		{"p9", validation},
		{"p10", eventLog},
		{"a1", listing},
		{"c1", compositions},
		{"c2", schedules},
		{"p11", extractions},
		{"p12", overHTTP},
		{"p13", streaming},
		{"p18", beside},
		{"p18-answers", besideAnswers},
		{"p18-wide", besideWide},
		{"f1", fairness},
		{"p6", suspension},
		{"p7", histories},
	}
}

// measure runs the requested benchmarks. A failure does not stop the others; all errors are joined and returned.
func (b *bench) measure(ctx context.Context) ([]row, error) {
	var rows []row
	var errs []error
	for _, f := range figures() {
		if !b.wants(f.id) {
			continue
		}
		began := time.Now()
		b.say("%s …", strings.ToUpper(f.id))
		measured, err := f.measure(ctx, b)
		if ctx.Err() != nil {
			return rows, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.id, err))
			b.say("%s failed: %v", strings.ToUpper(f.id), err)
		}
		b.say("%s took %s", strings.ToUpper(f.id), time.Since(began).Round(time.Second))
		for i := range measured {
			measured[i].id = strings.ToUpper(f.id)
			if b.smoke {
				measured[i].verdict = notJudged
			}
			b.say("  %s", measured[i])
		}
		rows = append(rows, measured...)
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(place(x.id), place(y.id)) })
	return rows, errors.Join(errs...)
}

// place returns a benchmark's position in the table: P1 to P18, then A1, then C1 and C2.
func place(id string) int {
	n, err := strconv.Atoi(id[1:])
	if err != nil {
		return 0
	}
	return 100*strings.IndexByte("PAC", id[0]) + n
}

// profiled runs work, with the CPU profiler if profiles were requested. Each piece of work gets a separate file; `go tool pprof` can merge
// them.
func (b *bench) profiled(figure, side string, work func() error) error {
	if b.profile == "" {
		return work()
	}
	if err := os.MkdirAll(b.profile, 0o750); err != nil { //nolint:gosec // the user names the folder
		return fmt.Errorf("folder of the profiles: %w", err)
	}
	b.profiles++
	name := fmt.Sprintf("%s.%s.%03d.pprof", figure, strings.ReplaceAll(side, " ", "-"), b.profiles)
	file, err := os.Create(filepath.Join(b.profile, name)) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("profile: %w", err), file.Close())
	}
	err = work()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
