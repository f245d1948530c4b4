// Command attack attacks a server with one API key, and prints how long another tenant waits for its starts and decisions meanwhile:
//
//	go run ./attack -attacker KEY -other KEY -pid SERVER
//
// Both keys are of the server at JIG_URL. The attacker's needs the scopes read and run, the other one decide as well, in another tenant.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jig-run/jig/dev/internal/attack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o := attack.Options{URL: os.Getenv("JIG_URL")}
	flag.StringVar(&o.Attacker, "attacker", "", "key of the attacker")
	flag.StringVar(&o.Other, "other", "", "key of the other tenant")
	flag.IntVar(&o.Calls, "calls", 100, "calls of the other tenant during each attack")
	flag.IntVar(&o.Streams, "streams", 6000, "streams")
	flag.IntVar(&o.Waits, "waits", 1300, "requests that wait")
	flag.IntVar(&o.Bodies, "bodies", 200, "clients that send large requests")
	flag.IntVar(&o.Starts, "starts", 50, "clients that start calls")
	flag.StringVar(&o.Only, "only", "", "the only attack to try (default all)")
	flag.IntVar(&o.Idle, "idle", 3000, "connections without a request")
	pid := flag.Int("pid", 0, "process of the server, to measure its memory (Linux)")
	flag.Parse()
	var peak atomic.Int64
	go func() {
		for ctx.Err() == nil {
			peak.Store(max(peak.Load(), memory(*pid)))
			time.Sleep(200 * time.Millisecond)
		}
	}()
	o.Report = func(p attack.Phase) {
		fmt.Printf("%-17s start p50 %s p99 %s, decision p50 %s p99 %s, the attacker's responses %v, the server used at most %d MiB so far\n", p.Name,
			quantile(p.Starts, 0.5), quantile(p.Starts, 0.99), quantile(p.Decisions, 0.5), quantile(p.Decisions, 0.99), p.Answers, peak.Load()>>20)
	}
	_, err := attack.Run(ctx, o)
	return err
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(100 * time.Microsecond)
}

// memory returns the resident memory of a process in bytes; 0 if it is not known.
func memory(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
