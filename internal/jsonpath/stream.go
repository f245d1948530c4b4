package jsonpath

import (
	"encoding/json"
	"fmt"
)

// streaming follows a path while the JSON is read.
type streaming struct {
	tokens *tokens
	limit  int
	found  func(string) bool
}

func (s *streaming) all(segments []segment) error {
	token, err := s.tokens.next()
	if err != nil {
		return err
	}
	if err := s.follow(segments, token); err != nil {
		return err
	}
	return s.tokens.end()
}

// follow reads the rest of a value, given its first token.
func (s *streaming) follow(segments []segment, token json.Token) error {
	if len(segments) == 0 {
		return s.take(token)
	}
	at, rest := segments[0].selectors[0], segments[1:]
	switch token {
	case json.Delim('{'):
		for {
			key, err := s.tokens.next()
			if err != nil || key == json.Delim('}') {
				return err
			}
			wanted := at == selector(wildcard{}) || at == selector(name(fmt.Sprint(key)))
			if err := s.child(wanted, rest); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; ; i++ {
			token, err := s.tokens.next()
			if err != nil || token == json.Delim(']') {
				return err
			}
			if wanted := at == selector(wildcard{}) || at == selector(index(i)); wanted {
				err = s.follow(rest, token)
			} else {
				err = s.pass(token)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil // a value without children
}

// child reads the next value.
func (s *streaming) child(wanted bool, rest []segment) error {
	token, err := s.tokens.next()
	switch {
	case err != nil:
		return err
	case wanted:
		return s.follow(rest, token)
	}
	return s.pass(token)
}

// pass skips a value, given its first token.
func (s *streaming) pass(token json.Token) error {
	inside := s.tokens.depth
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	for s.tokens.depth >= inside {
		if _, err := s.tokens.next(); err != nil {
			return err
		}
	}
	return nil
}

// take passes the value that begins with token to found.
func (s *streaming) take(token json.Token) error {
	t := newText(s.limit)
	if err := s.write(t, token); err != nil {
		return err
	}
	if !s.found(t.String()) {
		return errEnough
	}
	return nil
}

// write copies the value that begins with token. It reads the value to its end even if the text is full.
func (s *streaming) write(t *text, token json.Token) error {
	switch token {
	case json.Delim('{'):
		t.raw("{")
		for first := true; ; first = false {
			key, err := s.tokens.next()
			if err != nil || key == json.Delim('}') {
				t.raw("}")
				return err
			}
			if !first {
				t.raw(",")
			}
			t.quoted(fmt.Sprint(key))
			t.raw(":")
			if token, err = s.tokens.next(); err == nil {
				err = s.write(t, token)
			}
			if err != nil {
				return err
			}
		}
	case json.Delim('['):
		t.raw("[")
		for first := true; ; first = false {
			token, err := s.tokens.next()
			if err != nil || token == json.Delim(']') {
				t.raw("]")
				return err
			}
			if !first {
				t.raw(",")
			}
			if err := s.write(t, token); err != nil {
				return err
			}
		}
	}
	t.scalar(token)
	return nil
}
