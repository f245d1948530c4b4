package jig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// SessionRequest is what somebody asks for when they start a session under an id of their own. Asking twice under one id for the
// same gives the session that is there; asking for something else is CONFLICT.
type SessionRequest struct {
	// Agent or Tool names what runs; Document is the text of one that comes along.
	Agent    string `json:"agent,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Document string `json:"document,omitempty"`
	Task     string `json:"task,omitempty"`
	// Input and Pairs are the input as it was given.
	Input json.RawMessage   `json:"input,omitempty"`
	Pairs map[string]string `json:"pairs,omitempty"`
	Model string            `json:"model,omitempty"`
	// Principal is the id of whom the session acts for.
	Principal string `json:"principal,omitempty"`
}

// Digest returns the SHA-256 of the request in hexadecimal. The order of members and white space in Input do not matter.
func (r SessionRequest) Digest() string {
	r.Input = normalInput(r.Input)
	text, err := json.Marshal(r)
	if err != nil { // not JSON, which normalInput has ruled out
		panic("jig: a session request cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// normalInput returns a JSON value in one of its spellings; nil for no input, a JSON string for what is not JSON.
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
