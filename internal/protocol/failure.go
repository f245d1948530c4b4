package protocol

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

// FailureWords are the templates of an error. They travel through Temporal beside it, because its JSON leaves them out.
type FailureWords struct {
	Message    string   `json:"message,omitempty"`
	Hint       string   `json:"hint,omitempty"`
	Violations []string `json:"violations,omitempty"`
}

// FailureDetails returns the details of the failure with which an error travels through Temporal.
func FailureDetails(e *jig.Error) []any {
	w := FailureWords{Message: e.Template, Hint: e.HintTemplate}
	for _, v := range e.Violations {
		w.Violations = append(w.Violations, v.Template)
	}
	return []any{e, w}
}

// ReadFailure reads the error in the details of a failure into e, a pointer to a [jig.Error] or to a pointer to one. details reads the details, as
// Temporal's errors do. A failure without templates leaves w empty.
func ReadFailure(details func(into ...any) error, e any) (w FailureWords, err error) {
	var second any // other failures have other details there
	if details(e, &second) != nil {
		return FailureWords{}, details(e)
	}
	if given, ok := second.(FailureWords); ok { // it has not been serialized
		return given, nil
	}
	text, err := json.Marshal(second)
	if err == nil && json.Unmarshal(text, &w) != nil {
		w = FailureWords{}
	}
	return w, err //nolint:wrapcheck // it was JSON
}

// Apply adds the templates to the error that they are of.
func (w FailureWords) Apply(e *jig.Error) {
	if w.Message != "" && jig.Text(w.Message) == e.Message {
		e.Template, e.HintTemplate = w.Message, w.Hint
	}
	if len(w.Violations) == len(e.Violations) {
		for i := range w.Violations {
			e.Violations[i].Template = w.Violations[i]
		}
	}
}
