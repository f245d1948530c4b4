package starter

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// lastTexts is how long following waits for the last texts of a child whose call has ended.
const lastTexts = 2 * time.Second

// below returns a printer for the texts of a child. It prints whole lines, each with the place of the child, because several sessions may write
// at the same time.
func (l *liveText) below(place string) *liveText {
	var line strings.Builder
	return &liveText{color: l.color, write: func(text string) {
		for piece := range strings.Lines(text) {
			line.WriteString(piece)
			if strings.HasSuffix(piece, "\n") {
				l.close()
				l.write(l.color.dim(place) + " " + line.String())
				line.Reset()
			}
		}
	}}
}

// beginChild begins to follow the texts of the session that an event names as the child of a call. above is the place of the session that has the
// event; it is empty for the session that is followed.
func (f *follower) beginChild(ctx context.Context, above string, e jig.Event) {
	var d eventData
	if f.text == nil || e.Type != jig.EventToolStarted || json.Unmarshal(e.Data, &d) != nil || d.Child == "" {
		return
	}
	f.out.Lock()
	defer f.out.Unlock()
	key := above + " " + e.CallID
	if f.children[d.Child] != nil { // a session is followed once
		return
	}
	done := make(chan struct{})
	f.children[key], f.children[d.Child] = done, done
	f.below.Go(func() {
		defer close(done)
		f.followChild(ctx, strings.TrimSpace(above+" "+oneLine(e.CallID+" → "+d.Child, 0)), d.Child)
	})
}

// awaitChild waits for the last texts of a child if an event ends its call.
func (f *follower) awaitChild(ctx context.Context, above string, e jig.Event) {
	if f.text == nil || e.Type != jig.EventToolCompleted && e.Type != jig.EventToolFailed {
		return
	}
	f.out.Lock()
	done := f.children[above+" "+e.CallID]
	f.out.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(lastTexts):
	case <-ctx.Done():
	}
}

// followChild prints the texts of a child until it has ended. An error ends that: the log of the parent says what became of the child.
func (f *follower) followChild(ctx context.Context, place, id string) {
	text := f.text.below(place)
	options := client.FollowOptions{Tenant: f.flags.tenant, SessionID: id, Text: true}
	err := f.engine.Follow(ctx, options, func(page client.EventsPage) error {
		f.out.Lock()
		if page.Draft != nil {
			text.draft(page.Draft)
		}
		events := text.settle(page.Events)
		f.out.Unlock()
		for _, event := range events {
			f.awaitChild(ctx, place, event)
			if speaks(event) {
				f.out.Lock()
				text.close()
				text.write(f.eventLine(text.color, event) + "\n")
				f.out.Unlock()
			}
			f.beginChild(ctx, place, event)
		}
		return nil
	})
	f.out.Lock()
	defer f.out.Unlock()
	text.close()
	if err != nil && ctx.Err() == nil {
		text.write("its texts cannot be followed: " + oneLine(jig.AsError(err).Message, 200) + "\n")
	}
}

// speaks reports whether an event has text of the model, or ends the session.
func speaks(e jig.Event) bool {
	var d eventData
	said := e.Type == jig.EventMessageAdded && json.Unmarshal(e.Data, &d) == nil && d.Role == "assistant"
	return said || slices.Contains([]jig.EventType{jig.EventSessionCompleted, jig.EventSessionFailed, jig.EventSessionCanceled}, e.Type)
}
