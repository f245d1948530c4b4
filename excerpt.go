package jig

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of Excerpt: the minimum size of a member of an object, in bytes, and the number of levels of nested objects that keep their
// structure.
const (
	excerptMember = 16
	excerptDepth  = 4
)

// Excerpt returns a JSON input as it is shown to people, in at most n bytes (but never fewer than an empty string needs). An input that
// fits is returned unchanged. Otherwise its longest values are cut so that every argument is still visible: strings lose their ends, and
// other values become strings that are cut in the same way. A cut value ends in "…", and cut reports that something was cut.
func Excerpt(input json.RawMessage, n int) (shown json.RawMessage, cut bool) {
	if len(input) <= n {
		return input, false
	}
	return excerptOf(input, n, excerptDepth), true
}

func excerptOf(value json.RawMessage, n, depth int) json.RawMessage {
	if len(value) <= n {
		return value
	}
	if depth > 0 {
		if shown := excerptObject(value, n, depth); shown != nil {
			return shown
		}
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	}
	return excerptText(s, n)
}

// excerptObject gives each member of an object its share of n bytes. It returns nil if the value is not an object or has too many members.
func excerptObject(value json.RawMessage, n, depth int) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || len(members) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(members))
	room := n - len("{}")
	keys := make([][]byte, len(names))
	sizes := make([]int, len(names))
	for i, name := range names {
		keys[i], sizes[i] = quote(name), len(members[name])
		room -= len(keys[i]) + len(":,")
	}
	if room < excerptMember*len(names) {
		return nil
	}
	share := fairShare(sizes, room)
	var b bytes.Buffer
	for i, name := range names {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(keys[i])
		b.WriteByte(':')
		b.Write(excerptOf(members[name], share, depth-1))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// fairShare returns the size above which values must be cut so that all of them fit into room. Room that small values leave goes to larger
// ones.
func fairShare(sizes []int, room int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if share := room / (len(sorted) - i); size > share {
			return share
		}
		room -= size
	}
	return room
}

// excerptText returns the beginning of a text as JSON, in at most n bytes.
func excerptText(s string, n int) json.RawMessage {
	begin := s
	for {
		shown := quote(begin + "…")
		if len(shown) <= n || begin == "" {
			return shown
		}
		end := len(begin) * n / len(shown)
		for end > 0 && !utf8.RuneStart(begin[end]) {
			end--
		}
		begin = begin[:end]
	}
}

// quote encodes a text as JSON without HTML escapes.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(strings.ToValidUTF8(s, "\uFFFD")) != nil { // texts can always be encoded
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Cut shortens a text to at most n bytes, at a character boundary, and appends "…" (which is not counted). A text of at most n bytes is
// returned unchanged.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
