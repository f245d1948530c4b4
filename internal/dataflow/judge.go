package dataflow

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// run is the number of tokens in a row that make a quotation of an untrusted text.
const run = 4

// judgement is the result for one value.
type judgement struct {
	untrusted, computed, destination bool
	calls                            []string
}

// judge compares the values of one input.
type judge struct {
	*Tracer
	work int
}

// number judges a number. quantity reports that it is an amount or a measure. A whole number that is neither may be an id, so it is never a value
// that the model computed. One digit of a quantity is a choice, because almost every text has that digit by chance.
func (j *judge) number(n json.Number, destination, quantity bool) judgement {
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
	case j.trusted.has(j.words[text]) || !destination && (j.trusted.facts.numbers[text] || text == "0"):
		return judgement{}
	case !destination && quantity && (len(text) == 1 || !code(positive) && !j.untrusted.facts.mentions(text) && !j.incomplete()):
		return judgement{computed: true}
	}
	return j.bad([]token{{text: text, kind: number}, {text: positive, kind: number}}, destination)
}

// code reports whether a number is too long to be computed: an account, a telephone number, or a text in disguise. Digits after the point count,
// too.
func code(number string) bool {
	const longest = 8
	return len(strings.Replace(number, ".", "", 1)) > longest
}

// text judges a string.
func (j *judge) text(value string, destination bool) judgement {
	if value == "" {
		return judgement{}
	}
	single := len(strings.Fields(value)) == 1
	tokens := scanValue(value)
	if !destination && !single && slices.ContainsFunc(tokens, func(t token) bool { return t.kind == word }) {
		tokens = scanProse(value)
	}
	if text := slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.item }); len(text) > 0 {
		tokens = text
	}
	ids := j.words.ids(tokens)
	// A value without tokens is blank or a pattern for everything.
	if len(ids) == 0 || hides(value) || alters(value, tokens) || !j.spelled(value, tokens, destination) {
		return j.bad(tokens, destination)
	}
	if j.occurs(j.trusted, ids, false) {
		return judgement{}
	}
	if !destination && moments(tokens) {
		return j.moment(tokens)
	}
	if destination || single || j.occurs(j.untrusted, ids, true) {
		return j.bad(tokens, destination)
	}
	return j.composed(tokens, ids)
}

// parts judges a text that a trusted document made of its own words and other values. whole is the judgement on the text without this knowledge.
func (j *judge) parts(value string, whole judgement, parts []string, destination bool) judgement {
	if alters(value, scanValue(value)) {
		return whole
	}
	var all judgement
	for _, part := range parts {
		one := j.text(part, destination)
		if one.untrusted {
			one.destination = one.destination || whole.destination
			return one
		}
		all.computed = all.computed || one.computed
	}
	return all
}

// alters reports whether a value has an address that leads to another place than its tokens say: with joiners in a host, or with segments of a
// path that climb.
func alters(value string, tokens []token) bool {
	if slices.ContainsFunc(tokens, func(t token) bool { return t.kind == address && climbs(t.text) }) {
		return true
	}
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<>,;"()[]`, r) }
	for field := range strings.FieldsFuncSeq(value, between) {
		if joined(field) && slices.ContainsFunc(scanValue(field), func(t token) bool { return t.kind == address || t.kind == name }) {
			return true
		}
	}
	return false
}

// composed judges a text that occurs nowhere as a whole. It is traced if it is made of traced tokens, not only of function words, and quotes no
// untrusted text.
func (j *judge) composed(tokens []token, ids []int32) judgement {
	bad := tokens
	var own int
	if slices.ContainsFunc(tokens, func(t token) bool { return t.kind != word || !function(t.text) }) {
		bad = nil
	}
	for i, t := range tokens {
		switch {
		case j.trusted.has(ids[i]) || t.kind == word && function(t.text):
		case t.kind == word && !slices.ContainsFunc(j.forms(t), j.untrusted.has) && !j.incomplete():
			own++
		case (t.kind == day || t.kind == clock) && !j.moment(tokens[i:i+1]).untrusted:
		default:
			bad = append(bad, t)
		}
	}
	for i := 0; i+run <= len(ids) && len(bad) == 0; i++ {
		if part := ids[i : i+run]; j.occurs(j.untrusted, part, true) && !j.occurs(j.trusted, part, false) {
			bad = tokens[i : i+run]
		}
	}
	if len(bad) > 0 || own > len(tokens)/4 {
		return j.bad(bad, false)
	}
	return judgement{}
}

// forms returns the numbers of a token in the forms in which an untrusted text may have it: a host with and without the rest of a URL.
func (j *judge) forms(t token) []int32 {
	other := https + t.text
	if t.kind == address {
		other = strings.TrimPrefix(t.text, https)
	}
	return []int32{j.words[t.text], j.words[other]}
}

// occurs reports whether a sequence occurs in a corpus. If finding out takes too much work, the answer is unsure.
func (j *judge) occurs(c *corpus, ids []int32, unsure bool) bool {
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

// says reports whether trusted texts have a date or a time, or whether the typed texts have a beginning and a duration that give it.
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

// bad is the judgement on a value with tokens that cannot be traced. It names the results that contain most of them.
func (j *judge) bad(tokens []token, destination bool) judgement {
	v := judgement{untrusted: true, destination: destination || slices.ContainsFunc(tokens, func(t token) bool { return t.kind == address || t.kind == name })}
	held := map[int]int{}
	seen := map[string]bool{}
	for _, t := range tokens {
		if !seen[t.text] {
			seen[t.text] = true
			for _, id := range j.forms(t) {
				j.untrusted.texts(id, held, &j.work)
			}
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
