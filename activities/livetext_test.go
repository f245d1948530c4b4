package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
)

// writing is a model that does something while it answers.
type writing struct {
	anyModel
	during func(progress func(string))
	turn   chat.Turn
	err    error
}

func (m *writing) Answer(_ context.Context, _ chat.Request, progress func(string)) (chat.Turn, error) {
	m.during(progress)
	return m.turn, m.err
}

// follows asks for what comes after the events so far and after a position in the text.
func (o *office) follows(t *testing.T, from protocol.TextPosition) protocol.EventsPage {
	t.Helper()
	request := protocol.EventsRequest{Tenant: o.tenant, SessionID: o.session, Wait: time.Minute, Text: &from}
	known, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 0)
	require.NoError(t, err)
	request.After = known[len(known)-1].Seq
	page, err := o.ListEvents(t.Context(), request)
	require.NoError(t, err)
	return page
}

// What the model writes reaches those who ask for it while it writes. If it breaks off, they learn why, and the next attempt begins a new text.
func TestThink_PassesTextOn(t *testing.T) {
	t.Parallel()
	m := &writing{err: jig.Errorf(jig.CodeUnavailable, "the line broke")}
	o := newOffice(t, func(o *office) { o.modelName, o.model = "openai/m", m })
	in := activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100}
	var first protocol.Draft
	m.during = func(progress func(string)) {
		progress("Half an ")
		page := o.follows(t, protocol.TextPosition{})
		require.Empty(t, page.Events)
		first = *page.Draft
		require.Equal(t, "Half an ", first.Text)
		require.Equal(t, 1, first.Pass)
		progress("answer")
		page = o.follows(t, first.End())
		require.Equal(t, "answer", page.Draft.Text)
		first = *page.Draft
	}
	_, err := o.Think(t.Context(), in)
	require.Error(t, err)
	page := o.follows(t, first.End())
	require.Equal(t, "the line broke", page.Draft.Failed)

	m.err, m.turn = nil, chat.Turn{Stop: chat.StopEnd, Text: "A whole answer"}
	m.during = func(progress func(string)) {
		progress("A whole answer")
		again := o.follows(t, page.Draft.End()).Draft
		require.Equal(t, "A whole answer", again.Text)
		require.NotEqual(t, first.Attempt, again.Attempt)
	}
	_, err = o.Think(t.Context(), in)
	require.NoError(t, err)
	view, err := o.db.Session(t.Context(), o.tenant, o.session)
	require.NoError(t, err)
	require.Equal(t, "A whole answer", view.Answer)
}
