package main

import (
	"context"
	"errors"
	"fmt"
)

// contest holds the measurements of P18: the values of each pair, by the name of the side.
type contest struct {
	latency, rate map[string][]float64
}

// limits are the targets of a setting of jig compared with the bare loop: the largest ratio of the latency and the smallest ratio of the
// throughput. 0 means no target.
type limits struct{ latency, rate float64 }

// contestJob is a job of P18: passes of calls, and one more pass that answers.
type contestJob struct {
	plan plan
	// toBare are the targets by setting. beside says that the rows beside the rival have targets.
	toBare map[string]limits
	beside bool
}

func (j contestJob) name() string { return fmt.Sprintf("J(%d,%d)", j.plan.Passes, j.plan.Calls) }

func contestJobs() []contestJob {
	return []contestJob{
		{plan: plan{Passes: 3, Calls: 5}, beside: true, toBare: map[string]limits{
			"default": {1.6, 0.75}, "auto": {1.2, 0.9}, "local": {0.85, 1.4}, "local and auto": {0.6, 1.9},
		}},
		{plan: plan{Passes: 3, Calls: 1}, toBare: map[string]limits{"default": {latency: 1.5}, "local and auto": {latency: 0.75}}},
	}
}

// beside measures P18: jig beside a bare loop and beside agent-sdk-go, on the same jobs, with the same model.
func beside(ctx context.Context, b *bench) ([]row, error) {
	return b.withRival(ctx, func(sides []contestant) ([]row, error) {
		var rows []row
		for _, job := range contestJobs() {
			measured, err := b.contest(ctx, sides, job)
			rows = append(rows, measured...)
			if err != nil {
				return rows, err
			}
		}
		counted, err := b.contestCounts(ctx, sides)
		return append(rows, counted...), err
	})
}

// besideAnswers measures the part of P18 in which people answer.
func besideAnswers(ctx context.Context, b *bench) ([]row, error) {
	return b.withRival(ctx, func(sides []contestant) ([]row, error) { return b.contestApprovals(ctx, sides) })
}

// besideWide measures the part of P18 in which the calls of a pass wait for each other's commits.
func besideWide(ctx context.Context, b *bench) ([]row, error) {
	return b.wideContest(ctx, b.contestants(nil)[:2])
}

// withRival measures with all contestants. agent-sdk-go is among them if there is a program that runs it.
func (b *bench) withRival(ctx context.Context, measure func(sides []contestant) ([]row, error)) (rows []row, err error) {
	var r *rival
	if b.rival == "" {
		b.say("%s is not measured: it needs a program of its own, see -help and docs/benchmarks.md", rivalName)
	} else {
		if r, err = b.startRival(ctx, b.rival); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.close()) }()
	}
	return measure(b.contestants(r))
}

// contestPairs measures each contestant once per pair, with rotation, and returns the values by name.
func (b *bench) contestPairs(
	ctx context.Context, sides []contestant, measure func(ctx context.Context, c contestant) (float64, error),
) (map[string][]float64, error) {
	byName := map[string]contestant{}
	rotated := make([]side, len(sides))
	for i, c := range sides {
		byName[c.name], rotated[i] = c, side{name: c.name}
	}
	values, err := b.alternate(ctx, "p18", rotated, func(ctx context.Context, s side) (float64, error) { return measure(ctx, byName[s.name]) })
	if err != nil {
		return nil, err
	}
	named := map[string][]float64{}
	for i, c := range sides {
		named[c.name] = values[i]
	}
	return named, nil
}

// latencies measures the p50 of n sessions, one at a time.
func (b *bench) latencies(ctx context.Context, sides []contestant, p plan, n int) (map[string][]float64, error) {
	return b.contestPairs(ctx, sides, func(ctx context.Context, c contestant) (float64, error) {
		times, _, err := c.sessions(ctx, p, n, 1)
		return quantile(times, 0.5), err
	})
}

