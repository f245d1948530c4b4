package identity

import "github.com/jig-run/jig"

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
