package dataflow

import (
	"fmt"
	"strconv"
	"strings"
)

// quantities replaces dates, times and durations, in digits or in words, by one token each, so that "May 15th, 2024" equals "2024-05-15",
// "6 PM" equals "18:00" and "one hour" equals "60 minutes".
func quantities(tokens []token) []token {
	out := make([]token, 0, len(tokens))
	for i := 0; i < len(tokens); {
		found, n := quantity(tokens[i:])
		if n == 0 {
			out = append(out, tokens[i])
			i++
			continue
		}
		out = append(out, found...)
		i += n
	}
	return out
}

// quantity returns the tokens for the date, time or duration that begins a text, and how many tokens it takes. If none does, it returns 0.
func quantity(t []token) ([]token, int) {
	if t[0].item || !mayBegin(t[0]) {
		return nil, 0
	}
	if d, c, ok := dateStamp(t[0].text); ok {
		if c == "" {
			return []token{{text: d, kind: day}}, 1
		}
		return []token{{text: d, kind: day}, {text: c, kind: clock}}, 1
	}
	if c, n := clockOf(t); n > 0 {
		return []token{{text: c, kind: clock}}, n
	}
	if d, n := writtenDate(t); n > 0 {
		return []token{{text: d, kind: day}}, n
	}
	if minutes, n := spanOf(t); n > 0 {
		return []token{{text: "PT" + strconv.Itoa(minutes) + "M", kind: span}}, n
	}
	return nil, 0
}

// mayBegin reports whether a token may begin a date, a time or a duration.
func mayBegin(t token) bool {
	if t.kind != word {
		return digit(t.text[0])
	}
	_, counts := counts[t.text]
	return counts || months[t.text] > 0 || t.text == "noon" || t.text == "midnight" || t.text == "half"
}

// dateStamp reads 2024-05-15, 2024/05/15, 15.05.2024 and 2024-05-15t10:00:00z. The time is empty if there is none.
func dateStamp(text string) (date, time string, ok bool) {
	if len(text) < 8 || !digit(text[0]) {
		return "", "", false
	}
	date, time, timed := strings.Cut(text, "t")
	if timed {
		if time, ok = clockText(strings.TrimSuffix(time, "z")); !ok {
			return "", "", false
		}
	}
	sep := strings.IndexAny(date, "-/.")
	if sep < 0 {
		return "", "", false
	}
	parts := strings.Split(date, date[sep:sep+1])
	if len(parts) != 3 || !digits(parts[0]) || !digits(parts[1]) || !digits(parts[2]) {
		return "", "", false
	}
	y, m, d := parts[0], parts[1], parts[2]
	if len(y) != 4 && date[sep] == '.' {
		y, d = d, y
	}
	if len(y) != 4 || len(m) > 2 || len(d) > 2 {
		return "", "", false
	}
	return dateText(y, atoi(m), atoi(d)), time, atoi(m) >= 1 && atoi(m) <= 12 && atoi(d) >= 1 && atoi(d) <= 31
}

// dateText writes a date. year is empty if it is not known.
func dateText(year string, month, dayOfMonth int) string {
	return fmt.Sprintf("%s-%02d-%02d", year, month, dayOfMonth)
}

// writtenDate reads a date whose month is a word: May 15th, 2024; 15th of May 2024; May 15.
func writtenDate(t []token) (string, int) {
	month, dayOfMonth, n := 0, 0, 0
	if m := monthOf(t[0]); m > 0 && len(t) > 1 {
		month, dayOfMonth, n = m, dayOf(t[1]), 2
	} else if d := dayOf(t[0]); d > 0 && len(t) > 1 {
		n = 1
		if t[n].text == "of" && len(t) > 2 {
			n++
		}
		month, dayOfMonth = monthOf(t[n]), d
		n++
	}
	if month == 0 || dayOfMonth == 0 {
		return "", 0
	}
	if n < len(t) && t[n].kind == number && len(t[n].text) == 4 && (t[n].text[:2] == "19" || t[n].text[:2] == "20") {
		return dateText(t[n].text, month, dayOfMonth), n + 1
	}
	return dateText("", month, dayOfMonth), n
}

// monthOf returns the number of a month's name, or 0.
func monthOf(t token) int {
	if t.kind != word {
		return 0
	}
	return months[t.text]
}

// months are the names of the months, and their abbreviations.
var months = map[string]int{ // immutable
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9, "october": 10,
	"november": 11, "december": 12, "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10,
	"nov": 11, "dec": 12,
}

