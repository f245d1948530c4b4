package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// ModelWait returns what the latest pass of a session waits for at its model's provider; nil if it waits for nothing.
func (db *DB) ModelWait(ctx context.Context, tenant, id string) (*ledger.ModelWait, error) {
	var found *string
	if err := db.once(ctx, tenant, func(t *tx) { value(t.queue("ModelWait", tenant, id), &found) }); err != nil {
		return nil, err
	}
	return modelWait(found)
}

func modelWait(stored *string) (*ledger.ModelWait, error) {
	if stored == nil {
		return nil, nil
	}
	var w ledger.ModelWait
	return &w, decode([]byte(*stored), &w)
}

// NoteModelWait records, with an event, that the model is asked again for the turn of a pass. Nothing is recorded if the session has ended.
func (db *DB) NoteModelWait(ctx context.Context, tenant, id string, w ledger.ModelWait) error {
	w.Message = text(w.Message)
	data, err := encode(w)
	if err != nil {
		return err
	}
	var last *int64
	if err := db.once(ctx, tenant, func(t *tx) { value(t.queue("ModelWaits", tenant, id, w.Pass, string(data)), &last) }); err != nil {
		return err
	}
	db.touched(tenant, id, last)
	return nil
}

// waitsForModel adds to a view what the session waits for at its model's provider.
func waitsForModel(v *jig.SessionView, w *ledger.ModelWait) {
	if w != nil {
		v.Held = append(v.Held, fmt.Sprintf("%s; the model is asked again at %s", w.Message, w.Next.UTC().Format(time.RFC3339)))
	}
}
