package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/jig-run/jig"
)

// progressTime limits how long writing one report may take.
const progressTime = 5 * time.Second

// progress returns the function with which a tool reports progress. It merges reports, so that a tool writes at most four events a second
// however often it reports. Reports are also written while the call is being canceled, because the last ones say how far the tool got.
// flush writes the reports that are left.
func (a *Activities) progress(ctx context.Context, call jig.Call) (report func(string), flush func()) {
	const every = 250 * time.Millisecond
	var (
		mu   sync.Mutex
		text string
		last time.Time
	)
	write := func(s string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), progressTime)
		defer cancel()
		data, err := json.Marshal(map[string]string{"text": jig.Cut(s, 4096)})
		if err == nil {
			err = a.Store.AppendEvents(ctx, call.Tenant, call.SessionID, jig.Event{
				Type: jig.EventToolOutput, Pass: call.Pass, CallID: call.ID, Tool: call.Tool, Data: data,
			})
		}
		if err != nil {
			a.Logger.WarnContext(ctx, "progress was not recorded", slog.String("call_id", call.ID), slog.String("error", err.Error()))
		}
	}
	report = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		text += s
		if a.Now().Sub(last) >= every {
			write(text)
			text, last = "", a.Now()
		}
	}
	flush = func() {
		mu.Lock()
		defer mu.Unlock()
		if text != "" {
			write(text)
			text = ""
		}
	}
	return report, flush
}
