// Package history defines credential events: logins and logouts, API keys and embed tokens that were created or revoked, and refused
// credentials. It does no I/O.
package history

import (
	"context"
	"time"
)

// Kinds of credential events.
const (
	// Refused: a request had a credential of the tenant that was not valid, or did not allow the operation.
	Refused      = "refused"
	LoggedIn     = "logged_in"
	LoggedOut    = "logged_out"
	KeyCreated   = "key_created"
	KeyRevoked   = "key_revoked"
	KeyTakenOver = "key_taken_over"
	EmbedCreated = "embed_created"
	EmbedRevoked = "embed_revoked"
)

// Reasons why a credential is no longer valid.
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

// CredentialEvent counts equal events of a credential within one minute.
type CredentialEvent struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind" enum:"refused,logged_in,logged_out,key_created,key_revoked,key_taken_over,embed_created,embed_revoked" doc:"What happened"`
	Reason string `json:"reason,omitempty" doc:"Why the credential was refused: revoked, expired, disabled, removed, person, cross_origin or scope"`
	// CredentialKind and CredentialID identify the credential. An access token has no id of its own, so it has that of the login.
	CredentialKind string `json:"credential_kind,omitempty" doc:"The kind of the credential"`
	CredentialID   string `json:"credential_id,omitempty" doc:"The id of the credential; issuer and subject for access tokens"`
	// Principal is the actor: the owner of a refused credential, the person who logged in or out, or the creator or revoker.
	Principal string `json:"principal,omitempty" doc:"Who did it, or whose credential was refused; empty for the operator's command line"`
	Address   string `json:"address,omitempty" doc:"The address of the client, or its network (IPv6)"`
	// Count is the number of equal events in the minute.
	Count  int64     `json:"count" doc:"How often it happened in that minute"`
	Minute time.Time `json:"minute" doc:"The minute in which it happened"`
	LastAt time.Time `json:"last_at" doc:"When it last happened"`
}

// Page is a page of events, the newest first.
type Page struct {
	Events []CredentialEvent `json:"credential_events"`
	Next   string            `json:"next_cursor,omitempty"`
}

// Ended describes a credential that is no longer valid.
type Ended struct {
	Tenant string
	// Kind and ID identify the credential, and Reason says why it is no longer valid.
	Kind, ID, Reason string
	// Principal is the owner. It is empty for a login through an identity provider; Issuer and Subject then identify the person.
	Principal       string
	Issuer, Subject string
}

// Actor is the client of a request, for the events that it causes.
type Actor struct {
	// Principal is needed only for logins; keys and tokens name it themselves.
	Principal string
	Address   string
}

type actorKey struct{}

// WithActor returns a context that carries the actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor of a context. It is empty on the command line.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor) //nolint:errcheck // it is empty then
	return a
}
