package identity

import "github.com/jig-run/jig"

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
