package identity

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// Kinds of credentials.
const (
	KindAPIKey      = "api_key"
	KindAccessToken = "access_token"
	KindLogin       = "login"
	KindDevLogin    = "dev_login"
	KindEmbed       = "embed_token"
)

// CredentialRef names a credential: its kind, such as api_key or login, and its id.
type CredentialRef struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Link is one credential of a [Lineage].
type Link struct {
	// ID is the id of the credential.
	ID string `json:"id,omitempty"`
	// Principal is the principal for whom the credential acts, and Maker is who made it for that principal; see [jig.Principal].
	Principal string `json:"principal"`
	Maker     string `json:"maker,omitempty"`
	// CreatedBy is the principal whose credential made this one; empty for the operator.
	CreatedBy string `json:"created_by,omitempty"`
	// Persons are those of the three who were people of the tenant when the credential was made or used.
	Persons []string `json:"persons,omitempty"`
}

// Lineage is a credential, followed by the one that made it, and so on. A login or an access token ends it, because they stand for a person.
type Lineage []Link

// Dependent is something that ends with a person or a credential.
type Dependent struct {
	// Kind is api_key, embed_token, login, schedule or grant.
	Kind string `json:"kind" enum:"api_key,embed_token,login,schedule,grant" doc:"What ends; a standing approval is a grant"`
	ID   string `json:"id" doc:"The id, or the name of a schedule"`
	// Name says what a key is for, or which tool a grant covers. It may be empty.
	Name string `json:"name,omitempty" doc:"What an API key is for, or the tool of a grant"`
	// Principal is who it acts for.
	Principal string `json:"principal,omitempty" doc:"Who it acts for"`
}

// MakerOf returns the maker of a credential for a principal that somebody else's credential makes: nobody if they are the same, else the one who makes
// it. A credential that was itself made by somebody else passes its maker on.
func MakerOf(by jig.Principal, principal string) string {
	switch {
	case by.Maker != "" && (by.Maker != jig.MakerOperator || by.ID == principal):
		return by.Maker
	case by.ID == principal:
		return ""
	}
	return by.ID
}

// Kinds of credential events.
const (
	// EventRefused: a request had a credential of the tenant that was not valid, or did not allow the operation.
	EventRefused      = "refused"
	EventLoggedIn     = "logged_in"
	EventLoggedOut    = "logged_out"
	EventKeyCreated   = "key_created"
	EventKeyRevoked   = "key_revoked"
	EventKeyTakenOver = "key_taken_over"
	EventEmbedCreated = "embed_created"
	EventEmbedRevoked = "embed_revoked"
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
	// Source is who pays for the credential. Only so many events of a source have details in a minute.
	Source string `json:"-"`
	// Count is the number of equal events in the minute.
	Count  int64     `json:"count" doc:"How often it happened in that minute"`
	Minute time.Time `json:"minute" doc:"The minute in which it happened"`
	LastAt time.Time `json:"last_at" doc:"When it last happened"`
}

// CredentialEvents is a page of credential events, the newest first.
type CredentialEvents struct {
	Events []CredentialEvent `json:"credential_events"`
	Next   string            `json:"next_cursor,omitempty"`
}

type (
	addressKey struct{}
	sourceKey  struct{}
)

// WithAddress returns a context with the address of the client of a request, for the credential events that the request causes.
func WithAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// AddressOf returns the address of a context's client. It is empty on the command line.
func AddressOf(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string) //nolint:errcheck // it is empty then
	return address
}

// WithSource returns a context with the source of the credential events that a request causes.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// SourceOf returns the source of the credential events of a context. It is empty on the command line.
func SourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string) //nolint:errcheck // it is empty then
	return source
}
