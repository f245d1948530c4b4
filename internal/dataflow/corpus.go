package dataflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/argument"
)

const (
	// maxCorpus limits how many bytes of trusted and of untrusted texts are compared. A text that does not fit is left out. If an untrusted text
	// is left out, every value may occur in it. A trusted text that is left out traces nothing.
	maxCorpus = 4 << 20
	// maxDocuments limits how many JSON documents at the beginning of a text are read as JSON. The rest is read as plain text.
	maxDocuments = 16
	// maxWork limits the comparisons of tokens for one input.
	maxWork = 4 << 20
)

// vocabulary numbers the tokens of all texts, from 1.
type vocabulary map[string]int32

// id returns the number of a token and adds the token if it is new.
func (v vocabulary) id(text string) int32 {
	id, ok := v[text]
	if !ok {
		id = int32(len(v)) + 1 //nolint:gosec // there are fewer tokens than bytes in a corpus
		v[strings.Clone(text)] = id
	}
	return id
}

// corpus is a sequence of texts and an index of their tokens.
type corpus struct {
	words vocabulary
	// items reports that the number of a list's item counts as a number.
	items bool
	// sequence holds the tokens of all texts, with 0 between texts.
	sequence []int32
	// ends holds the position after the last token of each text.
	ends []int32
	// first holds the latest position of each token plus one, next the position of the same token before it plus one, and count the number of its
	// occurrences.
	first, count, next []int32
	// facts holds the numbers, dates and times of the texts.
	facts facts
	// spellings holds the fields of the texts that have punctuation. It is nil in a corpus that traces nothing.
	spellings spellings
	size      int
	// cut reports that texts were left out.
	cut bool
}

func newCorpus(words vocabulary) *corpus {
	return &corpus{words: words, facts: newFacts()}
}

// add adds a text.
func (c *corpus) add(text string) {
	if c.size+len(text) > maxCorpus {
		c.cut = true
	} else {
		c.size += len(text)
		c.document(text)
	}
	c.push(0)
	c.ends = append(c.ends, int32(len(c.sequence))) //nolint:gosec // bounded by maxCorpus
}

// document adds the names, strings and numbers of the JSON documents that a text begins with, and then the rest of the text.
func (c *corpus) document(text string) {
	for range maxDocuments {
		text = strings.TrimSpace(text)
		if text == "" || strings.IndexByte(`{["`, text[0]) < 0 {
			break
		}
		d := json.NewDecoder(strings.NewReader(text))
		var whole json.RawMessage
		if d.Decode(&whole) != nil {
			break
		}
		c.values(text[:d.InputOffset()])
		text = text[d.InputOffset():]
	}
	c.plain(text)
}

// values adds the names, strings and numbers in a JSON document.
func (c *corpus) values(text string) {
	for at := 0; at < len(text); {
		end := at + 1
		switch {
		case text[at] == '"':
			end = closing(text, at)
			value := unquoted(text[at:end])
			c.plain(value)
			c.whole(value)
		case text[at] == '-' || digit(text[at]):
			for end < len(text) && strings.IndexByte("0123456789.eE+-", text[end]) >= 0 {
				end++
			}
			c.plain(text[at:end])
		}
		at = end
	}
}

// closing returns the position after the string that begins at a position of a JSON document.
func closing(text string, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// unquoted returns the value of a JSON string.
func unquoted(quoted string) string {
	if !strings.Contains(quoted, `\`) {
		return quoted[1 : len(quoted)-1]
	}
	var value string
	if json.Unmarshal([]byte(quoted), &value) != nil {
		return quoted
	}
	return value
}

// plain adds a text that is not JSON.
func (c *corpus) plain(text string) {
	tokens := scan(text)
	for i, t := range tokens {
		if t.item {
			tokens[i].item = !c.items
			continue
		}
		c.push(c.words.id(t.text))
	}
	c.canonical(tokens)
	c.facts.add(tokens)
	if c.spellings != nil {
		c.spellings.add(text)
	}
}

// whole adds a string of a JSON document that is one URL as an argument is read, because no mark at its end belongs to a sentence.
func (c *corpus) whole(value string) {
	if schemeAt(value) != 0 || strings.ContainsFunc(value, separates) {
		return
	}
	tokens := scanValue(value)
	for _, t := range tokens {
		c.push(0)
		c.push(c.words.id(t.text))
	}
	c.canonical(tokens)
}

// canonical adds URLs in the form in which arguments are written that the schema marks as URLs, if a text has another one.
func (c *corpus) canonical(tokens []token) {
	for _, t := range tokens {
		if t.kind != address || !strings.Contains(t.text, "://") {
			continue
		}
		if url, err := argument.URL(t.text); err == nil && url != t.text {
			c.push(0)
			c.push(c.words.id(strings.TrimSuffix(url, "/")))
			c.push(0)
		}
	}
}

// push appends a token. 0 is never found.
func (c *corpus) push(id int32) {
	c.sequence = append(c.sequence, id)
	c.next = append(c.next, 0)
	if id == 0 {
		return
	}
	for int(id) >= len(c.count) {
		c.count, c.first = append(c.count, 0), append(c.first, 0)
	}
	at := int32(len(c.sequence)) //nolint:gosec // bounded by maxCorpus
	c.next[at-1], c.first[id] = c.first[id], at
	c.count[id]++
}

// ids returns the numbers of tokens, with 0 for a token that occurs in no text.
func (v vocabulary) ids(tokens []token) []int32 {
	ids := make([]int32, len(tokens))
	for i, t := range tokens {
		ids[i] = v[t.text]
	}
	return ids
}

// find returns the position of a sequence of tokens, or -1. It subtracts its comparisons from work, and returns false if work is used up.
func (c *corpus) find(ids []int32, work *int) (position int, ok bool) {
	rarest := -1
	for i, id := range ids {
		if !c.has(id) {
			return -1, true
		}
		n := c.count[id]
		if rarest < 0 || n < c.count[ids[rarest]] {
			rarest = i
		}
	}
	if rarest < 0 {
		return -1, true
	}
	for at := c.first[ids[rarest]]; at != 0; at = c.next[at-1] {
		begin := int(at) - 1 - rarest
		if *work--; *work < 0 {
			return -1, false
		}
		if begin < 0 || begin+len(ids) > len(c.sequence) {
			continue
		}
		same := 0
		for same < len(ids) && c.sequence[begin+same] == ids[same] {
			same++
		}
		*work -= same
		if same == len(ids) {
			return begin, true
		}
	}
	return -1, true
}

// has reports whether a token occurs in a text.
func (c *corpus) has(id int32) bool {
	return int(id) < len(c.count) && c.count[id] > 0
}

// texts adds one to the count of each text that has a token. It subtracts its comparisons from work.
func (c *corpus) texts(id int32, counts map[int]int, work *int) {
	last := -1
	if !c.has(id) {
		return
	}
	for at := c.first[id]; at != 0 && *work > 0; at = c.next[at-1] {
		*work--
		text, _ := slices.BinarySearch(c.ends, at)
		if text != last {
			counts[text]++
			last = text
		}
	}
}
