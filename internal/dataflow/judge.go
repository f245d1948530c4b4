package dataflow

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// run is the number of tokens in a row that count as a quotation of an untrusted text.
const run = 4

// judgement is the result of judging one value.
type judgement struct {
	untrusted, computed, destination bool
	calls                            []string
}

// judge compares the values of one input.
type judge struct {
	*Tracer
	work int
}

// number judges a number. magnitude says that it is an amount or a measure; then one digit is a choice, which stands in almost every text by
// chance.
func (j *judge) number(n json.Number, destination, magnitude bool) judgement {
	text := string(n)
	if f, err := n.Float64(); err == nil && strings.ContainsAny(text, "eE") {
		text = plain(f)
	}
	positive := strings.TrimPrefix(text, "-")
	if normal, ok := decimal(positive); ok {
		positive = normal
	}
	switch {
	case j.trusted.has(j.words[positive]) || !destination && (j.trusted.facts.numbers[positive] || positive == "0"):
		return judgement{}
	case !destination && (magnitude && len(positive) == 1 || !code(positive) && !j.untrusted.facts.numbers[positive] && !j.incomplete()):
		return judgement{computed: true}
	}
	return j.bad([]token{{text: positive, kind: number}}, destination)
}

// code reports whether a number is too long to be computed: an account, a telephone number, or text in disguise.
func code(number string) bool {
	const longest = 8
	whole, _, _ := strings.Cut(number, ".")
	return len(whole) > longest
}

// text judges a string.
func (j *judge) text(value string, destination bool) judgement {
	tokens := scanValue(value)
	if text := slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.item }); len(text) > 0 {
		tokens = text
	}
	if strings.TrimSpace(value) == "" {
		return judgement{}
	}
	ids := j.words.ids(tokens)
	if len(ids) == 0 || hides(value) || alters(value, tokens) { // such as a pattern for everything
		return j.bad(tokens, destination)
	}
	if j.stands(j.trusted, ids, false) {
		return judgement{}
	}
	if !destination && moments(tokens) {
		return j.moment(tokens)
	}
	if destination || len(strings.Fields(value)) == 1 || j.stands(j.untrusted, ids, true) {
		return j.bad(tokens, destination)
	}
	return j.composed(tokens, ids)
}

// alters reports whether a value has an address with characters that are not compared but belong to it: joiners in a host, or punctuation at the
// beginning of a mailbox. In prose, such punctuation does not belong to the address.
func alters(value string, tokens []token) bool {
	prose := slices.ContainsFunc(tokens, func(t token) bool { return t.kind != address })
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<>,;"()[]`, r) }
	for field := range strings.FieldsFuncSeq(value, between) {
		if joined(field) && slices.ContainsFunc(scanValue(field), func(t token) bool { return t.kind == address }) {
			return true
		}
		first, _ := utf8.DecodeRuneInString(field)
		if !prose && strings.Contains(field, "@") && first != '@' && !unicode.In(first, unicode.L, unicode.N) {
			return true
		}
	}
	return false
}

// composed judges a text that stands nowhere as a whole. It is traced if it is made of traced tokens, and quotes no untrusted text.
func (j *judge) composed(tokens []token, ids []int32) judgement {
	var bad []token
	var own int
	for i, t := range tokens {
		switch {
		case j.trusted.has(ids[i]) || t.kind == word && function(t.text):
		case t.kind == word && !j.untrusted.has(ids[i]) && !j.incomplete():
			own++
		case (t.kind == day || t.kind == clock) && !j.moment(tokens[i:i+1]).untrusted:
		default:
			bad = append(bad, t)
		}
	}
	for i := 0; i+run <= len(ids) && len(bad) == 0; i++ {
		if part := ids[i : i+run]; j.stands(j.untrusted, part, true) && !j.stands(j.trusted, part, false) {
			bad = tokens[i : i+run]
		}
	}
	if len(bad) > 0 || own > len(tokens)/4 {
		return j.bad(bad, slices.ContainsFunc(bad, func(t token) bool { return t.kind == address }))
	}
	return judgement{}
}

// stands reports whether a sequence stands in a corpus; unsure is the answer if finding out takes too much work.
func (j *judge) stands(c *corpus, ids []int32, unsure bool) bool {
	at, ok := c.find(ids, &j.work)
	return ok && at >= 0 || !ok && unsure
}

// moments reports whether a value is only dates and times.
func moments(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return t.kind != day && t.kind != clock })
}

// moment judges a value of dates and times.
func (j *judge) moment(tokens []token) judgement {
	var bad []token
	computed := false
	for _, t := range tokens {
		switch {
		case j.says(t):
		case j.incomplete() || mentions(j.untrusted.facts, t):
			bad = append(bad, t)
		case t.kind == day && j.trusted.facts.yearless[monthAndDay(t)]:
			// The model has completed the year.
		default:
			computed = true
		}
	}
	if len(bad) > 0 {
		return j.bad(bad, false)
	}
	return judgement{computed: computed}
}

// says reports whether trusted texts say a date or a time, or whether the typed texts say what gives it: a beginning and a duration.
func (j *judge) says(t token) bool {
	if t.kind == day {
		return j.trusted.facts.days[t.text] || t.text == monthAndDay(t) && j.trusted.facts.anyYear[t.text]
	}
	if j.trusted.facts.clocks[t.text] || t.text == "00:00" || strings.HasPrefix(t.text, "23:59") {
		return true
	}
	for begin := range j.typed.clocks {
		for minutes := range j.typed.spans {
			if j.work--; j.work < 0 {
				return false
			}
			if later(begin, minutes) == t.text {
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

// bad is the judgement on a value with tokens that cannot be traced. It names the results that hold most of them.
func (j *judge) bad(tokens []token, destination bool) judgement {
	v := judgement{untrusted: true, destination: destination || slices.ContainsFunc(tokens, func(t token) bool { return t.kind == address })}
	held := map[int]int{}
	seen := map[string]bool{}
	for _, t := range tokens {
		if !seen[t.text] {
			seen[t.text] = true
			j.untrusted.texts(j.words[t.text], held, &j.work)
		}
		if t.kind == day {
			j.untrusted.texts(j.words[monthAndDay(t)], held, &j.work)
		}
	}
	most := 0
	for _, n := range held {
		most = max(most, n)
	}
	for i, r := range j.k.Untrusted {
		if held[i] == most && most > 0 && len(v.calls) < maxCalls && !slices.Contains(v.calls, r.Call) {
			v.calls = append(v.calls, r.Call)
		}
	}
	return v
}

// incomplete reports whether untrusted texts are missing.
func (j *judge) incomplete() bool {
	return j.k.Incomplete || j.untrusted.cut
}
