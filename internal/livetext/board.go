package livetext

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// maxForeign is how many texts are kept, not counting those that models write for this process.
	maxForeign = 1000
	// silentFor is how long a text of another process is kept that does not change, and endedFor how long one is kept whose request has ended.
	silentFor = 15 * time.Minute
	endedFor  = 2 * time.Minute
)

// Board holds the texts that models are writing, those of this process and those that other processes have sent. It is safe for concurrent
// use.
type Board struct {
	// changed is called after the text of a session has changed, without a lock. over reports that its request has ended.
	changed func(s Session, over bool)
	now     func() time.Time

	mu    sync.Mutex
	texts map[Session]*text
}

// NewBoard returns an empty board, which calls changed after each change.
func NewBoard(changed func(s Session, over bool)) *Board {
	return &Board{changed: changed, now: time.Now, texts: map[Session]*text{}}
}

// Writer takes the text of one request that this process sends to a model. Its methods do nothing if it is nil.
type Writer struct {
	board   *Board
	session Session
	pass    int
	text    *text
}

// Write returns a writer for a request to a model. A session has the text of its latest request only.
func (b *Board) Write(s Session, pass int) *Writer { return &Writer{board: b, session: s, pass: pass} }

// Add adds text as it arrives.
func (w *Writer) Add(s string) {
	if w == nil || s == "" {
		return
	}
	b := w.board
	b.mu.Lock()
	if w.text == nil {
		w.text = &text{pass: w.pass, attempt: rand.Text(), own: true}
		b.put(w.session, w.text)
	}
	current := b.texts[w.session] == w.text // otherwise another process asks the model again
	if current {
		w.text.add(s, b.now())
	}
	b.mu.Unlock()
	if current {
		b.changed(w.session, false)
	}
}

// End ends the text: with a complete answer, or with the reason why there is none.
func (w *Writer) End(failed string) {
	if w == nil || w.text == nil {
		return
	}
	b := w.board
	b.mu.Lock()
	t := w.text
	t.over, t.failed, t.changed = true, clip.Bytes(failed, failedBytes), b.now()
	if b.texts[w.session] == t && failed == "" && !t.read {
		delete(b.texts, w.session) // nobody is interested
	}
	b.mu.Unlock()
	b.changed(w.session, true)
}

// put makes a text the latest of its session and drops old texts that no model writes for this process any more. The board is locked.
func (b *Board) put(s Session, t *text) {
	t.succeeds(b.texts[s])
	b.texts[s] = t
	oldest, foreign := s, 0
	for other, o := range b.texts {
		if o.own {
			continue
		}
		age := b.now().Sub(o.changed)
		if other != s && (age > silentFor || o.over && age > endedFor) {
			delete(b.texts, other)
			continue
		}
		foreign++
		if other != s && (oldest == s || o.changed.Before(b.texts[oldest].changed)) {
			oldest = other
		}
	}
	if foreign > maxForeign && oldest != s {
		delete(b.texts, oldest)
	}
}

// Take adds a piece from another process.
func (b *Board) Take(p Piece) {
	b.mu.Lock()
	took := b.take(p)
	b.mu.Unlock()
	if took {
		b.changed(p.Session, false)
	}
}

func (b *Board) take(p Piece) bool {
	t := b.texts[p.Session]
	if t == nil || t.attempt != p.Attempt {
		if p.Over && p.Failed == "" || t != nil && (p.Pass < t.pass || slices.Contains(t.past, p.Attempt)) {
			return false
		}
		t = &text{pass: p.Pass, attempt: p.Attempt, start: p.Offset, changed: b.now()}
		b.put(p.Session, t)
	}
	if t.own {
		return false // a notification of this process came back
	}
	t.merge(p, b.now())
	return true
}

// After returns the text of a session from a position on; nil if there is nothing new.
func (b *Board) After(s Session, from protocol.TextPosition) *protocol.Draft {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.texts[s]; t != nil {
		return t.after(from)
	}
	return nil
}

// Writing reports whether a model writes for this process, or has ended and others may not know it.
func (b *Board) Writing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.texts {
		if t.own {
			return true
		}
	}
	return false
}

// Due returns the next pieces of own texts to send, at most as many as given, for the sessions that are wanted: one of each text in turn. more
// reports that some may be left.
func (b *Board) Due(wanted func(Session) bool, most int) (pieces []Piece, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for more = true; more; {
		more = false
		for s, t := range b.texts {
			if len(pieces) >= most {
				return pieces, true
			}
			if !t.own {
				continue
			}
			if p, ok := t.next(s); ok && wanted(s) {
				t.sent, t.read = t.sent+len(p.Text), true
				pieces = append(pieces, p)
				if !p.Over {
					more = true
					continue
				}
			}
			t.own = !t.over // followers in this process may still need the rest
		}
	}
	return pieces, false
}

// Resend has the own texts of some sessions sent again from their beginning.
func (b *Board) Resend(chosen func(Session) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, t := range b.texts {
		if t.own && chosen(s) {
			t.sent = t.start
		}
	}
}

// Forget drops the texts of other processes, because pieces may have been missed. Their senders send them again.
func (b *Board) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, t := range b.texts {
		if !t.own {
			delete(b.texts, s)
		}
	}
}
