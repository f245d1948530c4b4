package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options says what to measure, how much, and where to write the results.
type options struct {
	only    []string
	pairs   int
	smoke   bool
	out     string
	profile string
	// passesPerRun applies to the sessions of all benchmarks; jig's default is 1.
	passesPerRun int
	// workflowTasks is how many workflow tasks a worker executes at the same time.
	workflowTasks int
	// rival is the program that runs agent-sdk-go for P18; "" leaves it out.
	rival string
	// flush is the delay of each flush of PostgreSQL's write-ahead log; 0 means none.
	flush time.Duration
	args  []string
	size  size
}

// size is the amount of work in each benchmark.
type size struct {
	// passes and calls: a session of P1 and P2 has this many passes with this many calls each, and one more pass that answers.
	passes, calls int
	// latencySessions is the number of sessions on each side of a pair of P1, one after another.
	latencySessions int
	// loadSessions is the number of sessions on each side of a pair of P2, at most loadAtOnce at a time.
	loadSessions, loadAtOnce int
	// decisions is the number of decisions of P4 with a warm worker, kills the number of decisions after the worker was killed.
	decisions, kills int
	// suspended is the number of suspended sessions of P6, idle the time for which their worker is watched.
	suspended int
	idle      time.Duration
	// listed is the number of waiting approvals of A1.
	listed int
	// P7 has a session with longPasses passes of longCalls large results each, and a session with one pass of wideCalls calls.
	longPasses, longCalls, wideCalls int
	// appends is the number of appends on each side of a pair of P10. subscribers is the number of subscribers, deliveries the number of
	// events sent to them.
	appends, subscribers, deliveries int
	// requests is the number of requests of each kind on each side of a pair of P12, and streamed the number of events on each side of a pair of
	// P13, for as many subscribers as in P10.
	requests, streamed int
	// steps is the number of steps of a composition of C1. On each side of a pair, chains compositions run one after another, and chainLoad
	// compositions run at most chainsAtOnce at a time.
	steps, chains, chainLoad, chainsAtOnce int
	// firings is the number of firings of each schedule of C2.
	firings int
	// evaluations is the number of evaluations on each side of a pair of P8, in turns, and of validations of P9.
	evaluations int
	// thinFor is how long P3 calls its thin tool.
	thinFor time.Duration
	// entities is the number of entities on each side of a pair of P11, manyEntities the number of entities with one task each, and graphTasks the number
	// of tasks in one graph.
	entities, manyEntities, graphTasks int
	// contestSessions is the number of sessions on each side of a pair of P18, one after another, contestAnswers the number of approvals.
	// countedSessions is the number of sessions whose work is counted, once PostgreSQL's statistics have not changed for settle. Sessions of one
	// pass have contestCalls calls; contestWide of them run on each side of a pair.
	contestSessions, contestAnswers, countedSessions, contestWide int
	settle                                                        time.Duration
	// flood is the number of sessions that the busy tenant of F1 starts, fairAnswers the number of decisions measured meanwhile.
	flood, fairAnswers int
	// fairDoor is how many of these sessions a server in front accepts in a second; if it is 0, the tenant starts them at Temporal. fairStarts is how
	// many a rate limit lets begin in a second; 0 for no limit. fairPause is the time between two decisions.
	fairDoor, fairStarts int
	fairPause            time.Duration
	contestCalls         []int
}

func fullSize() size {
	return size{
		passes: 5, calls: 5, latencySessions: 10, loadSessions: 40, loadAtOnce: 20, decisions: 100, kills: 10,
		suspended: 10_000, idle: 45 * time.Second, listed: 100_000, longPasses: 1000, longCalls: 8, wideCalls: 2500,
		appends: 4000, subscribers: 1000, deliveries: 5000, requests: 20, streamed: 2500,
		steps: 100, chains: 3, chainLoad: 10, chainsAtOnce: 10, firings: 30, evaluations: 10_000,
		thinFor: time.Minute, entities: 500, manyEntities: 10_000, graphTasks: 1000,
		contestSessions: 5, contestAnswers: 10, countedSessions: 20, contestWide: 3, settle: 11 * time.Second, contestCalls: []int{5, 50},
		flood: 5000, fairAnswers: 100, fairDoor: 5, fairPause: 1500 * time.Millisecond,
	}
}

