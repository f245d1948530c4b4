package livetext_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
)

var somebody = livetext.Session{Tenant: "acme", ID: "ses_1"}

func everything(livetext.Session) bool { return true }
func nothing(livetext.Session) bool    { return false }

func newBoard() *livetext.Board { return livetext.NewBoard(func(livetext.Session, bool) {}) }

// pass sends what is due on one board to another, as notifications would.
func pass(t *testing.T, from, to *livetext.Board) (pieces []livetext.Piece) {
	t.Helper()
	seal, err := livetext.NewSeal([]byte(strings.Repeat("k", livetext.KeyBytes)))
	require.NoError(t, err)
	for more := true; more; {
		var due []livetext.Piece
		due, more = from.Due(everything, 2)
		for _, payload := range seal.Close(due, 7900) {
			require.LessOrEqual(t, len(payload), 7900)
			opened, err := seal.Open(payload)
			require.NoError(t, err)
			for _, p := range opened {
				require.True(t, utf8.ValidString(p.Text))
				to.Take(p)
			}
			pieces = append(pieces, opened...)
		}
	}
	return pieces
}

// rest reads what follows a position.
func rest(b *livetext.Board, from protocol.TextPosition) protocol.Draft {
	if d := b.After(somebody, from); d != nil {
		return *d
	}
	return protocol.Draft{}
}

func TestBoard_TextReachesAnotherProcessOnce(t *testing.T) {
	t.Parallel()
	here, there := newBoard(), newBoard()
	w := here.Write(somebody, 3)
	w.Add("Good ")
	pass(t, here, there)
	w.Add("morning, ")
	require.Equal(t, "Good morning, ", rest(here, protocol.TextPosition{}).Text, "this process sees it at once")
	first := rest(there, protocol.TextPosition{})
	require.Equal(t, "Good ", first.Text)
	require.Equal(t, 3, first.Pass)
	require.Nil(t, there.After(somebody, first.End()))
	require.Nil(t, there.After(somebody, protocol.TextPosition{Pass: 4}), "the follower wants a later pass")
	w.Add("Añá")
	require.Len(t, pass(t, here, there), 1)
	second := rest(there, first.End())
	require.Equal(t, "morning, Añá", second.Text)
	require.Equal(t, 5, second.Offset)
	require.Empty(t, pass(t, here, there), "nothing is sent twice")
	require.Nil(t, there.After(livetext.Session{Tenant: "other", ID: "ses_1"}, protocol.TextPosition{}), "another tenant's session")
}

// Whoever has begun to read an answer gets the rest of it. Others find it in the log.
func TestBoard_EndOfAnAnswer(t *testing.T) {
	t.Parallel()
	here, there := newBoard(), newBoard()
	w := here.Write(somebody, 1)
	w.Add("Hello")
	pass(t, here, there)
	begun := rest(there, protocol.TextPosition{}).End()
	w.Add(" again")
	w.End("")
	pass(t, here, there)
	require.False(t, here.Writing())
	for _, b := range []*livetext.Board{here, there} {
		require.Nil(t, b.After(somebody, protocol.TextPosition{}))
		got := rest(b, begun)
		require.Equal(t, " again", got.Text)
		require.True(t, got.Over)
		require.Empty(t, got.Failed)
		require.Nil(t, b.After(somebody, got.End()))
		known := got.End()
		known.Over = false
		require.True(t, rest(b, known).Over, "a follower that has the text learns that it is complete")
	}

	w = here.Write(somebody, 2)
	w.Add("Nobody reads this")
	w.End("")
	require.False(t, here.Writing())
	require.Empty(t, pass(t, here, there))
	require.Zero(t, here.Len())
}

// A request that fails is told with its reason, once, and the next request begins anew.
func TestBoard_FailureIsTold(t *testing.T) {
	t.Parallel()
	here, there := newBoard(), newBoard()
	w := here.Write(somebody, 1)
	w.Add("The answer is")
	pass(t, here, there)
	w.Add(" for")
	w.End("the provider broke off")
	pass(t, here, there)
	for _, b := range []*livetext.Board{here, there} {
		got := rest(b, protocol.TextPosition{})
		require.Equal(t, "The answer is for", got.Text)
		require.Equal(t, "the provider broke off", got.Failed)
		require.Nil(t, b.After(somebody, got.End()), "the follower knows")
		before := got.End()
		before.Over = false
		require.Equal(t, "the provider broke off", rest(b, before).Failed, "a follower that has the text learns of the failure")
	}
	require.False(t, here.Writing())

	late := livetext.Piece{Session: somebody, Pass: 1, Attempt: rest(there, protocol.TextPosition{}).Attempt, Offset: 17, Text: " late"}
	again := there.Write(somebody, 1)
	again.Add("The answer is 42")
	there.Take(late)
	got := rest(there, protocol.TextPosition{Attempt: late.Attempt, Offset: 17, Over: true})
	require.Equal(t, "The answer is 42", got.Text, "a position in another attempt does not count")
	require.NotEqual(t, late.Attempt, got.Attempt)
	require.Empty(t, got.Failed)
	pass(t, there, here)
	require.Equal(t, "The answer is 42", rest(here, protocol.TextPosition{}).Text)
}

