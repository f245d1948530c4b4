package store

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig/internal/approval"
)

// signedRow is a row of the query SignedOf.
type signedRow struct {
	Token    string
	Decision []byte
	Digest   string
	Shown    []byte
}

// keepSigned queues a decision that was accepted with the token that proves it.
func (t *tx) keepSigned(session string, s *approval.Signed) error {
	if s == nil {
		return nil
	}
	s.Decision.Token = ""
	decision, err := encode(s.Decision)
	if err != nil {
		return err
	}
	shown, err := encode(s.Shown)
	if err != nil {
		return err
	}
	t.queue("SignedInsert", t.tenant, session, s.Decision.Call, s.Token, decision, s.Digest, shown)
	return nil
}

// Signed returns the latest approval of a call, nil if there was none, and the signed decisions about the call, oldest first.
func (db *DB) Signed(ctx context.Context, tenant, id, callID string) (approved *approval.Record, decisions []approval.Signed, err error) {
	var latest *approvalRow
	var rows []signedRow
	err = db.once(ctx, tenant, func(t *tx) {
		first(t.queue("ApprovalLatest", tenant, id, callID), &latest)
		list(t.queue("SignedOf", tenant, id, callID), &rows)
	})
	if err != nil || latest == nil {
		return approved, nil, err
	}
	approved = latest.readable()
	for _, row := range rows {
		s := approval.Signed{Token: row.Token, Digest: row.Digest}
		if json.Unmarshal(row.Decision, &s.Decision) == nil && json.Unmarshal(row.Shown, &s.Shown) == nil { // what somebody made unreadable proves nothing
			decisions = append(decisions, s)
		}
	}
	return approved, decisions, nil
}
