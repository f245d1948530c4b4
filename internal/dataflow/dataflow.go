package dataflow

import "encoding/json"

// Knowledge holds the texts that a session has seen before a call.
type Knowledge struct {
	// Typed holds what the authenticated root principal typed.
	Typed []string
	// Trusted holds the results that outsiders cannot have written.
	Trusted []Result
	// Untrusted holds the results that an outsider may have written.
	Untrusted []Result
	// Incomplete reports that the session has read untrusted texts that are not in Untrusted, for example because they are no longer stored.
	Incomplete bool
}

// Result is the text of one call's result, or any other text that the model has read.
type Result struct {
	// Call is the id of the call, or another name under which a person finds the text.
	Call string
	// Tool is the name of the tool that returned the text.
	Tool string
	// Text is everything that the model saw of the result. It may be JSON.
	Text string
}

// Findings lists the arguments of a call that cannot be traced to typed or trusted texts, in the order of the input. The name of a property and its
// value may both be listed, with the same path. The findings do not depend on whether the session has read anything untrusted.
type Findings struct {
	// Untrusted lists the arguments that occur in untrusted results or in no text at all.
	Untrusted []Argument `json:"untrusted,omitempty"`
	// UnknownDestinations lists the arguments that say where data goes and that cannot be traced: those that the schema marks with
	// x-destination, and URLs and addresses anywhere. They are in Untrusted, too.
	UnknownDestinations []Argument `json:"unknown_destinations,omitempty"`
	// Computed lists numbers, dates and times that occur in no text at all, so the model must have made them up. They are not in
	// Untrusted. If one input has more than ten, they are all in Untrusted instead.
	Computed []Argument `json:"computed,omitempty"`
	// Cut reports that at least one of the lists was full, so that arguments are missing from it.
	Cut bool `json:"cut,omitempty"`
}

// Argument is a value in a call's input.
type Argument struct {
	// Path is the JSON Pointer of the value, for example /recipients/0.
	Path string `json:"path"`
	// Value is the value, shortened to 120 characters. Strings are without quotes.
	Value string `json:"value"`
	// Calls lists the untrusted results that contain the value or a part of it, in the order of Knowledge.Untrusted, at most ten. If it is
	// empty, the value occurs in no result.
	Calls []string `json:"calls,omitempty"`
}

// Tracer compares the input of calls with the texts of a session. Several goroutines may call [Tracer.Trace].
type Tracer struct {
	k     Knowledge
	words vocabulary
	// trusted has what was typed and the trusted results. typed has the times and durations that were typed.
	trusted, untrusted *corpus
	typed              facts
}

// NewTracer prepares the texts of k for comparison. It takes time and memory in proportion to their length, up to 4 MB of trusted and
// 4 MB of untrusted texts.
func NewTracer(k Knowledge) *Tracer {
	words := vocabulary{}
	t := &Tracer{k: k, words: words, trusted: newCorpus(words), untrusted: newCorpus(words)}
	t.trusted.spellings = spellings{}
	for _, text := range k.Typed {
		t.trusted.add(text)
	}
	t.untrusted.items = true
	t.typed = t.trusted.facts.clone()
	for _, r := range k.Trusted {
		t.trusted.add(r.Text)
	}
	for _, r := range k.Untrusted {
		t.untrusted.add(r.Text)
	}
	return t
}

// Trust adds a result that outsiders cannot have written. It must not run at the same time as other methods.
func (t *Tracer) Trust(r Result) { t.trusted.add(r.Text) }

// Distrust adds a result that an outsider may have written. incomplete reports that a part of it is missing. It must not run at the same time as
// other methods.
func (t *Tracer) Distrust(r Result, incomplete bool) {
	t.k.Untrusted, t.k.Incomplete = append(t.k.Untrusted, r), t.k.Incomplete || incomplete
	t.untrusted.add(r.Text)
}

// Trace returns the arguments of input that cannot be traced. schema is the JSON Schema of the input. It says which values are constants,
// which arguments are destinations, and which integers are quantities. An input that is not JSON is untrusted as a whole.
//
// rendered maps texts in the input that templates of a trusted document produced to the values in them. Such a text is traced if its values are.
func (t *Tracer) Trace(input, schema json.RawMessage, rendered map[string][]string) Findings {
	w := walk{checker: &checker{Tracer: t, work: maxWork}, root: parseSchema(schema), rendered: rendered}
	w.input(input)
	return w.findings
}
