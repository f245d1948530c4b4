package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/stored"
)

const (
	// concealed is the shortest value that is hidden. Shorter ones are words of every sentence.
	concealed = 4
	// concealedInWords is the length from which a value is hidden even as a part of a longer word.
	concealedInWords = 12
	// concealedPart is how much of a long value hides the rest of it, because messages cut long values.
	concealedPart = 16
	// maxValues bounds how many values of a request are hidden in its errors.
	maxValues = 10_000
)

// concealer returns a function that replaces the values of a request in each of some texts, so that an error repeats nothing that the client
// sent: it may be a secret, and errors end up in logs and on pages.
func (x *exchange) concealer(texts []string) func(string) string {
	// Few of many values are in any text, so the texts are searched for all values once.
	all := strings.Join(texts, "\n")
	var values, documents []string
	for _, v := range x.values() {
		if strings.Contains(v, "\n") || strings.HasPrefix(v, "{") {
			documents = append(documents, v)
		}
		if conceal(all, v) != all {
			values = append(values, v)
		}
	}
	return func(text string) string {
		for _, v := range values {
			text = conceal(text, v)
		}
		for _, d := range documents {
			text = concealQuotes(text, d)
		}
		return text
	}
}

// quotes finds what the message of an error repeats of a document: quoted texts, and long numbers. What it suggests instead is not wrong.
var quotes = regexp.MustCompile(`did you mean "(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*"|\b[0-9][0-9.]{4,}\b`)

// concealQuotes hides the values of a document, in any language, where a text quotes them. The names of the document's keys are not values.
func concealQuotes(text, document string) string {
	return quotes.ReplaceAllStringFunc(text, func(found string) string {
		value, hidden := found, "…"
		if unquoted, err := strconv.Unquote(found); err == nil {
			value, hidden = strings.TrimSuffix(unquoted, "…"), `"…"` // messages cut long values
		}
		if len(value) < concealed || !isValueIn(document, value) {
			return found
		}
		return hidden
	})
}

// isValueIn reports whether a word is in a document, and nowhere a key.
func isValueIn(document, word string) bool {
	found := false
	for rest := document; ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return found
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		rest = rest[at+len(word):]
		after, _ := utf8.DecodeRuneInString(rest)
		switch {
		case len(word) < concealedInWords && (inWord(before) || inWord(after)):
		case strings.HasPrefix(strings.TrimLeft(rest, `"' `), ":"):
			return false
		default:
			found = true
		}
	}
}

// values returns the values of the request, the longest first: path, query with the members of lists and of JSON, two headers, and the texts and
// numbers of the body. The names of members are not values.
func (x *exchange) values() []string {
	if x.request == nil {
		return nil
	}
	all := valuesIn(x.body.Bytes())
	_, pattern, _ := strings.Cut(x.request.Pattern, " ")
	for part := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(part, "{") {
			all = append(all, x.request.PathValue(strings.Trim(part, "{}")))
		}
	}
	for _, list := range x.request.URL.Query() {
		for _, v := range list {
			all = append(append(all, v), valuesIn([]byte(v))...)
			for one := range strings.SplitSeq(v, ",") {
				all = append(all, strings.TrimPrefix(one, "-"))
			}
		}
	}
	all = append(all, x.request.Header.Get(headerKey), x.request.Header.Get(headerLastEvent))
	for _, v := range all {
		if !utf8.ValidString(v) { // errors that were JSON have it as it can be encoded
			all = append(all, string([]rune(v)))
		}
		if clean := stored.Clean(v); clean != v { // errors of the store have it as a column can hold it
			all = append(all, clean)
		}
	}
	all = slices.DeleteFunc(all, func(v string) bool { return len(v) < concealed })
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// valuesIn returns the texts and numbers in a JSON document; none if it is not JSON, because then errors repeat nothing of it.
func valuesIn(body []byte) []string {
	var document any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil {
		return nil
	}
	var all []string
	var walk func(value any)
	walk = func(value any) {
		if len(all) >= maxValues {
			return
		}
		switch v := value.(type) {
		case string:
			all = append(all, v)
		case json.Number:
			all = append(all, v.String())
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(document)
	return all
}

// conceal replaces a value in a text, also as a quoted text and if only its beginning is there. A short value must be a word of its own.
func conceal(text, value string) string {
	quoted := strconv.Quote(value)
	for _, form := range []string{quoted[1 : len(quoted)-1], value} {
		text = replaceWord(text, form)
	}
	if len(value) <= concealedPart {
		return text
	}
	begin := value[:concealedPart]
	for n := 1; n < utf8.UTFMax && !utf8.RuneStart(value[len(begin)]); n++ {
		begin = begin[:len(begin)-1] // messages cut values between characters
	}
	var b strings.Builder
	for {
		at := strings.Index(text, begin)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		n := max(len(begin), 1)
		for n < len(value) && at+n < len(text) && text[at+n] == value[n] {
			n++
		}
		b.WriteString(text[:at])
		b.WriteString("…")
		text = text[at+n:]
	}
}

func replaceWord(text, word string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, word)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		b.WriteString(text[:at])
		if len(word) < concealedInWords && (inWord(before) || inWord(after)) {
			b.WriteString(word)
		} else {
			b.WriteString("…")
		}
		text = text[at+len(word):]
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
