package livetext

import "time"

// Encode encodes pieces one after the other.
func Encode(pieces []Piece) (b []byte) {
	for _, p := range pieces {
		b = p.encode(b)
	}
	return b
}

// Decode exposes decode.
func Decode(b []byte) ([]Piece, error) { return decode(b) }

// Len returns how many texts are kept.
func (b *Board) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.texts)
}

// SetClock replaces the clock.
func (b *Board) SetClock(now func() time.Time) { b.now = now }
