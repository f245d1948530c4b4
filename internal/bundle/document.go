package bundle

import ()

// StoredDocument is a document with its body, identified by the kind under which it is stored.
type StoredDocument struct {
	DocumentVersion
	Body []byte
}

// DocumentVersion identifies a version of a document.
type DocumentVersion struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}
