package jig

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Labels describe how data flows through a tool; see docs/data-flow.md. Labels that are given but empty say that the tool reads nothing
// private, that its results can be trusted, and that it sends nothing away.
type Labels struct {
	// Reads lists what the tool's results may contain: ReadsPrivate, ReadsUntrusted, or both.
	Reads []string `json:"reads,omitempty"`
	// Sends reports that a call can carry data out of the tenant, e.g. in a message or in the address of a request.
	Sends bool `json:"sends,omitempty"`
}

// What a tool may read.
const (
	// ReadsPrivate is data that must not leave the tenant.
	ReadsPrivate = "private"
	// ReadsUntrusted is text that outsiders may have written, such as web pages and incoming mail. It may contain instructions to a model.
	ReadsUntrusted = "untrusted"
)

// DataFlow describes what a session had read when one of its calls was admitted and, if the call writes or sends and the session had read untrusted
// data, which of the call's arguments cannot be traced.
type DataFlow struct {
	ReadPrivate   bool `json:"read_private,omitempty"`
	ReadUntrusted bool `json:"read_untrusted,omitempty"`
	// UntrustedArguments are the arguments, as JSON pointers, that occur neither in what the principal typed nor in trusted results.
	// UnknownDestinations are those of them that data is sent to.
	UntrustedArguments  []string `json:"untrusted_arguments,omitempty"`
	UnknownDestinations []string `json:"unknown_destinations,omitempty"`
	// ComputedArguments are numbers, dates and times that occur in no text that the session has seen. They are not among the untrusted arguments.
	ComputedArguments []string `json:"computed_arguments,omitempty"`
	// Traced reports that the session had read untrusted data and that every argument occurs in what was typed or in trusted results, so that the
	// result repeats nothing else. It is looked at for calls that write or send and for those whose results can be trusted.
	Traced bool `json:"traced,omitempty"`
	// Cut reports that the call has more such arguments than the lists can hold. No rule with untraced lets such a call run.
	Cut bool `json:"cut,omitempty"`
	// Marked reports that the call registers documents, and that the reasons of its approval show every part of them that cannot be traced. If a
	// person approves it, the text of the documents is trusted.
	Marked bool `json:"marked,omitempty"`
	// Notes describe the untrusted arguments to people: each with its value and the results that contain it.
	Notes []string `json:"notes,omitempty"`
}

// Reads reports whether the tool's own results may contain data of a kind, ReadsPrivate or ReadsUntrusted. A tool without labels reads
// untrusted data, unless a document defines it: then it reads what the calls that it makes read, and a thin tool reads entities.
func (t Tool) Reads(kind string) bool {
	if t.Labels == nil && t.Implementation == implementationThin {
		return kind == ReadsPrivate
	}
	if t.Labels == nil {
		return kind == ReadsUntrusted && (t.Implementation == "" || t.Implementation == implementationGo || t.Implementation == ImplementationPerson)
	}
	return slices.Contains(t.Labels.Reads, kind)
}

// Sends reports whether a call of the tool can carry data out of the tenant.
func (t Tool) Sends() bool { return t.Labels != nil && t.Labels.Sends }

// OnlyReads reports whether a call of the tool changes nothing, sends nothing away and is answered by code, not by a person or a document.
func (t Tool) OnlyReads() bool {
	return t.Permission == PermissionRead && !t.Sends() && (t.Implementation == "" || t.Implementation == implementationGo)
}

// Check returns INVALID_INPUT if labels contain an unknown or repeated word.
func (l *Labels) Check() error {
	if l == nil {
		return nil
	}
	for i, kind := range l.Reads {
		if kind != ReadsPrivate && kind != ReadsUntrusted {
			return Errorf(CodeInvalidInput, "%q is not something that a tool reads", Cut(kind, 64)).WithField("labels.reads").
				WithHint("use private, untrusted, or both")
		}
		if slices.Contains(l.Reads[:i], kind) {
			return Errorf(CodeInvalidInput, "%q is listed twice", kind).WithField("labels.reads").WithHint("remove one of them")
		}
	}
	return nil
}

// DestinationKey is the keyword that marks, in an input schema, an argument that data is sent to: an address, an account or a person. Its value
// is true or false.
const DestinationKey = "x-destination"

// QuantityKey is the keyword that marks, in an input schema, an integer that is an amount and not an id. Its value is true or false.
const QuantityKey = "x-quantity"

// PathKey and URLKey are the keywords that mark, in an input schema, a string that is a relative path or a URL. Such an argument is written in
// canonical form before anything looks at the call. Their values are true or false.
const (
	PathKey = "x-path"
	URLKey  = "x-url"
)

// CheckMarks returns INVALID_INPUT if DestinationKey, QuantityKey, PathKey or URLKey has a value other than true or false anywhere in a JSON
// Schema. It ignores a schema that is not JSON.
func CheckMarks(schema json.RawMessage) error {
	var node any
	err := json.Unmarshal(schema, &node)
	if at := badMark(node, ""); err == nil && at != "" {
		return Errorf(CodeInvalidInput, "%s is neither true nor false", at).WithField(at).
			WithHint("write " + DestinationKey + ": true in the schema of an argument that data is sent to, and " + QuantityKey +
				": true in that of an integer that is an amount; " + PathKey + " and " + URLKey + " are true in those of paths and URLs")
	}
	return nil
}

// badMark returns the JSON pointer of a mark that is not a boolean, or "".
func badMark(node any, path string) string {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			if at := badMark(item, path+"/"+strconv.Itoa(i)); at != "" {
				return at
			}
		}
	case map[string]any:
		for key, value := range node {
			switch key {
			case DestinationKey, QuantityKey, PathKey, URLKey:
				if _, ok := value.(bool); !ok {
					return path + "/" + key
				}
			case "const", "default", "enum", "examples": // data, not schemas
			case "properties", "patternProperties", "$defs", "dependentSchemas": // the members have names of their own
				if named, ok := value.(map[string]any); ok {
					for name, one := range named {
						if at := badMark(one, path+"/"+key+"/"+name); at != "" {
							return at
						}
					}
				}
			default:
				if at := badMark(value, path+"/"+key); at != "" {
					return at
				}
			}
		}
	}
	return ""
}
