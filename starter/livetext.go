package starter

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// liveText prints the text that a model is writing, as it comes, between the events of a session. Once the turn is stored, it prints what is
// missing of the text, and the event does not repeat it.
type liveText struct {
	// write prints text as it is.
	write func(text string)
	color palette

	// pass and attempt identify the text. text holds the part that was printed, which begins at start. over reports that the request has
	// ended, and failed that it ended without an answer.
	pass         int
	attempt      string
	start        int
	text         strings.Builder
	over, failed bool
	// stored is the latest pass whose turn is stored.
	stored int
	// open reports that the printed line has not ended.
	open bool
}

// textOn returns a printer of live text for a stream, or nil if the output is for programs.
func (a *app) textOn(stream io.Writer, color palette) *liveText {
	if a.json() {
		return nil
	}
	return &liveText{color: color, write: func(text string) { _, _ = fmt.Fprint(stream, text) }}
}

// saysAgain is in the heading of a text that replaces one that broke off.
const saysAgain = "model was asked again and says"

// draft prints the next part of a text.
func (l *liveText) draft(d *protocol.Draft) {
	if d.Pass <= l.stored {
		return
	}
	if d.Attempt != l.attempt || d.Pass != l.pass {
		l.begin(d)
	} else if d.Offset != l.end() {
		l.gap(d)
	}
	l.text.WriteString(d.Text)
	l.print(d.Text)
	l.over = d.Over
	if d.Failed != "" && !l.failed {
		l.failed = true
		l.line("?", "the answer broke off", d.Failed)
	}
}

func (l *liveText) end() int { return l.start + l.text.Len() }

// begin prints the heading of a new text. If it replaces one of the same pass, it says so.
func (l *liveText) begin(d *protocol.Draft) {
	again := l.attempt != "" && d.Pass == l.pass
	if again && !l.failed {
		l.line("?", "the answer broke off", "")
	}
	l.pass, l.attempt, l.start, l.over, l.failed = d.Pass, d.Attempt, d.Offset, false, false
	l.text.Reset()
	said := "model says"
	if again {
		said = saysAgain
	}
	l.line("·", said, "")
	if d.Offset > 0 {
		l.print("… ")
	}
}

// gap shows that a part of the text is missing.
func (l *liveText) gap(d *protocol.Draft) {
	l.print(" … ")
	l.start = d.Offset
	l.text.Reset()
}

// line prints a line in the form of an event.
func (l *liveText) line(mark, word, text string) {
	l.close()
	if mark == "?" {
		mark = l.color.yellow(mark)
	} else {
		mark = l.color.dim(mark)
	}
	if text = oneLine(text, 300); text != "" {
		word += " · " + text
	}
	l.write(fmt.Sprintf("%s %-8s %s %s\n", l.color.dim(time.Now().Format(time.TimeOnly)), passWord(l.pass), mark, word))
}

// print prints text, indented.
func (l *liveText) print(text string) {
	var b strings.Builder
	for piece := range strings.Lines(safeText(text)) {
		if !l.open && piece != "\n" {
			b.WriteString("  ")
		}
		b.WriteString(piece)
		l.open = !strings.HasSuffix(piece, "\n")
	}
	l.write(b.String())
}

// close ends the line that is being printed.
func (l *liveText) close() {
	if l.open {
		l.write("\n")
	}
	l.open = false
}

// settle completes the text with the events of a page and returns the events that remain to be printed.
func (l *liveText) settle(events []jig.Event) []jig.Event {
	left := make([]jig.Event, 0, len(events))
	for _, e := range events {
		if e, rest := l.complete(e); rest {
			left = append(left, e)
		}
	}
	return left
}

// turnData is the part of an event's data that holds the text of a turn.
type turnData struct {
	Role      string `json:"role"`
	Text      string `json:"text"`
	Answer    string `json:"answer"`
	Truncated bool   `json:"truncated"`
}

// complete prints the rest of the text that an event has. It returns the event without the text; left is false if nothing else is in it.
func (l *liveText) complete(e jig.Event) (_ jig.Event, left bool) {
	ends := []jig.EventType{jig.EventSessionCompleted, jig.EventSessionFailed, jig.EventSessionCanceled}
	var d turnData
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) != nil {
		return e, true
	}
	said := e.Type == jig.EventMessageAdded && d.Role == "assistant"
	if l.attempt == "" || e.Pass != l.pass {
		if said {
			l.stored = max(l.stored, e.Pass)
		}
		return e, true
	}
	switch {
	case said:
		return e, !l.matches(d.Text, d.Truncated)
	case slices.Contains(ends, e.Type) && d.Answer != "":
		if !l.matches(d.Answer, d.Truncated) {
			l.replace(d.Answer, d.Truncated)
		}
		return withoutAnswer(e), true
	case strings.HasPrefix(string(e.Type), "tool."): // the turn that is stored has no text
		l.matches("", false)
	}
	return e, true
}

// matches ends the text with what the stored one has in addition. It reports whether what was printed is a part of the stored text, and says so
// if it is not, because the turn comes from another attempt. truncated means that stored is only the beginning of the text.
func (l *liveText) matches(stored string, truncated bool) bool {
	printed := l.text.String()
	known := stored[min(l.start, len(stored)):]
	l.stored, l.attempt = l.pass, ""
	switch {
	case strings.HasPrefix(known, printed):
		l.print(known[len(printed):])
	case !truncated || !strings.HasPrefix(printed, known):
		if !l.failed {
			l.line("?", "the answer above was not used", "")
		}
		return false
	}
	if truncated && !l.over {
		l.print(" …")
	}
	l.close()
	return true
}

// replace prints the answer of an attempt that was not printed while it was written.
func (l *liveText) replace(answer string, truncated bool) {
	said := "model says"
	if l.failed {
		said = saysAgain
	}
	l.line("·", said, "")
	l.print(answer)
	if truncated {
		l.print(" …")
	}
	l.close()
}

// withoutAnswer returns the event of an end without its answer.
func withoutAnswer(e jig.Event) jig.Event {
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil {
		return e
	}
	delete(data, "answer")
	if raw, err := json.Marshal(data); err == nil {
		e.Data = raw
	}
	return e
}
