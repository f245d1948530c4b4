package livetext

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/protocol"
)

// keptBytes is how much of the end of each text is kept.
const keptBytes = 64 << 10

// keptAttempts is how many earlier attempts of a session are remembered.
const keptAttempts = 8

// text is the text of one request to a model. It is own if this process has sent the request.
type text struct {
	pass    int
	attempt string
	own     bool
	// body begins at start, in bytes from the beginning of the answer.
	start int
	body  []byte
	// changed is when the text changed last.
	changed time.Time
	// over reports that the request has ended. failed says why there is no answer.
	over   bool
	failed string
	// sent is up to where an own text was sent to other processes. read reports that somebody follows the text, in this process or another.
	sent int
	read bool
	// past lists the attempts before this one. What arrives late from them is ignored.
	past []string
}

func (t *text) end() int { return t.start + len(t.body) }

// add appends to the text. What is too long to be kept is dropped from the beginning, now and then.
func (t *text) add(s string, now time.Time) {
	t.body, t.changed = append(t.body, s...), now
	if len(t.body) <= 2*keptBytes {
		return
	}
	cut := beginning(t.body, len(t.body)-keptBytes)
	t.start += cut
	t.body = slices.Clone(t.body[cut:])
}

// beginning returns the first position from at on where a character begins.
func beginning(body []byte, at int) int {
	for at < len(body) && !utf8.RuneStart(body[at]) {
		at++
	}
	return at
}

// ending returns the last position up to at where a character ends. The text is longer than at.
func ending[T string | []byte](body T, at int) int {
	for at > 0 && !utf8.RuneStart(body[at]) {
		at--
	}
	return at
}

// succeeds records that the text replaces an earlier one of its session.
func (t *text) succeeds(earlier *text) {
	if earlier == nil {
		return
	}
	t.past = append(slices.Clone(earlier.past), earlier.attempt)
	t.past = t.past[max(0, len(t.past)-keptAttempts):]
}

// merge adds a piece that another process has sent. A piece that begins before what is known replaces it, because the sender has started over; one
// that begins after it leaves a gap.
func (t *text) merge(p Piece, now time.Time) {
	switch {
	case p.Offset < t.start || p.Offset > t.end():
		t.start, t.body = p.Offset, nil
		t.add(p.Text, now)
	case p.Offset+len(p.Text) > t.end():
		t.add(p.Text[t.end()-p.Offset:], now)
	}
	t.changed, t.over, t.failed = now, p.Over, p.Failed
}

// after returns what follows a position, at most keptBytes; nil if that is nothing. A position in another attempt counts as the beginning. An
// answer that is complete will be stored, so only those who have begun to read it get the rest.
func (t *text) after(from protocol.TextPosition) *protocol.Draft {
	known := from.Attempt == t.attempt
	switch {
	case known:
	case t.pass < from.Pass, t.over && t.failed == "":
		return nil
	default:
		from = protocol.TextPosition{}
	}
	at := beginning(t.body, min(max(from.Offset, t.start), t.end())-t.start)
	if at == len(t.body) && (!t.over || from.Over) {
		return nil
	}
	t.read = true
	d := &protocol.Draft{
		Pass: t.pass, Attempt: t.attempt, Offset: t.start + at, Text: string(t.body[at:]), Over: t.over, Failed: t.failed,
	}
	if len(d.Text) > keptBytes {
		d.Text, d.Over, d.Failed = d.Text[:ending(d.Text, keptBytes)], false, ""
	}
	return d
}

// next returns the next piece to send; ok is false if everything was sent.
func (t *text) next(s Session) (p Piece, ok bool) {
	t.sent = max(t.sent, t.start)
	p = Piece{Session: s, Pass: t.pass, Attempt: t.attempt, Offset: t.sent}
	rest := t.body[t.sent-t.start:]
	if len(rest) <= pieceBytes {
		p.Text, p.Over, p.Failed = string(rest), t.over, t.failed
		return p, len(rest) > 0 || t.over
	}
	p.Text = string(rest[:ending(rest, pieceBytes)])
	return p, true
}
