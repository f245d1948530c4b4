package jig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// SessionRequest is a request to start a session under an id that the client chose. Repeating the same request under the same id returns
// the existing session; a different request is a CONFLICT.
type SessionRequest struct {
	// Agent or Tool names what runs. Document is the text of the document if the client sends one.
	Agent    string `json:"agent,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Document string `json:"document,omitempty"`
	Task     string `json:"task,omitempty"`
	// Input and Pairs are the input as the client gave it.
	Input json.RawMessage   `json:"input,omitempty"`
	Pairs map[string]string `json:"pairs,omitempty"`
	Model string            `json:"model,omitempty"`
	// Principal is the id of the principal for whom the session acts.
	Principal string `json:"principal,omitempty"`
}

// Digest returns the SHA-256 of the request in hex. The order of members and the white space in Input do not matter.
func (r SessionRequest) Digest() string {
	r.Input = normalInput(r.Input)
	text, err := json.Marshal(r)
	if err != nil { // cannot happen: normalInput returns only JSON
		panic("jig: a session request cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// normalInput returns a JSON value in a normal form: nil for no input, and a JSON string for input that is not JSON.
func normalInput(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return nil
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&value) != nil || d.More() {
		value = string(input)
	}
	normal, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return normal
}
