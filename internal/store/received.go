package store

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// Receive stores an event that was sent to the session, once per key, and records custom.<name>. It reports whether the event was
// new. Running compositions find it in [plan.Frame].Received.
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
	if len(e.Data) > 0 {
		shown, truncated := preview(e.Data)
		if truncated {
			d["data_preview"] = shown
		} else {
			d["data"] = shown
		}
	}
	var held *string
	var last *int64
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionHold", tenant, id), &held)
		value(t.queue("ReceivedInsert", tenant, id, text(key), text(e.Name), optional(e.Data), text(e.By), text("custom."+e.Name),
			d.json()), &last)
	})
	if err != nil {
		return false, err
	}
	if held == nil {
		return false, noSession(id)
	}
	db.touched(tenant, id, last)
	return last != nil, nil
}
