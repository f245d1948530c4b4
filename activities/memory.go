package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

const (
	// maxRemembered is how many entities the working memory holds. maxOfList is how many of them one list in a result can add.
	maxRemembered, maxOfList = 20, 3
	// maxOlderCalls is how many calls from before the summary are searched.
	maxOlderCalls = 200
	// maxNamedID and maxNamedTitle are limits in bytes. Longer ids are ignored.
	maxNamedID, maxNamedTitle = 128, 120
	// namedKey is the key under which the preview of a large result lists the entities that the complete result names.
	namedKey = "named"
)

// remembered is an entity that was named in the result of a call.
type remembered struct {
	ID    string `json:"entity_id"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
	// Call and Tool are the latest call that named the entity, and its tool.
	Call string `json:"-"`
	Tool string `json:"-"`
}

// namingKeys returns the keys under which a result names entities, in the order in which they are searched. kind is the type of an object
// under the key that names no type itself.
func namingKeys() []struct{ key, kind string } {
	return []struct{ key, kind string }{
		{"entity", ""},
		{"page", "page"},
		{"post", "post"},
		{"section", "section"},
		{"image", "image"},
		{"entities", ""},
		{"pages", "page"},
		{"matches", ""},
		{"hits", ""},
	}
}

// namedIn returns the entities in a result's data: the object itself if it has an entity_id, the object under each key, and the
// first maxOfList objects of each list.
func namedIn(data json.RawMessage) []remembered {
	object := fieldsOf(data)
	if object == nil {
		return nil
	}
	var found []remembered
	var kept []json.RawMessage
	if _, short := object["truncated"]; short && json.Unmarshal(object[namedKey], &kept) == nil {
		for _, one := range kept {
			if e, ok := namedBy(fieldsOf(one), ""); ok {
				found = append(found, e)
			}
		}
		return found
	}
	if _, ok := object["entity_id"]; ok {
		if e, ok := namedBy(object, ""); ok {
			found = append(found, e)
		}
	}
	for _, at := range namingKeys() {
		var list []json.RawMessage
		if json.Unmarshal(object[at.key], &list) != nil {
			list = []json.RawMessage{object[at.key]}
		}
		for _, one := range list[:min(len(list), maxOfList)] {
			if e, ok := namedBy(fieldsOf(one), at.kind); ok {
				found = append(found, e)
			}
		}
	}
	return found
}

// fieldsOf returns the fields of a JSON object, or nil for anything else.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(trimmed, &object) != nil {
		return nil
	}
	return object
}

// namedBy reads an object as an entity. It needs an id and a title, name or path; with an entity_id the title may be missing.
func namedBy(object map[string]json.RawMessage, kind string) (remembered, bool) {
	e := remembered{ID: idIn(object["entity_id"]), Type: kindIn(object["type"])}
	known := e.ID != ""
	if e.Type == "" {
		e.Type = kind
	}
	for _, key := range []string{"id", kind + "_id"} {
		if e.ID == "" {
			e.ID = idIn(object[key])
		}
	}
	for _, key := range []string{"title", "name", "path"} {
		if e.Title == "" {
			e.Title = wordIn(object[key], maxNamedTitle)
		}
	}
	return e, e.ID != "" && (known || e.Title != "")
}

// idIn returns an id: a string without blanks, or a whole number.
func idIn(raw json.RawMessage) string {
	var id string
	var number int64
	switch {
	case json.Unmarshal(raw, &number) == nil && string(raw) != "null":
		return string(raw)
	case json.Unmarshal(raw, &id) != nil:
		return ""
	}
	return onePiece(id)
}

// kindIn returns the name of a type. It is shown without quotes, so anything but a single word becomes "".
func kindIn(raw json.RawMessage) string {
	var kind string
	if json.Unmarshal(raw, &kind) != nil {
		return ""
	}
	return onePiece(kind)
}

// onePiece returns text if it has only printable characters, no blanks, and at most maxNamedID bytes; otherwise "".
func onePiece(text string) string {
	if len(text) > maxNamedID || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return ""
	}
	return text
}

// wordIn returns a string on one line, cut to n bytes. It returns "" for anything but a string.
func wordIn(raw json.RawMessage, n int) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return jig.Cut(strings.Join(strings.Fields(text), " "), n)
}

// memory collects the entities that calls named, the latest first.
type memory struct {
	list []remembered
	// at maps entities to indexes in list. The index of a deleted entity is -1.
	at map[string]int
}

func newMemory(exchanges []chat.Exchange) memory {
	m := memory{at: map[string]int{}}
	for _, x := range slices.Backward(exchanges) {
		for _, c := range slices.Backward(x.Calls) {
			m.add(c)
		}
	}
	return m
}

func (m *memory) full() bool { return len(m.list) >= maxRemembered }

// add adds the entities that a call's result names. It is called for the latest call first: an entity that a later call named is not added
// again, but gets its title from the earlier call if it has none.
func (m *memory) add(c jig.Call) {
	if c.Result == nil || !c.Result.Success || c.Status == jig.CallDuplicate {
		return
	}
	for _, e := range namedIn(c.Result.Data) {
		e.Call, e.Tool = c.ID, c.Tool
		asked := fieldsOf(c.Input) // a tool that creates an entity returns only its id
		if e.Type == "" {
			e.Type = kindIn(asked["type"])
		}
		if e.Title == "" && idIn(fieldsOf(c.Result.Data)["entity_id"]) == e.ID {
			e.Title = wordIn(asked["title"], maxNamedTitle)
		}
		key := e.ID
		if !strings.HasPrefix(key, jig.EntityPrefix) { // other ids are unique only within their type
			key = e.Type + " " + e.ID
		}
		i, known := m.at[key]
		switch {
		case known && i >= 0 && m.list[i].Title == "":
			m.list[i].Title = e.Title
		case !known && strings.HasSuffix(c.Tool, ".delete"): // it is deleted, whatever earlier calls said
			m.at[key] = -1
		case !known && !m.full():
			m.at[key] = len(m.list)
			m.list = append(m.list, e)
		}
	}
}

// remember returns the working memory of a session: the entities named in the exchanges, then those that earlier calls named.
func (a *Activities) remember(ctx context.Context, session jig.Session, exchanges []chat.Exchange) (memory, error) {
	m := newMemory(exchanges)
	if session.SummaryThrough == 0 || m.full() {
		return m, nil
	}
	older, err := a.Store.OlderCalls(ctx, session.Tenant, session.ID, session.SummaryThrough, maxOlderCalls)
	for _, c := range older {
		m.add(c)
	}
	return m, err
}

// note returns the block of a prompt that shows the memory, or "" if it is empty. Titles are quoted because they are data.
func (m *memory) note() string {
	if len(m.list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Working memory: entities named in results, latest first. The ids are still valid; read an entity again if it may have changed.")
	for _, e := range m.list {
		fmt.Fprintf(&b, "\n- %s", e.ID)
		if e.Type != "" {
			b.WriteString(" " + e.Type)
		}
		if e.Title != "" {
			fmt.Fprintf(&b, " %q", e.Title)
		}
		fmt.Fprintf(&b, " (%s %s)", e.Call, e.Tool)
	}
	return b.String()
}

// withMemory puts the working memory after the exchanges, so that its changes do not invalidate the provider's prompt cache.
func withMemory(m memory, exchanges []chat.Exchange) []chat.Exchange {
	note := m.note()
	if note == "" {
		return exchanges
	}
	return append(exchanges, chat.Exchange{Messages: []chat.Message{{Role: chat.RoleUser, Text: note}}})
}
