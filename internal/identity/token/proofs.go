package token

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

// VerifyDecision verifies the token of a decision.
func VerifyDecision(keys []identity.Key, tenant, session string, d jig.Decision, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForDecision(tenant, session, d, digest)
	return verifyFor(d.Token, keys, want, err, now)
}

// VerifyAgain verifies the token of a decision that was accepted before, as it would have been verified when it was signed.
func VerifyAgain(keys []identity.Key, tenant, session string, d jig.Decision, digest string) (string, identity.Evidence, error) {
	at, err := signedAt(d.Token)
	if err != nil {
		return "", identity.Evidence{}, err
	}
	return VerifyDecision(keys, tenant, session, d, digest, at)
}

// VerifyReply verifies the token of an answer.
func VerifyReply(keys []identity.Key, tenant, session string, r jig.Reply, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForReply(tenant, session, r, digest)
	return verifyFor(r.Token, keys, want, err, now)
}

// VerifyReconciliation verifies the token of a reconciliation.
func VerifyReconciliation(keys []identity.Key, tenant, session string, r jig.Reconciliation, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForReconciliation(tenant, session, r, digest)
	return verifyFor(r.Token, keys, want, err, now)
}

// VerifySubject verifies the token of an action that concerns no call.
func VerifySubject(keys []identity.Key, text, installation, tenant, action, subject, reason string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForSubject(installation, tenant, action, subject, reason)
	return verifyFor(text, keys, want, err, now)
}

// VerifyEnrolment checks that a token proves that its sender holds a key and wants it to sign for the key's principal. The token need not be
// valid now, because the enrolment may have waited for an approval.
func VerifyEnrolment(key identity.Key, text, installation, tenant string) error {
	at, err := signedAt(text)
	if err != nil {
		return err
	}
	want, err := ForSubject(installation, tenant, ActionEnrol, "key:"+key.ID, "")
	_, _, err = verifyFor(text, []identity.Key{key}, want, err, at)
	return err
}

func verifyFor(text string, keys []identity.Key, want identity.Claim, err error, now time.Time) (string, identity.Evidence, error) {
	if err != nil {
		return "", identity.Evidence{}, err
	}
	return Verify(text, keys, want, now)
}
