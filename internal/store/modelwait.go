package store

import (
	"context"

	"github.com/jig-run/jig/internal/ledger"
)

// ModelWait returns why the latest request to a model failed, for the latest pass of a session or, if callID is not empty, for a call. It is nil
// if none failed, or if the pass has its turn.
func (db *DB) ModelWait(ctx context.Context, tenant, id, callID string) (*ledger.ModelWait, error) {
	var found *ledger.ModelWait
	err := db.once(ctx, tenant, func(t *tx) {
		if callID == "" {
			value(t.queue("ModelWait", tenant, id), &found)
			return
		}
		value(t.queue("CallModelWait", tenant, id, callID), &found)
	})
	return found, err
}

// NoteModelWait records, with an event, that the model is asked again for the turn of a pass or by a call. Nothing is recorded if the session
// has ended, or if another attempt of the call has begun.
func (db *DB) NoteModelWait(ctx context.Context, tenant, id string, w ledger.ModelWait) error {
	w.Message = text(w.Message)
	data, err := encode(w)
	if err != nil {
		return err
	}
	var last *int64
	err = db.once(ctx, tenant, func(t *tx) {
		if w.Call == "" {
			value(t.queue("ModelWaits", tenant, id, w.Pass, string(data)), &last)
			return
		}
		value(t.queue("CallModelWaits", tenant, id, w.Call, w.Attempt, string(data)), &last)
	})
	if err != nil {
		return err
	}
	db.touched(tenant, id, last)
	return nil
}
