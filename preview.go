package jig

// Preview describes what a call will change, for the people who decide about it. The call's tool computes it before they are asked, and
// again before the call runs; see tools.WithPreview. It is part of the call's digest.
type Preview struct {
	// Title says in one line what will happen.
	Title string `json:"title,omitempty"`
	// Changes lists what will change: each entry is a line, or a heading with a diff below it.
	Changes []string `json:"changes,omitempty"`
	// Markdown says more. It is shown as text: no program follows its links or loads its images.
	Markdown string `json:"markdown,omitempty"`
	// Precondition names the state that the preview was computed from, such as a version or an etag. The tool gets it as
	// [Invocation.Precondition] and promises to act only on exactly that state. A preview without it promises nothing about what
	// happens between the approval and the call.
	Precondition string `json:"precondition,omitempty"`
	// Missing says why there is no preview; the other fields are then empty.
	Missing string `json:"missing,omitempty"`
}

// Binding describes in one line what an approval of the previewed call promises.
func (p Preview) Binding() string {
	switch {
	case p.Missing != "":
		return "there is no preview of what the call will change: " + p.Missing
	case p.Precondition != "":
		return "exactly this happens, or nothing: the tool acts only on " + p.Precondition
	}
	return "this is computed again before the call runs, but the tool does not promise that nothing changes in between"
}
