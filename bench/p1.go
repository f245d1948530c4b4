package main

import (
	"context"
	"fmt"
	"time"
)

// latency measures P1: how long a session takes, one at a time.
func latency(ctx context.Context, b *bench) ([]row, error) {
	sides := allSides()
	for _, s := range sides { // warm up
		if _, err := b.runSession(ctx, s, b.sessionPlan(s)); err != nil {
			return nil, err
		}
	}
	values, err := b.alternate(ctx, "p1", sides, func(ctx context.Context, s side) (float64, error) {
		times := make([]float64, b.size.latencySessions)
		for i := range times {
			began := time.Now()
			if _, err := b.runSession(ctx, s, b.sessionPlan(s)); err != nil {
				return 0, err
			}
			times[i] = milliseconds(time.Since(began))
		}
		return quantile(times, 0.5), nil
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("session latency p50, %d passes of %d tools and one that answers", b.size.passes, b.size.calls)
	rows := b.compare(what+", %s", values, " ms", 0, judgeAtMost)
	return rows, nil
}

func (b *bench) sessionPlan(s side) plan {
	return plan{Passes: b.size.passes, Calls: b.size.calls, Tool: s.tool}
}

// judgeAtMost and judgeAtLeast return the targets of P1 and P2 for the ratio to B0, and the verdicts. local selects the target for local
// tools.
func judgeAtMost(local bool, ratio float64) (string, verdict) {
	bound := 1.2
	if local {
		bound = 0.7
	}
	return fmt.Sprintf("≤ %g × B0", bound), judge(ratio <= bound)
}

func judgeAtLeast(local bool, ratio float64) (string, verdict) {
	bound := 0.85
	if local {
		bound = 1.5
	}
	return fmt.Sprintf("≥ %g × B0", bound), judge(ratio >= bound)
}

// compare returns the rows of P1, P2 and C1 for values measured on allSides or chainSides: jig and jig local against B0, and bare B0 for
// information.
func (b *bench) compare(what string, values [][]float64, unit string, decimals int, target func(local bool, ratio float64) (string, verdict)) []row {
	const loop, bare = 2, 3
	var rows []row
	for i, tools := range []string{"activity tools", "quick local tools"} {
		ratio := ratios(values[i], values[loop])
		r := row{
			figure: fmt.Sprintf(what, tools), jig: spreadOf(values[i]).show(decimals, unit),
			baseline: spreadOf(values[loop]).show(decimals, unit), ratio: ratio.show(2, ""),
		}
		r.target, r.verdict = target(i == 1, ratio.median)
		rows = append(rows, r)
	}
	return append(rows, row{
		figure: fmt.Sprintf(what, "bare B0 (no store), compared with B0"), jig: spreadOf(values[bare]).show(decimals, unit),
		baseline: spreadOf(values[loop]).show(decimals, unit), ratio: ratios(values[bare], values[loop]).show(2, ""), verdict: notJudged,
	})
}
