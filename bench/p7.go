package main

import (
	"context"
	"fmt"
	"time"
)

// The maximum history of a run.
const (
	mostEvents = 1000
	mostBytes  = 1 << 20
)

// histories measures P7: the largest history of any run, for a very long session and for a very wide pass.
func histories(ctx context.Context, b *bench) ([]row, error) {
	long := plan{Passes: b.size.longPasses, Calls: b.size.longCalls, Tool: blobTool}
	wide := plan{Passes: 1, Calls: b.size.wideCalls, Tool: noopTool}
	var rows []row
	for _, one := range []struct {
		what string
		plan plan
	}{
		{fmt.Sprintf("%d passes of %d calls with %d KB results", long.Passes, long.Calls, blobBytes/1000), long},
		{fmt.Sprintf("one pass of %d calls", wide.Calls), wide},
	} {
		began := time.Now()
		var id string
		err := b.profiled("p7", "jig", func() (err error) {
			id, err = b.runSession(ctx, jigSide(), one.plan)
			return err
		})
		if err != nil {
			return rows, err
		}
		took := time.Since(began).Round(time.Second)
		r, err := b.runsOf(ctx, id)
		if err != nil {
			return rows, err
		}
		what := fmt.Sprintf("%s (%d runs, %s)", one.what, r.count, took)
		rows = append(rows, row{
			figure: what + ": most events of a run", target: fmt.Sprintf("≤ %d", mostEvents), jig: fmt.Sprint(r.maxEvents),
			baseline: "Temporal warns at 4,096", verdict: judge(r.maxEvents <= mostEvents),
		}, row{
			figure: what + ": largest history of a run", target: "≤ 1 MB", jig: fmt.Sprintf("%.0f KB", float64(r.maxBytes)/1024),
			baseline: "Temporal warns at 4 MB", verdict: judge(r.maxBytes <= mostBytes),
		})
	}
	return rows, nil
}
