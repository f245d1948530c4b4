package store

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

const (
	// maxReceived is how many events a session takes, and maxReceivedBytes how many bytes their names and data may have together.
	maxReceived      = 10_000
	maxReceivedBytes = 16 << 20
)

// receivingRow is a row of the query ReceivedInsert.
type receivingRow struct {
	Seq   *int64
	Had   int64
	Known bool
}

// Receive stores an event that was sent to the session, once per key, and records custom.<name>. It reports whether the event was
// new. Running compositions find it in [plan.Frame].Received. The error is CONFLICT if the session has received too many events.
func (db *DB) Receive(ctx context.Context, tenant, id, key string, e plan.ReceivedEvent) (bool, error) {
	switch {
	case key == "":
		return false, jig.Errorf(jig.CodeInvalidInput, "an event needs a key").WithField("key")
	case e.Name == "":
		return false, jig.Errorf(jig.CodeInvalidInput, "an event needs a name").WithField("name")
	case len(e.Data) > 0 && !json.Valid(e.Data):
		return false, jig.Errorf(jig.CodeInvalidInput, "the data of event %q are not JSON", e.Name).WithField("data")
	}
	d := details{"by": e.By}
	if e.Claimed {
		d["claimed"] = true
	}
	if len(e.Data) > 0 {
		shown, truncated := preview(e.Data)
		if truncated {
			d["data_preview"] = shown
		} else {
			d["data"] = shown
		}
	}
	var held *string
	var row *receivingRow
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionHold", tenant, id), &held)
		first(t.queue("ReceivedInsert", tenant, id, text(key), text(e.Name), optional(e.Data), text(e.By), text("custom."+e.Name),
			d.json(), e.Claimed, maxReceived, maxReceivedBytes), &row)
	})
	switch {
	case err != nil:
		return false, err
	case held == nil:
		return false, noSession(id)
	case row.Seq == nil && !row.Known:
		return false, jig.Errorf(jig.CodeConflict, "the session has received %d events; it takes at most %d, with %d MB together",
			row.Had, maxReceived, maxReceivedBytes>>20)
	}
	db.touched(tenant, id, row.Seq)
	return row.Seq != nil, nil
}
