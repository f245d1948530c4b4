package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
)

// tokenUsed says of a token that comes again why it proves nothing.
const tokenUsed = "the token was used already: each counts once, so sign again"

// tokenUse is what a token was used for.
type tokenUse struct {
	Request string
	// Changed is the answer to what is done to no call.
	Changed bool
}

// again reports whether a token that comes with a request was used in another one.
func (u *tokenUse) again(e *jig.Evidence) bool {
	return u != nil && (u.Request != e.Request || e.Request == "")
}

// tokenID names a token; what a signer calls it may be long, and two keys may call theirs alike.
func tokenID(e *jig.Evidence) string {
	sum := sha256.Sum256([]byte(e.Key + "\x00" + e.Token))
	return hex.EncodeToString(sum[:])
}

// usedToken queues the look for what a token was used for; into stays nil when it was not, and without a token.
func (t *tx) usedToken(e *jig.Evidence, into **tokenUse) {
	if e != nil && e.Token != "" {
		first(t.queue("TokenUsed", t.tenant, tokenID(e)), into)
	}
}

// useToken queues the use of a token. Of two uses at a time one fails, and is tried again when the other is there.
func (t *tx) useToken(e *jig.Evidence, changed bool) {
	if e != nil && e.Token != "" {
		t.queue("TokenUse", t.tenant, tokenID(e), text(e.Request), changed, e.Until)
	}
}

// reused records that a token came again for what is done to no call, commits, and says so.
func (t *tx) reused(ctx context.Context, e jig.AuditEntry) error {
	e.Kind, e.Reason = jig.AuditRefused, tokenUsed
	if err := t.finish(ctx, &log{audits: []jig.AuditEntry{e}}, ""); err != nil {
		return err
	}
	return jig.Errorf(jig.CodeNotPermitted, "the token was used already: each counts once").WithField("token").
		WithHint("see whether it is done (`jig pause --list`, `jig grant list --all`), and sign again if it is not")
}

// ForgetTokens forgets the tokens of all tenants that were used and that expired longer than age ago. It forgets at most 1,000 and
// returns how many.
func (db *DB) ForgetTokens(ctx context.Context, age time.Duration) (int64, error) {
	return db.forget(ctx, func(t *tx) *pgx.QueuedQuery { return t.queue("TokensForget", age, forgetAtOnce) })
}
