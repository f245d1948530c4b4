package dataflow

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// quotation is the number of consecutive tokens that count as a quotation of an untrusted text.
const quotation = 4

// outcome is the result of tracing a value. The zero value means that the value was traced to trusted text; calls lists the untrusted results that
// contain parts of it.
type outcome struct {
	untrusted, computed, destination bool
	calls                            []string
}

// checker compares the values of one input with the texts of a tracer. work is the number of comparisons that are left.
type checker struct {
	*Tracer
	work int
}

// number checks a number. quantity reports that it is an amount or a measure. A whole number that is neither may be an id, so it never counts as
// computed. A single digit occurs in almost every text, so it proves nothing: a quantity of one digit always counts as computed.
func (c *checker) number(n json.Number, destination, quantity bool) outcome {
	text := string(n)
	if f, err := n.Float64(); err == nil && strings.ContainsAny(text, "eE") {
		text = plain(f)
	}
	positive, negative := strings.CutPrefix(text, "-")
	normal, ok := decimal(positive)
	if ok {
		positive = normal
	}
	text = positive
	if negative && positive != "0" {
		text = "-" + positive
	}
	quantity = ok && (quantity || strings.Contains(positive, "."))
	switch {
	case c.trusted.has(c.words[text]) || !destination && (c.trusted.facts.numbers[text] || text == "0"):
		return outcome{}
	case !destination && quantity && (len(text) == 1 || !code(positive) && !c.untrusted.facts.mentions(text) && !c.incomplete()):
		return outcome{computed: true}
	}
	return c.reject([]token{{text: text, kind: number}, {text: positive, kind: number}}, destination)
}

// code reports whether a number is too long to be computed: an account, a telephone number, or a text in disguise. Digits after the point count,
// too.
func code(number string) bool {
	const longest = 8
	return len(strings.Replace(number, ".", "", 1)) > longest
}

// text checks a string.
func (c *checker) text(value string, destination bool) outcome {
	if value == "" {
		return outcome{}
	}
	single := len(strings.Fields(value)) == 1
	tokens := scanValue(value)
	if !destination && !single && slices.ContainsFunc(tokens, func(t token) bool { return t.kind == word }) {
		tokens = scanProse(value)
	}
	if text := slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.item }); len(text) > 0 {
		tokens = text
	}
	ids := c.words.ids(tokens)
	// A value without tokens is blank or a pattern for everything.
	if len(ids) == 0 || hidesText(value) || redirects(value, tokens) || !c.sameSpelling(value, tokens, destination) {
		return c.reject(tokens, destination)
	}
	if c.occurs(c.trusted, ids, false) {
		return outcome{}
	}
	if !destination && onlyDateTimes(tokens) {
		return c.dateTime(tokens)
	}
	if destination || single || c.occurs(c.untrusted, ids, true) {
		return c.reject(tokens, destination)
	}
	return c.byToken(tokens, ids)
}

// parts checks the values that a template of a trusted document put into a text. whole is the outcome for the text as a whole.
func (c *checker) parts(value string, whole outcome, parts []string, destination bool) outcome {
	if redirects(value, scanValue(value)) {
		return whole
	}
	var all outcome
	for _, part := range parts {
		one := c.text(part, destination)
		if one.untrusted {
			one.destination = one.destination || whole.destination
			return one
		}
		all.computed = all.computed || one.computed
	}
	return all
}

// redirects reports whether a value has an address that leads elsewhere than its tokens say: with invisible joiners in the host, or with . or ..
// in the path.
func redirects(value string, tokens []token) bool {
	if slices.ContainsFunc(tokens, func(t token) bool { return t.kind == address && escapesPath(t.text) }) {
		return true
	}
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<>,;"()[]`, r) }
	for field := range strings.FieldsFuncSeq(value, between) {
		if hasJoiners(field) && slices.ContainsFunc(scanValue(field), func(t token) bool { return t.kind == address || t.kind == name }) {
			return true
		}
	}
	return false
}

