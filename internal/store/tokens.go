package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
)

// tokenUse describes the request that a token was used for.
type tokenUse struct {
	Request string
	// Changed is the stored answer to a request that concerns no call: whether it changed anything.
	Changed bool
}

// again reports whether a token sent with a request was already used in another one.
func (u *tokenUse) again(e *identity.Evidence) bool {
	return u != nil && (u.Request != e.Request || e.Request == "")
}

// tokenID identifies a token by a hash: a signer's token id may be long, and two keys may use the same one.
func tokenID(e *identity.Evidence) string {
	sum := sha256.Sum256([]byte(e.Key + "\x00" + e.Token))
	return hex.EncodeToString(sum[:])
}

// usedToken queues the lookup of a token's earlier use. into stays nil when the token was not used before or there is no token.
func (t *tx) usedToken(e *identity.Evidence, into **tokenUse) {
	if e != nil && e.Token != "" {
		first(t.queue("TokenUsed", t.tenant, tokenID(e)), into)
	}
}

// useToken queues the use of a token. If a token is used twice at the same time, one transaction fails and is retried once the other
// is visible.
func (t *tx) useToken(e *identity.Evidence, changed bool) {
	if e != nil && e.Token != "" {
		t.queue("TokenUse", t.tenant, tokenID(e), text(e.Request), changed, e.Until)
	}
}

// reused records that a token was used again for something that concerns no call, commits, and returns NOT_PERMITTED.
func (t *tx) reused(ctx context.Context, e audit.Entry) error {
	e.Kind, e.Reason = audit.AuditRefused, approval.RefusedToken
	if err := t.finish(ctx, &log{audits: []audit.Entry{e}}, ""); err != nil {
		return err
	}
	return jig.Errorf(jig.CodeNotPermitted, "the token was used already: a token is valid only once").WithField("token").
		WithHint("see whether it is done (`jig pause --list`, `jig grant list --all`), and sign again if it is not")
}

// ForgetTokens deletes up to 1,000 used tokens of all tenants that expired longer than age ago. It returns how many it deleted.
func (db *DB) ForgetTokens(ctx context.Context, age time.Duration) (int64, error) {
	return db.forget(ctx, func(t *tx, gone **int64) { value(t.queue("TokensForget", age, forgetAtOnce), gone) })
}
