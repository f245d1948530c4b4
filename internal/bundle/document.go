package bundle

// KindSpec is the kind under which execution specs of every sort (composition, prompt, task, thin tool) are stored. They share one space of
// names because they are called in the same way. Documents of any other kind are stored under that kind.
const KindSpec = "spec"

// StoredDocument is a document with its body, identified by the kind under which it is stored.
type StoredDocument struct {
	DocumentVersion
	Body []byte
}

// NamesOf returns the names of the documents that are stored under a kind.
func NamesOf(documents []DocumentVersion, kind string) []string {
	var names []string
	for _, d := range documents {
		if d.Kind == kind {
			names = append(names, d.Name)
		}
	}
	return names
}

// DocumentVersion identifies a version of a document.
type DocumentVersion struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}