// byToken checks a text that occurs in no source as a whole. The text is traced if its tokens are, if at most a quarter of them are words that occur
// in no text, if it has more than function words, and if it quotes no untrusted text.
func (c *checker) byToken(tokens []token, ids []int32) outcome {
	rejected := tokens
	var own int
	if slices.ContainsFunc(tokens, func(t token) bool { return t.kind != word || !function(t.text) }) {
		rejected = nil
	}
	for i, t := range tokens {
		switch {
		case c.trusted.has(ids[i]) || t.kind == word && function(t.text):
		case t.kind == word && !slices.ContainsFunc(c.forms(t), c.untrusted.has) && !c.incomplete():
			own++
		case (t.kind == day || t.kind == clock) && !c.dateTime(tokens[i:i+1]).untrusted:
		default:
			rejected = append(rejected, t)
		}
	}
	for i := 0; i+quotation <= len(ids) && len(rejected) == 0; i++ {
		if part := ids[i : i+quotation]; c.occurs(c.untrusted, part, true) && !c.occurs(c.trusted, part, false) {
			rejected = tokens[i : i+quotation]
		}
	}
	if len(rejected) > 0 || own > len(tokens)/4 {
		return c.reject(rejected, false)
	}
	return outcome{}
}

// forms returns the ids of a token in both forms in which an untrusted text may contain it: as a host, and as a URL.
func (c *checker) forms(t token) []int32 {
	other := https + t.text
	if t.kind == address {
		other = strings.TrimPrefix(t.text, https)
	}
	return []int32{c.words[t.text], c.words[other]}
}

// occurs reports whether a sequence of tokens occurs in a corpus. It returns unsure if the search takes too much work.
func (c *checker) occurs(in *corpus, ids []int32, unsure bool) bool {
	at, ok := in.find(ids, &c.work)
	return ok && at >= 0 || !ok && unsure
}

// onlyDateTimes reports whether a value consists of dates and times.
func onlyDateTimes(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return t.kind != day && t.kind != clock })
}

// dateTime checks a value that consists of dates and times.
func (c *checker) dateTime(tokens []token) outcome {
	var rejected []token
	computed := false
	for _, t := range tokens {
		switch {
		case c.hasDateTime(t):
		case c.incomplete() || mentions(c.untrusted.facts, t):
			rejected = append(rejected, t)
		case t.kind == day && c.trusted.facts.yearless[monthAndDay(t)]:
			// The model has added the year.
		default:
			computed = true
		}
	}
	if len(rejected) > 0 {
		return c.reject(rejected, false)
	}
	return outcome{computed: computed}
}

// hasDateTime reports whether a trusted text contains a date or a time, or whether a time follows from a start and a duration that were typed.
func (c *checker) hasDateTime(t token) bool {
	if t.kind == day {
		return c.trusted.facts.days[t.text] || t.text == monthAndDay(t) && c.trusted.facts.anyYear[t.text]
	}
	if c.trusted.facts.clocks[t.text] || t.text == "00:00" || strings.HasPrefix(t.text, "23:59") {
		return true
	}
	for begin := range c.typed.clocks {
		for minutes := range c.typed.spans {
			if c.work--; c.work < 0 {
				return false
			}
			if addMinutes(begin, minutes) == t.text {
				return true
			}
		}
	}
	return false
}

// mentions reports whether texts mention a date, with or without the year, or a time.
func mentions(f facts, t token) bool {
	if t.kind == clock {
		return f.clocks[t.text]
	}
	return f.days[t.text] || f.yearless[monthAndDay(t)] || t.text == monthAndDay(t) && f.anyYear[t.text]
}

// monthAndDay returns a date without its year.
func monthAndDay(t token) string {
	return t.text[len(t.text)-len("-01-02"):]
}

// reject returns the outcome for a value with tokens that cannot be traced. It names the results that contain most of them.
func (c *checker) reject(tokens []token, destination bool) outcome {
	v := outcome{untrusted: true, destination: destination || slices.ContainsFunc(tokens, func(t token) bool { return t.kind == address || t.kind == name })}
	held := map[int]int{}
	seen := map[string]bool{}
	for _, t := range tokens {
		if !seen[t.text] {
			seen[t.text] = true
			for _, id := range c.forms(t) {
				c.untrusted.texts(id, held, &c.work)
			}
		}
		if t.kind == day {
			c.untrusted.texts(c.words[monthAndDay(t)], held, &c.work)
		}
	}
	most := 0
	for _, n := range held {
		most = max(most, n)
	}
	for i, r := range c.k.Untrusted {
		if held[i] == most && most > 0 && len(v.calls) < maxCalls && !slices.Contains(v.calls, r.Call) {
			v.calls = append(v.calls, r.Call)
		}
	}
	return v
}

// incomplete reports whether untrusted texts are missing.
func (c *checker) incomplete() bool {
	return c.k.Incomplete || c.untrusted.cut
}
