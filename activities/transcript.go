package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// transcriptCalls is how many calls of a pass are read at once.
	transcriptCalls = 50
	// transcriptReads limits how many passes, or parts of passes, one page reads.
	transcriptReads = 50
)

// position is where a page of a transcript begins: the pass, and how many of its texts and of its calls earlier pages have.
type position struct {
	pass, texts, calls int
}

func (p position) String() string { return fmt.Sprintf("%d.%d.%d", p.pass, p.texts, p.calls) }

func positionOf(cursor string) (position, error) {
	p := position{pass: 1}
	if cursor == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(cursor, "%d.%d.%d", &p.pass, &p.texts, &p.calls); err != nil || p.pass < 1 || p.texts < 0 || p.calls < 0 {
		return p, jig.Errorf(jig.CodeInvalidInput, "the cursor is not valid").WithField("cursor")
	}
	return p, nil
}

// Transcript returns a page of what was asked, said and done in a session, oldest first.
func (a *Activities) Transcript(ctx context.Context, in protocol.TranscriptRequest) (_ protocol.Transcript, err error) {
	defer asTemporal(&err)
	page := protocol.Transcript{SessionID: in.SessionID, ClientID: jig.ClientID(in.SessionID), Entries: []protocol.TranscriptEntry{}}
	at, err := positionOf(in.Cursor)
	if err != nil {
		return page, err
	}
	size := 0
	for range transcriptReads {
		read, err := a.Store.ReadPass(ctx, in.Tenant, in.SessionID, at.pass, at.calls, transcriptCalls)
		if err != nil {
			return page, err
		}
		if in.Cursor == "" && page.Opening == nil {
			page.Opening = openingOf(read.Session)
			size += sizeOf(page.Opening)
		}
		for _, entry := range entriesOf(read, at.texts) {
			if size += sizeOf(entry); size > pageBytes && len(page.Entries) > 0 {
				page.Next = at.String()
				return page, nil
			}
			page.Entries = append(page.Entries, entry)
			if entry.Kind == protocol.EntryCall {
				at.calls++
			} else {
				at.texts++
			}
		}
		switch {
		case len(read.Exchange.Calls) == transcriptCalls: // the pass may have more calls
		case at.pass > read.Session.Pass: // only messages can have come for this pass
			return page, nil
		default:
			at = position{pass: at.pass + 1}
		}
	}
	page.Next = at.String()
	return page, nil
}

// entriesOf returns the entries of a pass without the first texts, which earlier pages have.
func entriesOf(read ledger.PassRead, texts int) []protocol.TranscriptEntry {
	entries := textEntries(read)
	entries = entries[min(texts, len(entries)):]
	for _, call := range read.Exchange.Calls {
		entries = append(entries, callEntry(call))
	}
	return entries
}

// openingOf returns what a session was started with.
func openingOf(s jig.Session) *protocol.Opening {
	o := &protocol.Opening{
		Agent: s.Agent.Name, Model: s.Agent.Model, RequestedBy: s.Principal.ID, At: s.CreatedAt,
		Instructions: jig.Cut(s.Agent.Instructions, jig.InlineBytes),
	}
	input, cut := shownJSON(s.Input, jig.InlineBytes)
	o.Input, o.Truncated = input, cut || len(s.Agent.Instructions) > jig.InlineBytes
	return o
}

// textEntries returns the messages and the turn of a pass.
func textEntries(read ledger.PassRead) []protocol.TranscriptEntry {
	pass := read.Exchange.Pass
	var entries []protocol.TranscriptEntry
	for _, m := range read.Exchange.Messages {
		entry := textEntry(protocol.EntryMessage, pass, m.Text)
		entry.By, entry.At = cmp.Or(m.By, string(m.Role)), m.At
		if m.Role == chat.RoleAssistant {
			entry.Kind = protocol.EntryTurn
		}
		entries = append(entries, entry)
	}
	if turn := read.Exchange.Turn; turn != nil && turn.Text != "" {
		entry := textEntry(protocol.EntryTurn, pass, turn.Text)
		entry.Model = turn.Asked
		if read.TurnAt != nil {
			entry.At = *read.TurnAt
		}
		entries = append(entries, entry)
	}
	return entries
}

func textEntry(kind protocol.EntryKind, pass int, text string) protocol.TranscriptEntry {
	return protocol.TranscriptEntry{Kind: kind, Pass: pass, Text: jig.Cut(text, jig.InlineBytes), Truncated: len(text) > jig.InlineBytes}
}

// callEntry returns a call with previews of its input and its result.
func callEntry(call jig.Call) protocol.TranscriptEntry {
	entry := protocol.TranscriptEntry{
		Kind: protocol.EntryCall, Pass: call.Pass, At: call.CreatedAt, Call: call.ID, Tool: call.Tool, EditedBy: call.EditedBy,
		Status: call.Status, Child: call.Child,
	}
	entry.Input, entry.Truncated = shownJSON(call.Input, jig.ExcerptBytes)
	if call.Result == nil {
		return entry
	}
	data, cut := shownJSON(call.Result.Data, jig.ExcerptBytes)
	entry.Summary, entry.Result, entry.Error = jig.Cut(call.Result.Summary, jig.ExcerptBytes), data, call.Result.Error
	entry.Truncated = entry.Truncated || cut
	return entry
}

// shownJSON returns a JSON value in at most n bytes, with long values cut. A text that is not JSON becomes a JSON string.
func shownJSON(raw []byte, n int) (shown json.RawMessage, cut bool) {
	if len(raw) == 0 {
		return nil, false
	}
	if !json.Valid(raw) {
		text, err := json.Marshal(jig.Cut(string(raw), n))
		if err != nil {
			return nil, true
		}
		return text, len(raw) > n
	}
	return jig.Excerpt(raw, n)
}
