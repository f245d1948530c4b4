// Package jsontext writes JSON for people: it does not escape <, > and &. It must not know what the JSON means.
package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode returns v as JSON without HTML escapes and without a newline at the end.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	err := Write(&b, v)
	return b.Bytes(), err
}

// Write appends v to b as Encode returns it. It appends nothing if v cannot be encoded.
func Write(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	b.Truncate(b.Len() - 1)
	return nil
}
