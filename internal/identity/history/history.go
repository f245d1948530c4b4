// Package history defines the record of what happens with credentials: who logged in, which keys and tokens were made, and which were
// refused. It does no I/O.
package history

import (
	"context"
	"time"
)

// What happens with credentials.
const (
	// Refused: a request had a credential of the tenant that did not count, or did not allow the operation.
	Refused      = "refused"
	LoggedIn     = "logged_in"
	LoggedOut    = "logged_out"
	KeyCreated   = "key_created"
	KeyRevoked   = "key_revoked"
	EmbedCreated = "embed_created"
	EmbedRevoked = "embed_revoked"
)

// Why a credential that was valid once does not count any more.
const (
	Revoked = "revoked"
	Expired = "expired"
)

// Kinds of credentials.
const (
	KindAPIKey      = "api_key"
	KindAccessToken = "access_token"
	KindLogin       = "login"
	KindDevLogin    = "dev_login"
	KindEmbed       = "embed_token"
)

// CredentialEvent is something that happened with a credential, perhaps several times within one minute.
type CredentialEvent struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind" enum:"refused,logged_in,logged_out,key_created,key_revoked,embed_created,embed_revoked" doc:"What happened"`
	Reason string `json:"reason,omitempty" doc:"Why the credential was refused: revoked, expired, disabled, cross_origin or scope"`
	// CredentialKind and CredentialID identify the credential. An access token has no id of its own, so it has that of the login.
	CredentialKind string `json:"credential_kind,omitempty" doc:"The kind of the credential"`
	CredentialID   string `json:"credential_id,omitempty" doc:"The id of the credential; issuer and subject for access tokens"`
	// Principal is who acted: whose credential was refused, who logged in, or who created or revoked.
	Principal string `json:"principal,omitempty" doc:"Who did it, or whose credential was refused; empty for the operator's command line"`
	Address   string `json:"address,omitempty" doc:"The address of the client, or its network (IPv6)"`
	// Count is how many times it happened in the minute.
	Count  int64     `json:"count" doc:"How often it happened in that minute"`
	Minute time.Time `json:"minute" doc:"The minute in which it happened"`
	LastAt time.Time `json:"last_at" doc:"When it last happened"`
}

// Page is a page of events, the newest first.
type Page struct {
	Events []CredentialEvent `json:"credential_events"`
	Next   string            `json:"next_cursor,omitempty"`
}

// Ended describes a credential that was valid once.
type Ended struct {
	Tenant string
	// Kind and ID identify the credential, and Reason says why it does not count.
	Kind, ID, Reason string
	// Principal is whose credential it was; empty if it was the login of a person at an identity provider, whom Issuer and Subject name.
	Principal       string
	Issuer, Subject string
}

// Doer is who makes a request, as far as the record needs it.
type Doer struct {
	// Principal is needed only for logins; keys and tokens name it themselves.
	Principal string
	Address   string
}

type doerKey struct{}

// By returns a context for what somebody does.
func By(ctx context.Context, d Doer) context.Context { return context.WithValue(ctx, doerKey{}, d) }

// DoerOf returns who does what a context is for; empty on the command line.
func DoerOf(ctx context.Context) Doer {
	d, _ := ctx.Value(doerKey{}).(Doer) //nolint:errcheck // it is empty then
	return d
}