// contest measures all sides with a job.
func (b *bench) contest(ctx context.Context, sides []contestant, job contestJob) ([]row, error) {
	for _, c := range sides { // warm up
		if _, _, err := c.sessions(ctx, job.plan, min(b.size.loadSessions, b.size.loadAtOnce), b.size.loadAtOnce); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	var m contest
	var err error
	if m.latency, err = b.latencies(ctx, sides, job.plan, b.size.contestSessions); err != nil {
		return nil, err
	}
	m.rate, err = b.contestPairs(ctx, sides, func(ctx context.Context, c contestant) (float64, error) {
		times, elapsed, err := c.sessions(ctx, job.plan, b.size.loadSessions, b.size.loadAtOnce)
		return float64(len(times)) / elapsed.Seconds(), err
	})
	if err != nil {
		return nil, err
	}
	return m.rows(job, b.size.loadAtOnce), nil
}

// rows returns the rows of a job: first compared with the bare loop, then with the rival.
func (m contest) rows(job contestJob, atOnce int) []row {
	rates := fmt.Sprintf("%s, %d at a time: sessions/s", job.name(), atOnce)
	var toBare, besideRival []row
	for _, s := range contestSettings() {
		limit := job.toBare[s.name]
		toBare = append(toBare, m.latencyRow(job, s.name, bareName, limit.latency), m.rateRow(rates, s.name, bareName, limit.rate))
		limit = limits{}
		if job.beside {
			limit = limits{1, 1}
		}
		if job.beside && s.tool == quickTool {
			limit = limits{0.5, 2}
		}
		besideRival = append(besideRival, m.latencyRow(job, s.name, rivalName, limit.latency), m.rateRow(rates, s.name, rivalName, limit.rate))
	}
	if m.rate[rivalName] == nil {
		return append(toBare, row{figure: job.name() + ", jig beside " + rivalName, baseline: rivalName + " was not measured", verdict: notJudged})
	}
	return append(append(toBare, m.latencyRow(job, rivalName, bareName, 0), m.rateRow(rates, rivalName, bareName, 0)), besideRival...)
}

func (m contest) latencyRow(job contestJob, side, base string, most float64) row {
	return ratioRow(job.name()+", one at a time: session p50", side, base, m.latency, " ms", 0, most, false)
}

func (m contest) rateRow(what, side, base string, least float64) row {
	return ratioRow(what, side, base, m.rate, "", 2, least, true)
}

// ratioRow compares a side with a base, pair by pair. limit is the target of the median ratio, at most or at least that; 0 means none.
func ratioRow(what, side, base string, values map[string][]float64, unit string, decimals int, limit float64, atLeast bool) row {
	ratio := ratios(values[side], values[base])
	label := "jig, " + side
	if side == rivalName {
		label = side
	}
	r := row{
		figure: fmt.Sprintf("%s: %s, compared with %s", what, label, base), jig: spreadOf(values[side]).show(decimals, unit),
		baseline: spreadOf(values[base]).show(decimals, unit), ratio: ratio.show(2, ""), verdict: notJudged,
	}
	switch {
	case limit == 0:
	case atLeast:
		r.target, r.verdict = fmt.Sprintf("≥ %g × %s", limit, base), judge(ratio.median >= limit)
	default:
		r.target, r.verdict = fmt.Sprintf("≤ %g × %s", limit, base), judge(ratio.median <= limit)
	}
	return r
}

// contestApprovals measures how long a tool takes to start after a person's answer.
func (b *bench) contestApprovals(ctx context.Context, sides []contestant) ([]row, error) {
	var asked []contestant
	for _, c := range sides {
		if c.approvals == nil {
			continue
		}
		if _, err := c.approvals(ctx, 1); err != nil { // warm up
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		asked = append(asked, c)
	}
	values, err := b.contestPairs(ctx, asked, func(ctx context.Context, c contestant) (float64, error) {
		times, err := c.approvals(ctx, b.size.contestAnswers)
		return quantile(times, 0.5), err
	})
	if err != nil {
		return nil, err
	}
	const what = "answer of a person sent → tool function entered, p50"
	if values[rivalName] == nil {
		return []row{{
			figure: what + ": jig, default", jig: spreadOf(values["default"]).show(1, " ms"), baseline: rivalName + " was not measured",
			verdict: notJudged,
		}}, nil
	}
	return []row{ratioRow(what, "default", rivalName, values, " ms", 1, 1.3, false)}, nil
}

// contestCounts counts what explains the figures: history events, writes to Temporal's visibility store, and transactions.
func (b *bench) contestCounts(ctx context.Context, sides []contestant) ([]row, error) {
	job := contestJobs()[0]
	counts, err := b.countWork(ctx, sides, job.plan)
	if err != nil {
		return nil, err
	}
	text := func(c workCount) string {
		return fmt.Sprintf("%.0f / %.1f / %.0f / %.0f", c.events, c.visibility, c.xids, c.commits)
	}
	var rows []row
	for _, c := range sides[1:] {
		label := "jig, " + c.name
		if c.name == rivalName {
			label = c.name
		}
		rows = append(rows, row{
			figure: fmt.Sprintf("%s, a session: history events / rows written to the visibility store / transactions that wrote, in all databases / "+
				"transactions in jig's database: %s, compared with %s", job.name(), label, bareName),
			jig: text(counts[c.name]), baseline: text(counts[bareName]), verdict: notJudged,
		})
	}
	return rows, nil
}

// wideContest measures sessions of one pass with few and with many calls, whose commits queue up for one session's row.
func (b *bench) wideContest(ctx context.Context, sides []contestant) ([]row, error) {
	var rows []row
	for _, calls := range b.size.contestCalls {
		job := contestJob{plan: plan{Passes: 1, Calls: calls}}
		values, err := b.latencies(ctx, sides, job.plan, b.size.contestWide)
		if err != nil {
			return rows, err
		}
		rows = append(rows, contest{latency: values}.latencyRow(job, "default", bareName, 0))
	}
	return rows, nil
}