// dayOf returns the day of a month from 15 or 15th, or 0.
func dayOf(t token) int {
	text := t.text
	if t.kind == opaque && len(text) > 2 {
		switch text[len(text)-2:] {
		case "st", "nd", "rd", "th":
			text = text[:len(text)-2]
		}
	} else if t.kind != number {
		return 0
	}
	if d := atoi(text); digits(text) && d >= 1 && d <= 31 {
		return d
	}
	return 0
}

// clockOf reads 18:00, 18:00:00, 6 PM, 6pm, 6:30 pm, noon and midnight.
func clockOf(t []token) (string, int) {
	text := t[0].text
	switch {
	case text == "noon":
		return "12:00", 1
	case text == "midnight":
		return "00:00", 1
	case !digit(text[0]):
		return "", 0
	}
	if add := meridiem(strings.TrimLeft(text, "0123456789:")); add >= 0 {
		c, ok := clock12(strings.TrimRight(text, "apm."), add)
		return c, btoi(ok)
	}
	if len(t) > 1 {
		if add := meridiem(t[1].text); add >= 0 {
			if c, ok := clock12(text, add); ok {
				return c, 2
			}
		}
	}
	c, ok := clockText(text)
	return c, btoi(ok)
}

// meridiem returns the hours to add for am and pm, or -1.
func meridiem(text string) int {
	switch text {
	case "am", "a.m":
		return 0
	case "pm", "p.m":
		return 12
	}
	return -1
}

// clock12 reads a time on a clock of twelve hours.
func clock12(text string, add int) (string, bool) {
	if digits(text) {
		text += ":00"
	}
	c, ok := clockText(text)
	if !ok || atoi(c[:2]) < 1 || atoi(c[:2]) > 12 {
		return "", false
	}
	return fmt.Sprintf("%02d:%s", atoi(c[:2])%12+add, c[3:]), true
}

// clockText reads 8:00, 08:00 and 08:00:00. Seconds are dropped if they are zero.
func clockText(text string) (string, bool) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return "", false
	}
	for i, p := range parts {
		if !digits(p) || len(p) > 2 || i > 0 && len(p) != 2 || atoi(p) > 59 || i == 0 && atoi(p) > 24 {
			return "", false
		}
	}
	c := fmt.Sprintf("%02d:%s", atoi(parts[0]), parts[1])
	if len(parts) == 3 && parts[2] != "00" {
		c += ":" + parts[2]
	}
	return c, true
}

// spanOf reads a duration, in minutes: 4 hours, one hour, half an hour, 90 min.
func spanOf(t []token) (int, int) {
	if len(t) < 2 {
		return 0, 0
	}
	if t[0].text == "half" && (t[1].text == "an" || t[1].text == "a") && len(t) > 2 && t[2].text == "hour" {
		return 30, 3
	}
	n, ok := count(t[0])
	unit := unitOf(t[1].text)
	if !ok || unit == 0 || n > 100_000 {
		return 0, 0
	}
	return n * unit, 2
}

// unitOf returns the minutes of a unit of time, or 0.
func unitOf(text string) int {
	switch strings.TrimSuffix(text, "s") {
	case "minute", "min":
		return 1
	case "hour", "hr":
		return 60
	case "day":
		return 24 * 60
	case "week":
		return 7 * 24 * 60
	}
	return 0
}

// count returns a small whole number in digits or in words.
func count(t token) (int, bool) {
	if t.kind == number && digits(t.text) && len(t.text) < 7 {
		return atoi(t.text), true
	}
	n, ok := counts[t.text]
	return n, ok && t.kind == word
}

// counts are the words for numbers.
var counts = map[string]int{ // immutable
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
	"twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
	"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// scales are the words that multiply numbers.
var scales = map[string]int{"hundred": 100, "thousand": 1000, "million": 1_000_000} // immutable

// numberInWords returns the number that begins a text in words, such as "two thousand five hundred", and how many tokens it takes.
func numberInWords(t []token) (int, int) {
	total, part, n := 0, 0, 0
	for ; n < len(t) && n < 12; n++ {
		if c, ok := counts[t[n].text]; ok && t[n].kind == word {
			part += c
			continue
		}
		scale, ok := scales[t[n].text]
		switch {
		case !ok && (t[n].text != "and" || n == 0):
			return total + part, n
		case !ok:
			continue
		case scale == 100:
			part = max(part, 1) * scale
		default:
			total, part = total+max(part, 1)*scale, 0
		}
	}
	return total + part, n
}

// atoi reads digits. Of more than nine, it returns -1.
func atoi(text string) int {
	if len(text) > 9 {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
