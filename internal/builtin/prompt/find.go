package prompt

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
)

// maxStarts bounds the positions in an answer that are tried as the beginning of a JSON value.
const maxStarts = 100

// find returns the JSON value in an answer: the whole answer, or else the content of a code fence, or else a value within the prose. If
// two different values fit, it returns neither, and it never takes a value from inside a broken one: asking again is better than guessing.
// The error says what is wrong and lists the violations.
func find(text string, fits *schema.Schema) (json.RawMessage, *jig.Error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	if json.Valid([]byte(text)) {
		if err := fits.Validate([]byte(text)); err != nil {
			return nil, jig.AsError(err)
		}
		return compacted(text), nil
	}
	var misfit *jig.Error
	longest := 0
	prose, broken := inProse(text)
	for _, candidates := range [][]string{fenced(text), prose} {
		var found json.RawMessage
		for _, candidate := range candidates {
			if err := fits.Validate([]byte(candidate)); err != nil {
				if len(candidate) > longest {
					misfit, longest = jig.AsError(err), len(candidate)
				}
				continue
			}
			value := compacted(candidate)
			if found != nil && !bytes.Equal(found, value) {
				return nil, jig.Errorf(jig.CodeInvalidOutput, "the answer contains several JSON values that fit; it is not clear which one is meant")
			}
			found = value
		}
		if found != nil {
			return found, nil
		}
	}
	if len(broken) > longest {
		if err := fits.Validate([]byte(broken)); err != nil {
			return nil, jig.AsError(err)
		}
	}
	if misfit == nil {
		misfit = jig.Errorf(jig.CodeInvalidOutput, "the answer contains no JSON value")
	}
	return nil, misfit
}

// compacted returns valid JSON without white space.
func compacted(text string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return json.RawMessage(text)
	}
	return b.Bytes()
}

// fenced returns the contents of those code fences that hold JSON. An unclosed fence extends to the end of the text.
func fenced(text string) []string {
	var found []string
	open, from, at := "", 0, 0
	keep := func(block string) {
		if block = strings.TrimSpace(block); json.Valid([]byte(block)) {
			found = append(found, block)
		}
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		marker := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case open == "" && len(marker) >= 3 && !strings.Contains(trimmed[len(marker):], "`"):
			open, from = marker, at+len(line)
		case open != "" && len(marker) >= len(open) && marker == trimmed:
			keep(text[from:at])
			open = ""
		}
		at += len(line)
	}
	if open != "" {
		keep(text[from:])
	}
	return found
}

// inProse returns the objects and arrays within a text. broken is the rest of the text from the first value that does not end properly,
// because what follows could be a part of that value; "" if there is no such value.
func inProse(text string) (found []string, broken string) {
	rest := text
	for range maxStarts {
		start := strings.IndexAny(rest, "{[")
		if start < 0 {
			return found, ""
		}
		rest = rest[start:]
		var value json.RawMessage
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err == nil {
			found = append(found, string(value))
			rest = rest[len(value):]
			continue
		}
		if !aside(rest) {
			return found, rest
		}
		rest = rest[1:]
	}
	return found, ""
}

// aside reports whether an opening bracket belongs to prose, as in {name}, [1, as above] or [a link](…).
func aside(rest string) bool {
	inner := strings.TrimLeft(rest[1:], " \t\r\n")
	if inner == "" {
		return true
	}
	if rest[0] == '[' {
		return !strings.ContainsRune(`{["`, rune(inner[0]))
	}
	next := strings.IndexAny(inner, "{}")
	return inner[0] != '"' && next >= 0 && inner[next] == '}'
}
