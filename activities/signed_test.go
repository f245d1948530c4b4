package activities_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools"
)

// keyed sets up an office whose tenant demands decisions that are signed with people's own keys.
func keyed(o *office) { o.settings.Proof = jig.ProofKey }

// as runs a statement in the office's tenant with the role of a database URL, as somebody could who has its password.
func (o *office) as(t *testing.T, url, statement string, args ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "select set_config('jig.tenant', $1, true)", o.tenant)
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), statement, args...)
		return err
	})
}

// forge makes a waiting call look as if somebody had approved it, as the workers' role.
func (o *office) forge(t *testing.T, c jig.Call, status, by, more string) {
	t.Helper()
	app := os.Getenv("JIG_DATABASE_URL")
	votes, err := json.Marshal([]jig.Vote{{By: by, Proof: jig.ProofKey, Counts: []int{0}}})
	require.NoError(t, err)
	consumed := "null"
	if status == "consumed" {
		consumed = "now()"
	}
	require.NoError(t, o.as(t, app, `update approvals set status = $3, answer = 'approve', decided_by = $4, claimed = false, approved_digest = digest, votes = $5,
		decided_at = now(), consumed_at = `+consumed+more+` where session_id = $1 and call_id = $2 and status = 'open'`, o.session, c.ID, status, by, votes))
	require.NoError(t, o.as(t, app, "update calls set status = 'reserved' where session_id = $1 and call_id = $2", o.session, c.ID))
}

// Nobody makes a call run by writing to the table of approvals, as the workers' or as the server's role.
func TestSigned_AForgedApprovalLetsNothingRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	pass := 0
	asks := func() jig.Call {
		pass++
		return o.asks(t, pass, refundTool, fmt.Sprintf(`{"order":"o%d","amount":10}`, pass))
	}
	for name, forged := range map[string]func(c jig.Call){
		"approved":                func(c jig.Call) { o.forge(t, c, "approved", "fay", "") },
		"approved, without terms": func(c jig.Call) { o.forge(t, c, "approved", "fay", ", terms = null") },
		"used by an attempt":      func(c jig.Call) { o.forge(t, c, "consumed", "fay", ", terms = null") },
		"of somebody with a real token": func(c jig.Call) {
			require.Equal(t, jig.CallWaiting, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
			o.forge(t, c, "approved", "flo", "")
		},
		"with another call's signature": func(c jig.Call) {
			other := asks()
			for _, who := range []string{"fay", "flo"} {
				o.hear(t, "decide", o.vouched(t, who, jig.Decision{Call: other.ID, Answer: jig.AnswerApprove}))
			}
			require.NoError(t, o.as(t, os.Getenv("JIG_DATABASE_URL"), `insert into signed_decisions (tenant_id, session_id, call_id, token, decision, digest, shown)
				select tenant_id, session_id, $3, token, replace(decision::text, $2, $3)::json, digest, shown from signed_decisions where session_id = $1 and call_id = $2`,
				o.session, other.ID, c.ID))
			o.forge(t, c, "approved", "fay", "")
		},
	} {
		c := asks()
		forged(c)
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), name)
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), name)
		require.Empty(t, o.ran, name)
		require.Empty(t, o.pending(t, c.ID).Votes, name)
	}
	c := asks()
	storetest.Server(t) // so that the role has its rights
	for _, statement := range []string{
		"update approvals set status = 'approved'", "update calls set status = 'reserved'", "delete from approvals",
		"insert into signed_decisions (tenant_id, session_id, call_id, token, decision, digest, shown) values ('t', 's', 'c', 't', '{}', 'd', '{}')",
		"insert into used_tokens default values", "insert into documents default values",
	} {
		require.ErrorContains(t, o.as(t, storetest.ServerURL(t), statement), "permission denied", statement)
	}
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
}

