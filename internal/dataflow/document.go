package dataflow

import (
	"strings"
	"unicode/utf8"
)

// Part is a part of a document that cannot be traced.
type Part struct {
	// Line and Column say where the part begins, from 1. Columns count characters.
	Line, Column int
	// Text is the part without blanks around it, at most 120 characters.
	Text string
	// Calls lists the untrusted results that contain something of the part; see [Argument].
	Calls []string
}

// Parts returns the parts of a document that cannot be traced: its lines, or pieces of 120 characters of longer lines. ok is false if comparing them
// takes too much work, so that some are missing.
func (t *Tracer) Parts(document string) (parts []Part, ok bool) {
	j := &judge{Tracer: t, work: maxWork}
	line := 0
	for text := range strings.Lines(document) {
		line++
		for column := 1; text != ""; {
			piece, rest := split(text)
			if value := strings.TrimSpace(piece); value != "" {
				if found := j.text(value, false); found.untrusted || found.computed {
					parts = append(parts, Part{Line: line, Column: column, Text: value, Calls: found.calls})
				}
			}
			text, column = rest, column+utf8.RuneCountInString(piece)
		}
		if j.work <= 0 {
			return parts, false
		}
	}
	return parts, true
}

// split cuts off the first piece of a line, at the last blank if there is one.
func split(line string) (piece, rest string) {
	end, blank, n := len(line), 0, 0
	for i, r := range line {
		if n == maxValueShown {
			end = i
			break
		}
		if n++; r == ' ' || r == '\t' {
			blank = i + 1
		}
	}
	if end < len(line) && blank > 0 {
		end = blank
	}
	return line[:end], line[end:]
}