// smokeSize is just large enough to show that everything runs.
func smokeSize() size {
	return size{
		passes: 2, calls: 2, latencySessions: 1, loadSessions: 4, loadAtOnce: 2, decisions: 2, kills: 1,
		suspended: 5, idle: time.Second, listed: 500, longPasses: 3, longCalls: 2, wideCalls: 120,
		appends: 50, subscribers: 20, deliveries: 50, requests: 2, streamed: 50,
		steps: 10, chains: 1, chainLoad: 2, chainsAtOnce: 2, firings: 2, evaluations: 1000,
		thinFor: 3 * time.Second, entities: 10, manyEntities: 150, graphTasks: 60,
		contestSessions: 1, contestAnswers: 1, countedSessions: 1, contestWide: 1, contestCalls: []int{5},
		flood: 40, fairAnswers: 2, fairDoor: 15, fairStarts: 10, fairPause: 100 * time.Millisecond,
	}
}

// defaultWorkflowTasks is the default of jig's worker.
func defaultWorkflowTasks() int { return max(32, 16*runtime.NumCPU()) }

// parse parses the command line.
func parse(args []string, stderr io.Writer) (options, error) {
	o := options{args: args, size: fullSize()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "benchmarks to measure, e.g. p1,p2 (default all)")
	flags.IntVar(&o.pairs, "pairs", 10, "number of pairs; each pair measures every side once")
	flags.BoolVar(&o.smoke, "smoke", false, "run everything with tiny sizes; write no document and judge nothing")
	flags.StringVar(&o.out, "out", "", "document to write the table to, between its markers (default docs/benchmarks.md if all benchmarks are measured)")
	flags.StringVar(&o.profile, "profile", "", "folder for CPU profiles of this process, by benchmark and side")
	flags.IntVar(&o.passesPerRun, "passes-per-run", 1, "passes of a session that share a workflow run (the agent's passes_per_run); with a value other than 1, -out has no default")
	flags.IntVar(&o.workflowTasks, "workflow-tasks", defaultWorkflowTasks(), "workflow tasks that a worker executes at the same time (JIG_WORKFLOW_TASKS); with another value than jig's default, -out has no default")
	flags.StringVar(&o.rival, "agent-sdk-go", "", "program that runs agent-sdk-go for P18, with the commands that bench/rival.go describes")
	flags.DurationVar(&o.flush, "flush", 0, "delay each flush of PostgreSQL's write-ahead log, like a slow disk; starts servers of its own; -out has no default then")
	flags.DurationVar(&o.size.thinFor, "p3", o.size.thinFor, "how long P3 calls its thin tool")
	flags.IntVar(&o.size.fairDoor, "fair-door", o.size.fairDoor, "sessions of F1's busy tenant that a server accepts in a second (JIG_HTTP_RATE_STARTS); with 0, the tenant starts them at Temporal")
	flags.IntVar(&o.size.fairStarts, "fair-starts", o.size.fairStarts, "sessions of F1's busy tenant that its rate limit lets begin in a second; 0 for no limit")
	flags.IntVar(&o.size.flood, "f1", o.size.flood, "sessions that F1's busy tenant starts")
	flags.IntVar(&o.size.suspended, "p6", o.size.suspended, "suspended sessions of P6")
	flags.IntVar(&o.size.longPasses, "p7", o.size.longPasses, "passes of P7")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("read the command line: %w", err)
	}
	if flags.NArg() > 0 || o.pairs < 1 || o.workflowTasks < 2 || o.passesPerRun < 1 || o.size.suspended < 1 || o.size.longPasses < 1 || o.size.thinFor < thinEvery || o.size.fairDoor < 0 || o.size.fairStarts < 0 || o.size.flood < 1 || o.flush < 0 || o.flush > longestFlush {
		return o, errors.New("unknown argument, or a number out of range; see -help")
	}
	if *only != "" {
		o.only = strings.Split(strings.ToLower(*only), ",")
	}
	for _, id := range o.only {
		if !slices.ContainsFunc(figures(), func(f figure) bool { return f.id == id }) {
			return o, fmt.Errorf("there is no benchmark %q", id)
		}
	}
	switch {
	case o.smoke:
		o.pairs, o.size, o.out = 1, smokeSize(), ""
	case o.out == "" && len(o.only) == 0 && o.passesPerRun == 1 && o.flush == 0 && o.workflowTasks == defaultWorkflowTasks():
		o.out = "docs/benchmarks.md"
	}
	return o, nil
}

// wants reports whether a benchmark was requested.
func (o options) wants(id string) bool { return len(o.only) == 0 || slices.Contains(o.only, id) }