// Only the signed input runs: a genuine approval does not cover an input that somebody changes in the database.
func TestSigned_TheSignatureIsForTheInput(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "a signed approval counts")

	c = o.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	edit := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount":20,"order":"b"}`)})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", edit).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "so does one with a changed input")
	require.Equal(t, []string{"1.1 a 10", "2.1 b 20"}, o.ran)

	altered := func(c jig.Call, input string) {
		t.Helper()
		if input != "" {
			c.Input = []byte(input)
		}
		digest, err := activities.Digest(o.db.Installation(), c)
		require.NoError(t, err)
		app := os.Getenv("JIG_DATABASE_URL")
		require.NoError(t, o.as(t, app, "update calls set input = $2, digest = $3, tool = $5, version = $6 where session_id = $4 and call_id = $1",
			c.ID, c.Input, digest, o.session, c.Tool, c.Version))
		require.NoError(t, o.as(t, app, "update approvals set digest = $2, approved_digest = $2 where session_id = $3 and call_id = $1", c.ID, digest, o.session))
	}
	require.ErrorContains(t, o.as(t, os.Getenv("JIG_DATABASE_URL"), "update signed_decisions set token = ''"), "permission denied")
	c = o.asks(t, 3, refundTool, `{"order":"c","amount":10}`)
	edit = o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount":20,"order":"c"}`)})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", edit).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	altered(o.call(t, c.ID), `{"amount":2000,"order":"c"}`)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the rows agree with each other, and not with what was signed")
	c = o.asks(t, 4, refundTool, `{"order":"d","amount":10}`)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	altered(o.call(t, c.ID), `{"amount":2000,"order":"d"}`)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))

	c = o.asks(t, 5, refundTool, `{"order":"e","amount":10}`)
	edit = o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount":20,"order":"e"}`)})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", edit).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	another := o.call(t, c.ID)
	tool, known := o.Tool(purgeTool)
	require.True(t, known)
	was, version := another.Version, tool.Version
	another.Tool, another.Version = purgeTool, version
	altered(another, "")
	require.NoError(t, o.as(t, os.Getenv("JIG_DATABASE_URL"), `insert into signed_decisions (tenant_id, session_id, call_id, token, decision, digest, shown)
		select tenant_id, session_id, call_id, token, decision, digest, replace(replace(shown::text, $2, $3), $4, $5)::json from signed_decisions
		where session_id = $1 and call_id = $6`, o.session, refundTool, purgeTool, was, version, c.ID))
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the change was signed for another tool")
	require.Len(t, o.ran, 2)
}

// People's keys and groups count as they are when the call begins.
func TestSigned_KeysAndGroupsOfTodayCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	o.govern(t, "  - {name: finance, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	approved := func(pass int) jig.Call {
		c := o.asks(t, pass, refundTool, fmt.Sprintf(`{"order":"o%d","amount":10}`, pass))
		require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
		return c
	}
	keys, people := o.settings.Keys, o.settings.People
	c := approved(1)
	o.settings.Keys = nil
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the key was removed")
	o.settings.Keys = keys
	c = approved(2)
	o.settings.People = nil
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "fay left")
	o.settings.People = people
	c = approved(3)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// Delegations need signatures, too.
func TestSigned_DelegationsCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	o.govern(t, "  - {name: finance, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate, To: "gus"})).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "gus", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// A delegation is about one approval: when the call asks again, the person decides again.
func TestSigned_EarlierDelegationsDoNotCount(t *testing.T) {
	t.Parallel()
	r := &order{version: 1, amount: 5}
	o := newOffice(t, keyed, func(o *office) { o.extra = []tools.Tool{r.amending(true)} })
	o.govern(t, "  - {name: fay, when: 'true', verdict: ask, approvers: {people: [fay]}}\n")
	c := o.amends(t, 7)
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate, To: "flo"})).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	r.set(6)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the preview is another one")
	approve := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}
	require.Equal(t, jig.DecisionRefused, o.hear(t, "decide", o.vouched(t, "flo", approve)).Outcome)
	o.forge(t, c, "approved", "flo", "")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "fay", approve)).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"6 → 7"}, r.effects)
}

// Whoever changes the input of a call has not seen its preview, which is computed with the change.
func TestSigned_AChangeApprovesNoPreview(t *testing.T) {
	t.Parallel()
	r := &order{version: 1, amount: 5}
	o := newOffice(t, keyed, func(o *office) { o.extra = []tools.Tool{r.amending(true)} })
	o.govern(t, "  - {name: lax, when: 'true', verdict: ask, not_requester: false}\n")
	c := o.amends(t, 7)
	edit := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount":8,"order":"a"}`)})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", edit).Status)
	o.forge(t, c, "approved", "fay", "")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"5 → 8"}, r.effects)
}

// Somebody may decide after an escalation with a token that was signed just before, or on a machine whose clock is slow.
func TestSigned_EscalationsCountWhenTheDecisionArrives(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	o.govern(t, "  - {name: fay, when: 'true', verdict: ask, approvers: {people: [fay]}, escalate: [{after: 1h, approvers: {people: [flo]}}]}\n")
	c := o.asks(t, 1, refundTool, small)
	approve := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}
	o.clock = 59*time.Minute + 50*time.Second
	approve = o.vouched(t, "flo", approve)
	require.Contains(t, o.hear(t, "decide", approve).Reason, "may not decide")
	o.clock = time.Hour + time.Second
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", approve).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// A standing approval that somebody names in the database must cover the call.
func TestSigned_AForgedUseOfAGrantLetsNothingRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	c := o.asks(t, 1, refundTool, small)
	d := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{When: "input.amount < 50", MaxUses: 5}})
	got := o.hear(t, "decide", d)
	require.NotEmpty(t, got.Grant, "%+v", got)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	c = o.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "the grant covers it")
	c = o.asks(t, 3, refundTool, `{"order":"c","amount":10000}`)
	o.forge(t, c, "approved", "fay", fmt.Sprintf(", grant_id = '%s'", strings.ReplaceAll(got.Grant, "'", "")))
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Equal(t, []string{"1.1 a 10", "2.1 b 10"}, o.ran)
}

