package dataflow

import (
	"maps"
	"strconv"
	"strings"
)

// facts holds the numbers, dates, times and durations that texts mention, in any form.
type facts struct {
	// numbers holds decimal numbers with their signs, including those in words.
	numbers map[string]bool
	// days holds dates with a year, yearless those without one, such as -05-15, and anyYear both, without the year.
	days, yearless, anyYear map[string]bool
	clocks                  map[string]bool
	// spans holds durations in minutes.
	spans map[int]bool
}

func newFacts() facts {
	return facts{
		numbers: map[string]bool{}, days: map[string]bool{}, yearless: map[string]bool{}, anyYear: map[string]bool{},
		clocks: map[string]bool{}, spans: map[int]bool{},
	}
}

// clone returns a copy of the times and durations.
func (f facts) clone() facts {
	return facts{clocks: maps.Clone(f.clocks), spans: maps.Clone(f.spans)}
}

// add records the facts of a text.
func (f facts) add(tokens []token) {
	for i, t := range tokens {
		switch t.kind {
		case day:
			f.day(t.text)
			for _, other := range rangeDates(tokens, i) {
				f.day(other)
			}
		case clock:
			f.clocks[t.text] = true
		case span:
			f.span(t)
		case number:
			f.number(t, tokens[:i], tokens[i+1:])
		case word:
			if n, used := numberInWords(tokens[i:]); used > 0 {
				f.numbers[strconv.Itoa(n)] = true
			}
		case opaque:
			if digits, scale := strings.TrimRight(t.text, "km"), t.text[len(t.text)-1]; len(digits) == len(t.text)-1 {
				f.scaled(digits, map[byte]int{'k': 1000, 'm': 1_000_000}[scale])
			}
		case name, address:
		}
	}
}

func (f facts) day(date string) {
	year, rest := date[:len(date)-len("-01-02")], date[len(date)-len("-01-02"):]
	f.anyYear[rest] = true
	if year == "" {
		f.yearless[rest] = true
	} else {
		f.days[date] = true
	}
}

func (f facts) span(t token) {
	minutes := minutesOf(t)
	f.spans[minutes] = true
	for _, unit := range []int{1, 60, 24 * 60, 7 * 24 * 60} {
		if minutes%unit == 0 {
			f.numbers[strconv.Itoa(minutes/unit)] = true
		}
	}
}

func (f facts) number(t token, before, after []token) {
	if t.item {
		return
	}
	text := t.text
	if len(before) > 0 && before[len(before)-1].text == "minus" && !strings.HasPrefix(text, "-") {
		text = "-" + text
	}
	f.numbers[text] = true
	if len(after) > 0 {
		f.scaled(text, scales[after[0].text])
	}
}

// mentions reports whether the texts have a number, with either sign.
func (f facts) mentions(number string) bool {
	number = strings.TrimPrefix(number, "-")
	return f.numbers[number] || f.numbers["-"+number]
}

// scaled records a number such as 30k or 1.5 million.
func (f facts) scaled(text string, scale int) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && scale > 0 {
		f.numbers[plain(n*float64(scale))] = true
	}
}

// plain writes a number without an exponent.
func plain(n float64) string {
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// minutesOf returns the length of a duration.
func minutesOf(t token) int {
	return atoi(strings.TrimSuffix(strings.TrimPrefix(t.text, "PT"), "M"))
}

// rangeDates returns the other date of a range that names the month only once: "the 1st to the 5th of May", "May 1st to 5th".
func rangeDates(tokens []token, i int) []string {
	var days []string
	date := tokens[i].text
	month := date[:len(date)-len("02")]
	for _, step := range []int{-1, 1} {
		at, joined := i+step, false
		for ; at >= 0 && at < len(tokens) && joins(tokens[at].text); at += step {
			joined = joined || tokens[at].text != "the"
		}
		if joined && at >= 0 && at < len(tokens) {
			if d := dayOf(tokens[at]); d > 0 {
				days = append(days, month+twoDigits(d))
			}
		}
	}
	return days
}

// joins reports whether a word may occur between the two days of a range.
func joins(text string) bool {
	switch text {
	case "the", "to", "until", "till", "through", "and":
		return true
	}
	return false
}

// twoDigits writes a number below 100 with two digits.
func twoDigits(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// addMinutes returns the time of day some minutes after another. It returns "" if clock has seconds.
func addMinutes(clock string, minutes int) string {
	hour, minute, ok := strings.Cut(clock, ":")
	if !ok || len(minute) != 2 {
		return ""
	}
	at := (atoi(hour)*60 + atoi(minute) + minutes) % (24 * 60)
	return twoDigits(at/60) + ":" + twoDigits(at%60)
}
