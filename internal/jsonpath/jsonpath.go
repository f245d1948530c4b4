// Package jsonpath selects values from JSON by a path (RFC 9535) that a model or a person supplies. It never holds more than one selected
// value at a time, counts the values that it visits, and stops when its context ends, so that no combination of path and document can bring
// the process down.
//
// In addition to the standard, it accepts paths without the leading $, the operator =~ with a regular expression, and the operator in with a
// list. It must not know where the JSON comes from.
package jsonpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits on one query.
const (
	// MaxBytes is the maximum length of a path.
	MaxBytes = 4_000
	// MaxSteps bounds the values that a path visits; a value visited again counts again.
	MaxSteps = 5_000_000
	// MaxDepth is the maximum nesting depth of the JSON.
	MaxDepth = 512
	// MaxValues is the maximum number of values in the JSON if all of it must be held in memory.
	MaxValues = 1_000_000
)

// Path is a parsed path. It is safe for concurrent use.
type Path struct {
	segments []segment
}

// segment selects from every value that the previous segment found and, if descend is set, also from all values below them.
type segment struct {
	descend   bool
	selectors []selector
}

// selector is one of name, index, wildcard, slice and *filter.
type selector any

type (
	name     string
	index    int
	wildcard struct{}
	slice    struct{ start, end, step *int }
	filter   struct{ test expression }
)

// LimitError says that a query exceeds one of the limits.
type LimitError struct {
	// OfDocument is set if the JSON is too large or too deep; otherwise the path asks for too much.
	OfDocument bool
	message    string
}

// Error implements error.
func (e *LimitError) Error() string { return e.message }

func exceeded(format string, args ...any) error {
	return &LimitError{message: fmt.Sprintf(format, args...)}
}

func tooMuch(format string, args ...any) error {
	return &LimitError{OfDocument: true, message: fmt.Sprintf(format, args...)}
}

// Streams reports whether Select can follow the path while it reads the JSON, so that the JSON need not fit into memory. That requires a path
// of names, nonnegative indices and wildcards.
func (p *Path) Streams() bool {
	for _, s := range p.segments {
		if s.descend || len(s.selectors) != 1 {
			return false
		}
		switch at := s.selectors[0].(type) {
		case name, wildcard:
		case index:
			if at < 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Select reads JSON and calls found with each value at the path, as compact JSON cut to limit bytes, until found returns false. An error
// that is neither a *LimitError nor an error of the reader or of ctx means that the JSON is invalid.
func (p *Path) Select(ctx context.Context, r io.Reader, limit int, found func(text string) bool) error {
	tokens := newTokens(ctx, r)
	if p.Streams() {
		s := &streaming{tokens: tokens, limit: limit, found: found}
		if s.follow(p.segments, tokens.next()); s.enough {
			return nil
		}
		return tokens.end()
	}
	root := tokens.value(tokens.next())
	if err := tokens.end(); err != nil {
		return err
	}
	w := &walk{ctx: ctx, root: root, left: MaxSteps}
	w.follow(p.segments, root, func(v any) bool {
		text := newText(limit)
		w.write(text, v)
		return w.err == nil && found(text.String())
	})
	return w.err
}

// streaming follows a path while the JSON is read.
type streaming struct {
	*tokens
	limit int
	found func(string) bool
	// enough is set once found has returned false.
	enough bool
}

// follow reads the rest of a value, given its first token.
func (s *streaming) follow(segments []segment, token json.Token) {
	if s.err != nil {
		return
	}
	if len(segments) == 0 {
		s.take(token)
		return
	}
	at, rest := segments[0].selectors[0], segments[1:]
	switch token {
	case json.Delim('{'):
		for key := range s.until('}') {
			s.child(at == selector(wildcard{}) || at == selector(name(fmt.Sprint(key))), rest, s.next())
		}
	case json.Delim('['):
		i := 0
		for first := range s.until(']') {
			s.child(at == selector(wildcard{}) || at == selector(index(i)), rest, first)
			i++
		}
	}
}

// child reads the rest of a child of a value, given its first token.
func (s *streaming) child(wanted bool, rest []segment, token json.Token) {
	if wanted {
		s.follow(rest, token)
		return
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return
	}
	for inside := s.depth; s.depth >= inside && s.err == nil; {
		s.next()
	}
}

// take passes the value that begins with token to found.
func (s *streaming) take(token json.Token) {
	t := newText(s.limit)
	if s.write(t, token); s.err == nil && !s.found(t.String()) {
		s.err, s.enough = errors.New("no more values are needed"), true
	}
}

// write copies the value that begins with token. It reads the value to its end even if the text is full.
func (s *streaming) write(t *text, token json.Token) {
	separator := ""
	switch token {
	case json.Delim('{'):
		t.raw("{")
		for key := range s.until('}') {
			t.raw(separator)
			t.quoted(fmt.Sprint(key))
			t.raw(":")
			s.write(t, s.next())
			separator = ","
		}
		t.raw("}")
	case json.Delim('['):
		t.raw("[")
		for first := range s.until(']') {
			t.raw(separator)
			s.write(t, first)
			separator = ","
		}
		t.raw("]")
	default:
		t.scalar(token)
	}
}