// A rule can demand a passkey. What it signed is verified again when the call begins.
func TestSigned_ARuleDemandsAPasskey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: careful, when: 'true', verdict: ask, proof: passkey}\n")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	require.NoError(t, err)
	o.settings.Keys = append(o.settings.Keys, identity.Key{
		ID: "fay-phone", Algorithm: identity.AlgorithmWebAuthn, Principal: "fay", Material: public, RelyingParty: "localhost", Origins: []string{"http://localhost"},
	})
	touched := func(d jig.Decision) jig.Decision {
		t.Helper()
		claim, err := token.ForDecision(o.tenant, o.session, d, o.pending(t, d.Call).Digest)
		require.NoError(t, err)
		now := o.now().Unix()
		claims, err := json.Marshal(map[string]any{
			"sub": "fay", "aud": []string{"jig"}, "jti": jig.NewSessionID(), "iat": now, "nbf": now, "exp": now + 300, "tenant": claim.Tenant,
			"action": claim.Action, "session": claim.SessionID, "call": claim.Call, "digest": claim.Digest, "content": claim.Content,
		})
		require.NoError(t, err)
		challenge, err := token.Challenge(claims)
		require.NoError(t, err)
		client, err := json.Marshal(map[string]any{"type": "webauthn.get", "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": "http://localhost"})
		require.NoError(t, err)
		relying, hash := sha256.Sum256([]byte("localhost")), sha256.Sum256(client)
		data := append(relying[:], 0x05, 0, 0, 0, 0)
		sum := sha256.Sum256(append(append([]byte{}, data...), hash[:]...))
		signature, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
		require.NoError(t, err)
		d.Token, err = token.Assertion{KeyID: "fay-phone", Claims: claims, AuthenticatorData: data, ClientData: client, Signature: signature}.Token()
		require.NoError(t, err)
		return d
	}
	c := o.asks(t, 1, refundTool, small)
	approve := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}
	require.Contains(t, o.hear(t, "decide", jig.Decision{Call: c.ID, By: "fay"}).Reason, "needs a passkey")
	require.Contains(t, o.hear(t, "decide", o.vouched(t, "fay", approve)).Reason, "needs a passkey")
	proved := touched(approve)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", proved).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))

	c = o.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	proved.Call = c.ID
	require.Contains(t, o.hear(t, "decide", proved).Reason, "another call")
	o.forge(t, c, "approved", "fay", "")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the tenant demands nothing, and the rule a passkey")
	o.forge(t, c, "approved", "fay", ", terms = null")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "the rule still demands a passkey")
	require.Equal(t, jig.ProofPasskey, o.pending(t, c.ID).Terms.Proof)
}

// Whoever changes the terms of an approval in the database, or the verdict of a call, does not get by with fewer signatures.
func TestSigned_PolicySaysWhoMustSign(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	quorum := func(n int) string {
		return fmt.Sprintf("  - {name: several, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: %d}\n", n)
	}
	o.govern(t, quorum(2))
	app := os.Getenv("JIG_DATABASE_URL")
	one := o.vouched(t, "fay", jig.Decision{Call: o.asks(t, 1, refundTool, small).ID, Answer: jig.AnswerApprove})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", one).Status)
	o.forge(t, jig.Call{ID: one.Call}, "approved", "fay", ", terms = null")
	require.Equal(t, jig.CallWaiting, o.runs(t, one.Call), "one of two has signed")
	require.Equal(t, 2, o.pending(t, one.Call).Terms.Requirements[0].Quorum)

	c := o.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	for _, version := range []string{c.PolicyVersion, "older@1"} {
		c.PolicyVersion = version
		digest, err := activities.Digest(o.db.Installation(), c)
		require.NoError(t, err)
		require.NoError(t, o.as(t, app, "update approvals set status = 'canceled', decided_at = now() where session_id = $1 and call_id = $2", o.session, c.ID))
		require.NoError(t, o.as(t, app, "update calls set status = 'reserved', verdict = 'run', policy_version = $3, digest = $4 where session_id = $1 and call_id = $2",
			o.session, c.ID, version, digest))
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "policy lets nothing run by itself: %s", version)
	}

	o.govern(t, "  - {name: others, when: 'true', verdict: ask, not_requester: true}\n")
	c = o.asks(t, 4, refundTool, `{"order":"d","amount":10}`)
	require.Equal(t, "ana", o.pending(t, c.ID).RequestedBy)
	require.NoError(t, o.as(t, app, "update approvals set requested_by = 'rex', askers = null where session_id = $1 and call_id = $2", o.session, c.ID))
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "ana", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "ana asked for it")

	o.govern(t, quorum(1))
	c = o.asks(t, 3, refundTool, `{"order":"c","amount":10}`)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	o.govern(t, quorum(2))
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "by now two must sign")
	for _, who := range []string{"fay", "flo"} {
		o.hear(t, "decide", o.vouched(t, who, jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}))
	}
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"3.1 c 10"}, o.ran)
}
