package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// firesEvery is the interval of the schedules.
const firesEvery = 2 * time.Second

// schedules measures C2: the time from a schedule's due time until the first tool function is entered in the session that it starts.
func schedules(ctx context.Context, b *bench) ([]row, error) {
	document, err := b.caller().agent.document()
	if err != nil {
		return nil, err
	}
	input, err := planInput(plan{Passes: 1, Calls: 1, Tool: markTool})
	if err != nil {
		return nil, err
	}
	who := jig.Principal{ID: "bench"}
	var rows []row
	for _, one := range []struct {
		name, what string
		starts     client.ScheduleOptions
	}{
		{"tool", "a tool", client.ScheduleOptions{
			Call: &client.CallInput{Tool: markTool, Input: json.RawMessage(`{"n":1}`), Principal: who},
		}},
		{"agent", "an agent session, whose model answers at once", client.ScheduleOptions{
			Session: &client.StartOptions{Agent: "bench", Document: document, DocumentName: "bench", Input: input, Principal: who},
		}},
	} {
		var delays []float64
		err := b.profiled("c2", one.name, func() (err error) {
			delays, err = b.fire(ctx, one.name, one.starts)
			return err
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			figure: fmt.Sprintf("due time of a schedule → first tool function entered, p50 of %d, %s", len(delays), one.what),
			jig:    spreadOf(delays).show(0, " ms"), verdict: notJudged,
		})
	}
	return rows, nil
}

// fire creates a schedule, lets it fire, deletes it, and returns the delay of each first call in milliseconds.
func (b *bench) fire(ctx context.Context, name string, o client.ScheduleOptions) (delays []float64, err error) {
	o.Name = fmt.Sprintf("bench-%s-%d", name, time.Now().UnixNano())
	o.When = client.Timetable{Every: client.Span(firesEvery)}
	o.Overlap, o.Limit = client.OverlapAllowAll, b.size.firings
	entered, stop := b.entries.follow(jig.SessionPrefix+o.Name+"-", b.size.firings)
	defer stop()
	if _, err := b.jig.CreateSchedule(ctx, o); err != nil {
		return nil, fmt.Errorf("create the schedule: %w", err)
	}
	defer func() {
		err = errors.Join(err, b.jig.DeleteSchedule(ctx, client.ScheduleRequest{Name: o.Name, By: jig.Principal{ID: "bench"}}))
	}()
	late := time.NewTimer(time.Duration(b.size.firings)*firesEvery + 30*time.Second)
	defer late.Stop()
	for len(delays) < b.size.firings {
		select {
		case e := <-entered:
			due, err := dueAt(e.Session)
			if err != nil {
				return nil, err
			}
			delays = append(delays, milliseconds(e.At.Sub(due)))
		case <-late.C:
			return nil, fmt.Errorf("the schedule has made only %d of %d calls", len(delays), b.size.firings)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the schedule: %w", ctx.Err())
		}
	}
	return delays, nil
}

// dueAt returns the time at which a session was due. Temporal appends it to the session's id.
func dueAt(session string) (time.Time, error) {
	const form = "2006-01-02T15:04:05Z"
	due, err := time.Parse(form, session[max(0, len(session)-len(form)):])
	if err != nil {
		return due, fmt.Errorf("the due time of session %s: %w", session, err)
	}
	return due, nil
}
