package tenancy

// Directory lists whom and which keys a tenant's document knows.
type Directory struct {
	People []DirectoryPerson `json:"people" doc:"People and programs, including those that only a role names"`
	Groups []DirectoryGroup  `json:"groups"`
	Keys   []DirectoryKey    `json:"keys" doc:"Keys that sign for everybody, such as those of portals"`
}

// DirectoryPerson is a person or a program.
type DirectoryPerson struct {
	Principal   string           `json:"principal"`
	Disabled    bool             `json:"disabled" doc:"Servers and workers refuse everything that the principal asks for"`
	Groups      []string         `json:"groups"`
	Roles       []string         `json:"roles"`
	Permissions []string         `json:"permissions" doc:"Including the permissions of the person's roles; * means all"`
	Logins      []DirectoryLogin `json:"logins" doc:"How identity providers name the person"`
	Keys        []DirectoryKey   `json:"keys" doc:"Keys that sign the person's decisions"`
}

// DirectoryLogin is a person as an identity provider names it.
type DirectoryLogin struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// onlyDisables reports whether an entry gives a principal nothing and is there only to disable it.
func (p DirectoryPerson) onlyDisables() bool {
	return p.Disabled && len(p.Groups)+len(p.Roles)+len(p.Permissions)+len(p.Logins)+len(p.Keys) == 0
}

// DirectoryGroup is a group of the tenant.
type DirectoryGroup struct {
	Name    string   `json:"name"`
	Members []string `json:"members" doc:"The members in the document; an identity provider may add others"`
	Roles   []string `json:"roles"`
}

// DirectoryKey is a key that verifies signatures. It has no end: it counts until it is disabled or the document lists it no more.
type DirectoryKey struct {
	ID        string `json:"id"`
	Algorithm string `json:"algorithm" enum:"ed25519,hmac-sha256,webauthn"`
	Disabled  bool   `json:"disabled" doc:"Signatures of the key are refused"`
}
