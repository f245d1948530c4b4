package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/stored"
)

// sessionRow is a row of sessions.
type sessionRow struct {
	jig.Session

	AnswerArtifact string
}

// callRow is a row of calls.
type callRow struct {
	jig.Call

	Attempt string
	Result  *storedResult
}

// storedResult is a call's result as its column stores it. It adds the fields that the JSON of an error leaves out.
type storedResult struct {
	jig.ToolResult

	NotExecuted bool `json:"not_executed,omitempty"`
}

// call returns the call as it is stored. A call that failed before its first attempt certainly had no effect.
func (r *callRow) call() jig.Call {
	c := r.Call
	if r.Result == nil {
		return c
	}
	c.Result = &r.Result.ToolResult
	if e := c.Result.Error; e != nil {
		e.NotExecuted = r.Result.NotExecuted || r.Fence == 0
	}
	return c
}

func calls(rows []callRow) []jig.Call {
	list := make([]jig.Call, len(rows))
	for i := range rows {
		list[i] = rows[i].call()
	}
	return list
}

// approvalRow is a row of approvals. Its JSON is decoded when it is needed, because an approval that somebody has made unreadable must not keep
// its call from being withdrawn.
type approvalRow struct {
	jig.Pending

	ID             int64
	Status         approval.Status
	ApprovedDigest string
	NoticedAt      time.Time
	DecidedBy      string
	Claimed        bool

	Reasons, Terms, Votes, Delegations, Question, Preview, Askers, Edits []byte
}

func (r *approvalRow) pending() (jig.Pending, error) {
	p := r.Pending
	err := errors.Join(
		decode(r.Reasons, &p.Reasons), decode(r.Terms, &p.Terms), decode(r.Votes, &p.Votes), decode(r.Delegations, &p.Delegations),
		decode(r.Question, &p.Question), decode(r.Preview, &p.Preview), decode(r.Askers, &p.Askers), decode(r.Edits, &p.Edits),
	)
	if err != nil {
		return p, err
	}
	for i := range p.Edits {
		p.Edits[i].At = p.Edits[i].At.UTC()
	}
	seen := r.NoticedAt
	if seen.IsZero() {
		seen = p.RequestedAt
	}
	p.NextAt = approval.NextAt(p, seen)
	return p, nil
}

// listed returns the approval as lists show it.
func (r *approvalRow) listed() (jig.Pending, error) {
	p, err := r.pending()
	p.Edits = approval.ShortEdits(p.Edits)
	return p, err
}

