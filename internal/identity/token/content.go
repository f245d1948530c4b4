package token

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/identity"
)

// Actions of tokens, in addition to the answers approve, deny and delegate.
const (
	ActionAnswer    = "answer"
	ActionReconcile = "reconcile"
	ActionPause     = "pause"
	ActionResume    = "resume"
	ActionRevoke    = "revoke"
	ActionEnrol     = "enrol"
)

// Content returns the SHA-256, in hex, of the RFC 8785 form of v's JSON, or "" for nil and JSON null. Numbers are doubles in that
// form: 1.0 and 1 have the same content, and so do integers that a double cannot tell apart. Callers must therefore also use that form
// of a value, never the text that was sent. The error is INVALID_INPUT if v is not JSON or one of its objects names a member twice.
func Content(v any) (string, error) {
	form, err := formOf(v)
	if err != nil || string(form) == "null" {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}

func formOf(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = canonical.JSON(raw)
	}
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a token cannot bind what is not plain JSON: %w", err).
			WithHint("make sure that it is JSON, that no object names a member twice, and that all numbers fit a double")
	}
	return raw, nil
}

// contentOf returns the content of an object, or "" when it has no members. Its errors name the member.
func contentOf(members map[string]any) (string, error) {
	if len(members) == 0 {
		return "", nil
	}
	object := make(map[string]json.RawMessage, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		form, err := formOf(members[name])
		if err != nil {
			return "", jig.AsError(err).WithField(name)
		}
		object[name] = form
	}
	return Content(object)
}

// ForDecision returns the claim that a token must prove for a decision about a call. The action is the answer. The content covers
// {"input", "to", "undo", "grant", "grant_id", "note", "reason"} with the members that are given; empty texts are left out. digest is the digest of the
// waiting call.
func ForDecision(tenant, session string, d jig.Decision, digest string) (identity.Claim, error) {
	if !slices.Contains([]jig.Answer{jig.AnswerApprove, jig.AnswerDeny, jig.AnswerDelegate}, d.Answer) {
		return identity.Claim{}, jig.Errorf(jig.CodeInvalidInput, "there is no token for the answer %q", d.Answer).WithField("answer").
			WithHint("it can be approve, deny or delegate")
	}
	members := map[string]any{}
	if len(d.Input) > 0 {
		members["input"] = d.Input
	}
	if d.To != "" {
		members["to"] = d.To
	}
	if d.Undo {
		members["undo"] = true
	}
	if d.Grant != nil {
		members["grant"] = d.Grant
	}
	if d.GrantID != "" {
		members["grant_id"] = d.GrantID
	}
	members = withNotes(members, d.Note, d.Reason)
	return bind(identity.Claim{
		Tenant: tenant, Principal: d.By, Action: string(d.Answer), SessionID: session, Call: d.Call, Digest: digest,
	}, members)
}

// ForReply returns the claim that a token must prove for the answer to a question. The content covers {"value", "note"} with the
// members that are given.
func ForReply(tenant, session string, r jig.Reply, digest string) (identity.Claim, error) {
	members := map[string]any{}
	if len(r.Value) > 0 {
		members["value"] = r.Value
	}
	members = withNotes(members, r.Note, "")
	return bind(identity.Claim{
		Tenant: tenant, Principal: r.By, Action: ActionAnswer, SessionID: session, Call: r.Call, Digest: digest,
	}, members)
}

// ForReconciliation returns the claim that a token must prove for a statement about an unknown outcome. The content covers {"outcome",
// "attempt", "result", "note"} with the members that are given.
func ForReconciliation(tenant, session string, r jig.Reconciliation, digest string) (identity.Claim, error) {
	members := map[string]any{}
	if r.Outcome != "" {
		members["outcome"] = r.Outcome
	}
	if r.Attempt > 1 { // no attempt means the first
		members["attempt"] = r.Attempt
	}
	if len(r.Result) > 0 {
		members["result"] = r.Result
	}
	members = withNotes(members, r.Note, "")
	return bind(identity.Claim{
		Tenant: tenant, Principal: r.By, Action: ActionReconcile, SessionID: session, Call: r.Call, Digest: digest,
	}, members)
}

// ForSubject returns the claim that a token must prove for an action that is not about a call: pause, resume, revoke or enrol. subject is a
// grant's id, tool:<name>, session:<id>, tenant or key:<id>. The content covers {"reason"} if there is a reason. The claim names no principal,
// but the installation, which the digest covers for calls.
func ForSubject(installation, tenant, action, subject, reason string) (identity.Claim, error) {
	return bind(identity.Claim{Installation: installation, Tenant: tenant, Action: action, Subject: subject}, withNotes(map[string]any{}, "", reason))
}

// withNotes adds the note and the reason of a decision. They are part of the content because the audit stores them and because the model
// sees them after a denial.
func withNotes(members map[string]any, note, reason string) map[string]any {
	if note != "" {
		members["note"] = note
	}
	if reason != "" {
		members["reason"] = reason
	}
	return members
}

func bind(claim identity.Claim, members map[string]any) (identity.Claim, error) {
	var err error
	if claim.Content, err = contentOf(members); err != nil {
		return identity.Claim{}, err
	}
	return claim, nil
}
