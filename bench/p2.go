package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// described is the number of sessions per side and pair whose history events are counted.
const described = 4

// load holds further measurements of a side.
type load struct {
	// Per pair: history events per pass, and milliseconds of CPU per pass, of this process and of the whole machine.
	events, cpu, machine []float64
}

// throughput measures P2: passes per second with many sessions at a time, history events and CPU time per pass.
func throughput(ctx context.Context, b *bench) ([]row, error) {
	loads := map[string]*load{}
	values, err := b.alternate(ctx, "p2", allSides(), func(ctx context.Context, s side) (float64, error) {
		if loads[s.name] == nil {
			loads[s.name] = &load{}
		}
		return b.underLoad(ctx, s, loads[s.name])
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("passes per second, %d sessions at a time", b.size.loadAtOnce)
	rows := b.compare(what+", %s", values, "", 1, judgeAtLeast)
	jig, local, loop := loads["jig"], loads["jig local"], loads["B0"]
	const own, all = "CPU of worker and client per pass, ", "CPU of the whole machine, including Temporal and PostgreSQL, per pass, "
	return append(rows, eventRow("activity tools", jig, loop), eventRow("quick local tools", local, loop),
		cpuRow(own+"activity tools", jig.cpu, loop.cpu), cpuRow(own+"quick local tools", local.cpu, loop.cpu),
		cpuRow(all+"activity tools", jig.machine, loop.machine), cpuRow(all+"quick local tools", local.machine, loop.machine)), nil
}

// underLoad runs many sessions at a time and returns passes per second.
func (b *bench) underLoad(ctx context.Context, s side, l *load) (float64, error) {
	p := b.sessionPlan(s)
	ids := make([]string, b.size.loadSessions)
	var mu sync.Mutex
	used, began := processorTime(), time.Now()
	machine, err := machineTime()
	if err != nil {
		return 0, err
	}
	err = atOnce(ctx, len(ids), b.size.loadAtOnce, func(ctx context.Context, i int) error {
		id, err := b.runSession(ctx, s, p)
		mu.Lock()
		ids[i] = id
		mu.Unlock()
		return err
	})
	took, used := time.Since(began), processorTime()-used
	if err != nil {
		return 0, err
	}
	passes := float64(len(ids) * p.turns())
	l.cpu = append(l.cpu, milliseconds(used)/passes)
	later, err := machineTime()
	if err != nil {
		return 0, err
	}
	l.machine = append(l.machine, milliseconds(later-machine)/passes)
	var events []float64
	for _, id := range ids[:min(described, len(ids))] {
		r, err := b.runsOf(ctx, id)
		if err != nil {
			return 0, err
		}
		events = append(events, float64(r.events)/float64(p.turns()))
	}
	l.events = append(l.events, quantile(events, 0.5))
	return passes / took.Seconds(), nil
}

func eventRow(tools string, jig, loop *load) row {
	more := spreadOf(jig.events).median - spreadOf(loop.events).median
	return row{
		figure: "history events per pass, " + tools, target: "≤ B0 + 6", jig: spreadOf(jig.events).show(1, ""),
		baseline: spreadOf(loop.events).show(1, ""), ratio: fmt.Sprintf("%+.1f", more), verdict: judge(more <= 6),
	}
}

func cpuRow(what string, jig, loop []float64) row {
	return row{
		figure: what, jig: spreadOf(jig).show(2, " ms"), baseline: spreadOf(loop).show(2, " ms"),
		ratio: ratios(jig, loop).show(2, ""), verdict: notJudged,
	}
}

// processorTime returns the CPU time used by this process so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