func pendings(rows []approvalRow) ([]jig.Pending, error) {
	list := make([]jig.Pending, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].listed(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// turnRow is a turn with its body, which comes from the row or from an artifact.
type turnRow struct {
	Pass int
	Body chat.Turn
}

// countRow is a count of calls by status.
type countRow struct {
	Status jig.CallStatus
	Count  int
}

func counts(rows []countRow) map[jig.CallStatus]int {
	m := make(map[jig.CallStatus]int, len(rows))
	for _, r := range rows {
		m[r.Status] = r.Count
	}
	return m
}

// encode encodes a value as JSON that any JSON column accepts.
func encode(v any) ([]byte, error) {
	return stored.Encode(v)
}

// encodeIf encodes a value for a nullable column: nil unless the value is given.
func encodeIf(given bool, v any) ([]byte, error) {
	if !given {
		return nil, nil
	}
	return encode(v)
}

// encodeReadable encodes a value as JSON for a column of which queries read members.
func encodeReadable(v any) ([]byte, error) {
	b, err := encode(v)
	return stored.Readable(b), err
}

// text returns s in a form that a text column accepts: valid UTF-8 without NUL.
func text(s string) string { return stored.Clean(s) }

// texts applies text to every string.
func texts(list []string) []string {
	clean := make([]string, len(list))
	for i, s := range list {
		clean[i] = text(s)
	}
	return clean
}

// optional returns a JSON value for a nullable column: nil when it is empty.
func optional(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	return stored.Valid(raw)
}

// moment returns a time for a nullable column: nil when it is zero.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// details is the data of an event. It holds strings, numbers and checked JSON. Values that cannot be encoded are left out, so that
// they never prevent the event from being stored.
type details map[string]any

func (d details) json() []byte {
	for key, v := range d {
		raw, ok := v.(json.RawMessage)
		if ok && (len(raw) == 0 || !json.Valid(raw)) || v == "" || v == nil || v == false {
			delete(d, key)
		}
	}
	b, err := encode(d)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// log collects events on their way to the store, as columns.
type log struct {
	types  []string
	passes []int32
	calls  []string
	tools  []string
	data   []string
	// audits and notices are written after the events, in the same transaction.
	audits  []audit.Entry
	notices []jig.Notice
	// ended holds the calls of an admission that have their final status already.
	ended []jig.Call
}

func (l *log) add(e jig.Event) {
	l.types = append(l.types, text(string(e.Type)))
	l.passes = append(l.passes, int32(e.Pass)) //nolint:gosec // pass numbers are small
	l.calls = append(l.calls, text(e.CallID))
	l.tools = append(l.tools, text(e.Tool))
	l.data = append(l.data, string(stored.Valid(e.Data)))
}

// join appends the contents of another log.
func (l *log) join(m *log) {
	l.types = append(l.types, m.types...)
	l.passes = append(l.passes, m.passes...)
	l.calls = append(l.calls, m.calls...)
	l.tools = append(l.tools, m.tools...)
	l.data = append(l.data, m.data...)
	l.audits = append(l.audits, m.audits...)
	l.notices = append(l.notices, m.notices...)
}

// columns returns the arguments of EventsAppend that follow tenant and session.
func (l *log) columns() []any { return []any{l.types, l.passes, l.calls, l.tools, l.data} }

func (l *log) len() int { return len(l.types) }

// record queues the session's events. last is set to the session's new event counter, or stays nil when there is no such session. The
// sessions above it hear of the calls that wait for a person.
func (t *tx) record(l *log, session string, last **int64) {
	value(t.queue("EventsAppend", append([]any{t.tenant, session}, l.columns()...)...), last)
	if a := l.asking(); a.len() > 0 {
		list(t.queue("EventsAbove", t.tenant, session, a.types, a.calls, a.tools, a.data), &t.above)
	}
}

// asking returns the events that say that a call waits for a person, in a form that jsonb accepts.
func (l *log) asking() *log {
	a := &log{}
	for i, kind := range l.types {
		switch jig.EventType(kind) { //nolint:exhaustive // the others ask nobody
		case jig.EventToolNeedsApproval, jig.EventToolOutcomeUnknown, jig.EventToolAsked, jig.EventToolEdited:
			a.add(jig.Event{Type: jig.EventType(kind), CallID: l.calls[i], Tool: l.tools[i], Data: stored.Readable([]byte(l.data[i]))})
		}
	}
	return a
}

// aboveRow is a row of the query EventsAbove: a session that got events of a session below it, with its new event counter.
type aboveRow struct {
	SessionID string
	LastSeq   int64
}

// finish records the events, then the notices and last the audit rows, whose lock must be the last that the transaction takes. It commits
// and wakes the watchers.
func (t *tx) finish(ctx context.Context, l *log, session string) error {
	var last *int64
	if l.len() > 0 {
		t.record(l, session, &last)
	}
	if err := t.tell(l); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return err
	}
	t.db.committed(t.tenant, session, last)
	return nil
}

// tell queues the notices and audit rows that belong to the events.
func (t *tx) tell(l *log) error {
	for _, n := range l.notices {
		if err := t.notice(n); err != nil {
			return err
		}
	}
	for _, e := range l.audits {
		if err := t.audit(e); err != nil {
			return err
		}
	}
	return nil
}

// committed tells the watchers of a session that its log has grown.
func (db *DB) committed(tenant, session string, last *int64) {
	if last != nil {
		db.hub.committedHere(topicKey{tenant, session}, *last)
	}
}

// resultColumns holds a tool result as the columns of a call's row.
type resultColumns struct {
	body    []byte
	summary string
	err     []byte
}

func columnsOf(r jig.ToolResult) (resultColumns, error) {
	body, err := encode(storedResult{ToolResult: r, NotExecuted: r.Error != nil && r.Error.NotExecuted})
	if err != nil {
		return resultColumns{}, err
	}
	c := resultColumns{body: body, summary: text(r.Summary)}
	if r.Error != nil {
		c.err, err = encodeReadable(r.Error)
	}
	return c, err
}
