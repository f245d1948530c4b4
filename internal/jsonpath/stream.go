package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