// A process that begins to listen later gets the whole text, and one that misses a piece sees where the next one belongs.
func TestBoard_LateListenersAndGaps(t *testing.T) {
	t.Parallel()
	here, there := newBoard(), newBoard()
	w := here.Write(somebody, 1)
	w.Add("one ")
	pieces, more := here.Due(nothing, 10)
	require.Empty(t, pieces)
	require.False(t, more)
	pass(t, here, newBoard())
	w.Add("two ")
	pass(t, here, there)
	got := rest(there, protocol.TextPosition{})
	require.Equal(t, "two ", got.Text)
	require.Equal(t, 4, got.Offset)
	here.Resend(nothing)
	require.Empty(t, pass(t, here, there))
	here.Resend(everything)
	pass(t, here, there)
	require.Equal(t, "one two ", rest(there, protocol.TextPosition{}).Text)
	there.Forget()
	require.Nil(t, there.After(somebody, protocol.TextPosition{}))
	here.Forget()
	require.NotNil(t, here.After(somebody, protocol.TextPosition{}), "own texts stay")
}

// Only the end of a very long text is kept, cut between characters, and many pieces are sent in several rounds.
func TestBoard_LongText(t *testing.T) {
	t.Parallel()
	here, there := newBoard(), newBoard()
	w := here.Write(somebody, 1)
	whole := strings.Repeat("häßlich ", 40_000)
	for piece := range strings.SplitSeq(strings.ReplaceAll(whole, " ", " |"), "|") {
		w.Add(piece)
	}
	pass(t, here, there)
	first := rest(there, protocol.TextPosition{})
	require.Positive(t, first.Offset)
	require.LessOrEqual(t, len(first.Text), 64<<10)
	var read strings.Builder
	for d := first; d.Text != ""; d = rest(there, d.End()) {
		require.True(t, utf8.ValidString(d.Text))
		require.Equal(t, first.Offset+read.Len(), d.Offset)
		read.WriteString(d.Text)
	}
	require.Equal(t, whole[first.Offset:], read.String())
}

// Texts of other processes that end without a word do not pile up.
func TestBoard_ForeignTextsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBoard()
	for i := range 3000 {
		b.Take(livetext.Piece{Session: livetext.Session{Tenant: "acme", ID: strings.Repeat("x", i)}, Pass: 1, Attempt: "a", Text: "text"})
	}
	require.LessOrEqual(t, b.Len(), 1001)
	later := time.Now().Add(time.Hour)
	b.SetClock(func() time.Time { return later })
	b.Take(livetext.Piece{Session: somebody, Pass: 1, Attempt: "a", Text: "text"})
	require.Equal(t, 1, b.Len())
}

func TestWriter_ReportsChanges(t *testing.T) {
	t.Parallel()
	var changed []bool
	b := livetext.NewBoard(func(s livetext.Session, over bool) { changed = append(changed, over) })
	w := b.Write(somebody, 1)
	w.Add("")
	require.Empty(t, changed)
	w.Add("a")
	w.End("")
	require.Equal(t, []bool{false, true}, changed)
	var none *livetext.Writer
	none.Add("a")
	none.End("")
}

func TestSeal_RefusesForeignPayloads(t *testing.T) {
	t.Parallel()
	one, err := livetext.NewSeal([]byte(strings.Repeat("1", livetext.KeyBytes)))
	require.NoError(t, err)
	other, err := livetext.NewSeal([]byte(strings.Repeat("2", livetext.KeyBytes)))
	require.NoError(t, err)
	payload := one.Close([]livetext.Piece{{Session: somebody, Attempt: "a", Text: "a secret text"}}, 7900)[0]
	require.NotContains(t, payload, "secret")
	_, err = other.Open(payload)
	require.Error(t, err)
	_, err = one.Open(payload[:len(payload)-4] + "AAAA")
	require.Error(t, err)
	_, err = one.Open("ses_1 acme 7")
	require.Error(t, err)
	_, err = livetext.NewSeal([]byte("short"))
	require.Error(t, err)
}

func FuzzDecode(f *testing.F) {
	f.Add(livetext.Encode([]livetext.Piece{{Session: somebody, Pass: 1, Attempt: "a", Offset: 7, Text: "text", Over: true, Failed: "no"}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		pieces, err := livetext.Decode(b)
		if err != nil {
			return
		}
		again, err := livetext.Decode(livetext.Encode(pieces))
		require.NoError(t, err)
		require.Equal(t, pieces, again)
		board := newBoard()
		for _, p := range pieces {
			board.Take(p)
			board.After(p.Session, protocol.TextPosition{Attempt: p.Attempt, Offset: p.Offset})
		}
	})
}
