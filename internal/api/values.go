package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/jsontext"
)

// Values are the values of a request. An error of the server names the place of a value instead of repeating it: {tool} is the member or the
// parameter tool, and {document[12:20]} are the bytes from 12 to 20 of the member document. A client that has sent the request fills them in.
// Of members that are no texts, the bytes are those of their JSON.
type Values struct {
	// Parameters are those of the path, the query and the headers. They win over members of the body with the same name.
	Parameters map[string]string
	// Body is the body as it was sent.
	Body []byte

	texts map[string]text
	names []string
	// searched is how many bytes were searched.
	searched int
}

// text is a value as a text; isJSON reports that it is the JSON of an object, a list or a number.
type text struct {
	text   string
	isJSON bool
}

// maxSearched bounds how many bytes are searched for all values of an error. Values after that have no place.
const maxSearched = 8 << 20

// read splits the body into its members, once.
func (v *Values) read() {
	if v.texts != nil {
		return
	}
	v.texts = map[string]text{}
	var members map[string]json.RawMessage
	if json.Unmarshal(v.Body, &members) == nil {
		for name, raw := range members {
			var s string
			if err := json.Unmarshal(raw, &s); err == nil && raw[0] == '"' {
				v.texts[name] = text{text: s}
			} else {
				v.texts[name] = text{string(raw), true}
			}
		}
	}
	for name, value := range v.Parameters {
		v.texts[name] = text{text: value}
	}
	v.names = slices.Sorted(maps.Keys(v.texts))
}

// Place returns the place of a value, in braces, or "" if the request has it nowhere as a whole word.
func (v *Values) Place(value string) string {
	v.read()
	if value == "" || v.searched > maxSearched {
		return ""
	}
	for _, name := range v.names {
		if v.texts[name].text == value && placeName.MatchString(name) {
			return "{" + name + "}"
		}
	}
	for _, name := range v.names {
		whole, needle := v.texts[name], value
		if whole.isJSON {
			needle = inJSON(value)
		}
		v.searched += len(whole.text)
		if at := wordIn(whole.text, needle); at >= 0 && placeName.MatchString(name) {
			return fmt.Sprintf("{%s[%d:%d]}", name, at, at+len(needle))
		}
	}
	return ""
}

var (
	placeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	place     = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)(?:\[([0-9]{1,9}):([0-9]{1,9})\])?\}`)
)

// Fill returns a text with the values instead of their places.
func (v *Values) Fill(message string) string {
	v.read()
	var b strings.Builder
	rest := message
	for {
		at := place.FindStringSubmatchIndex(rest)
		if at == nil {
			return b.String() + rest
		}
		found := place.FindStringSubmatch(rest)
		value, ok := v.at(found[1], found[2], found[3])
		switch {
		case !ok:
			value = found[0]
		case at[0] > 0 && rest[at[0]-1] == '"':
			quoted := strconv.Quote(value)
			value = quoted[1 : len(quoted)-1]
		}
		b.WriteString(rest[:at[0]] + value)
		rest = rest[at[1]:]
	}
}

// at returns the value at a place; from and to may be empty.
func (v *Values) at(name, from, to string) (string, bool) {
	whole, ok := v.texts[name]
	if !ok || from == "" {
		return whole.text, ok
	}
	begin, _ := strconv.Atoi(from) //nolint:errcheck // they are digits
	end, _ := strconv.Atoi(to)     //nolint:errcheck // they are digits
	if begin > end || end > len(whole.text) {
		return "", false
	}
	part := whole.text[begin:end]
	if whole.isJSON {
		var s string
		if json.Unmarshal([]byte(`"`+part+`"`), &s) == nil {
			part = s
		}
	}
	return part, true
}

// inJSON returns a text as it is inside a JSON string without HTML escapes.
func inJSON(value string) string {
	encoded, err := jsontext.Encode(value)
	if err != nil {
		return value
	}
	return string(encoded[1 : len(encoded)-1])
}

// wordIn returns where a text has a word that is no part of a longer one; -1 if nowhere.
func wordIn(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return -1
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		first, _ := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		if (!inWord(before) || !inWord(first)) && (!inWord(last) || !inWord(after)) {
			return at
		}
		from = at + 1
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
