package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/visible"
)

func itoa(n int) string { return strconv.Itoa(n) }

// shownBefore returns the values that the search attributes have when a run begins. The first run has those that the client set.
func shownBefore(in protocol.PassInput) protocol.Shown {
	if in.Pass > 0 {
		return in.Shown
	}
	shown := protocol.Shown{Status: jig.StatusWorking, Pass: 1}
	if in.Start != nil {
		shown.Agent = in.Start.Agent
	}
	return shown
}

// state returns the status to show. The session needs input if nothing goes on until a person acts, perhaps one who lifts a pause.
func (s *session) state() jig.Status {
	if s.status == jig.StatusWorking && s.idle() && (s.paused || s.stuck() > 0 || len(s.awaitingPeople()) > 0) {
		return jig.StatusInputRequired
	}
	return s.status
}

// waiting returns the calls that wait for a person, including those of running compositions and child sessions.
func (s *session) waiting() []activities.CallRef {
	list := s.awaitingPeople()
	for _, frame := range s.frames {
		if s.underWay(frame.Call) {
			list = append(list, frame.Calls...)
		}
	}
	return list
}

// waits returns the steps of running compositions and child sessions that wait for events or times.
func (s *session) waits() []jig.Wait {
	var list []jig.Wait
	for _, frame := range s.frames {
		if s.underWay(frame.Call) {
			list = append(list, frame.Waits...)
		}
	}
	return list
}

// show updates the current details, tells the parent, and updates the search attributes if people wait for the change. Each update costs a
// history event, and while the run is open a write to Temporal's visibility store, so other changes are left to showLater and showAll.
func (s *session) show(ctx workflow.Context) {
	now := s.attributes()
	workflow.SetCurrentDetails(ctx, s.details())
	s.parent.tell(ctx, s.waiting(), s.waits(), now.Status == jig.StatusInputRequired)
	switch {
	case missing(s.shown, now):
		s.upsert(ctx, now)
	case outdated(s.shown, now):
		s.showLater(ctx)
	}
}

// outdated reports whether the attributes show another state than now.
func outdated(shown, now protocol.Shown) bool {
	return now.Status != shown.Status || now.Pending != shown.Pending
}

// missing reports whether people wait for what the attributes do not show yet: more calls that wait for them, or any state but working.
func missing(shown, now protocol.Shown) bool {
	return now.Pending > shown.Pending || now.Status != shown.Status && now.Status != jig.StatusWorking
}

// showAfter is how long the search attributes may say that people are asked although they have answered. The write to the visibility store
// would delay the calls that were approved, and it is not needed if the run ends before.
const showAfter = 2 * time.Second

// showLater updates the search attributes after a while, unless they have been updated until then.
func (s *session) showLater(ctx workflow.Context) {
	if s.showing {
		return
	}
	s.showing = true
	free, _ := workflow.NewDisconnectedContext(ctx) // it outlives the pass
	workflow.GoNamed(free, "show later", func(ctx workflow.Context) {
		options := workflow.TimerOptions{Summary: "then update the status in the list of workflows"}
		_ = workflow.NewTimerWithOptions(ctx, showAfter, options).Get(ctx, nil) //nolint:errcheck // a disconnected wait cannot be canceled
		s.showing = false
		if now := s.attributes(); outdated(s.shown, now) {
			s.upsert(ctx, now)
		}
	})
}

// showAll is show for the end of a run. It updates every search attribute that has changed. Temporal writes those of a closing run only
// once.
func (s *session) showAll(ctx workflow.Context) {
	s.show(ctx)
	if now := s.attributes(); now != s.shown {
		s.upsert(ctx, now)
	}
}

// attributes returns the values that the search attributes should have.
func (s *session) attributes() protocol.Shown {
	return protocol.Shown{Agent: s.agent, Status: s.state(), Pending: len(s.waiting()), Pass: s.pass, Tools: len(s.tools)}
}

// upsert sets the search attributes that have changed.
func (s *session) upsert(ctx workflow.Context, now protocol.Shown) {
	updates := make([]temporal.SearchAttributeUpdate, 0, 5)
	if now.Agent != s.shown.Agent {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(protocol.AttrAgent).ValueSet(now.Agent))
	}
	if now.Status != s.shown.Status {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus).ValueSet(string(now.Status)))
	}
	if now.Pending != s.shown.Pending {
		updates = append(updates, temporal.NewSearchAttributeKeyInt64(protocol.AttrPending).ValueSet(int64(now.Pending)))
	}
	if now.Pass != s.shown.Pass {
		updates = append(updates, temporal.NewSearchAttributeKeyInt64(protocol.AttrPass).ValueSet(int64(now.Pass)))
	}
	if now.Tools != s.shown.Tools {
		updates = append(updates, temporal.NewSearchAttributeKeyKeywordList(protocol.AttrTool).ValueSet(s.tools))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not updated", "error", err.Error())
		return
	}
	s.shown = now
}

// view answers the query status.
func (s *session) view() (jig.SessionView, error) {
	v := jig.SessionView{
		SessionID: s.ref.SessionID, Agent: s.agent, Status: s.state(), Pass: s.pass, Pending: []jig.Pending{}, Calls: []jig.CallView{},
		Answer: s.settled.Answer, Reason: s.settled.Reason, Error: s.settled.Error,
	}
	for _, c := range s.calls {
		v.Calls = append(v.Calls, jig.CallView{Call: c.ref.ID, Tool: c.ref.Tool, Status: c.status(), Summary: c.summary})
	}
	for _, ref := range s.waiting() {
		if ref.Ask != nil {
			v.Pending = append(v.Pending, *ref.Ask)
		}
	}
	return v, nil
}

func (c *call) status() jig.CallStatus {
	if c.running {
		return jig.CallExecuting
	}
	return c.ref.State
}

// maxDetails limits the current details, in bytes. Beyond it the list of approvals is cut.
const maxDetails = 16 << 10

// details returns Markdown for the Web UI: the state of the session, and the calls that wait for a person, with the commands that answer
// them.
func (s *session) details() string {
	var b strings.Builder
	s.headline(&b)
	describeTask(&b, s.task)
	s.describeEnd(&b)
	describeWaits(&b, s.ref.SessionID, s.flags, s.waits())
	describe(&b, s.ref.SessionID, s.flags, s.waiting())
	return b.String()
}

// details returns Markdown for the Web UI: the progress of the composition, its running steps, and the calls that wait for a person.
func (c *composition) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** of call %s in session `%s`\n", strings.ToLower(c.name), c.in.Call, c.ref.SessionID)
	describeTask(&b, c.in.Task)
	if c.outcome != nil {
		fmt.Fprintf(&b, "\nEnded: %s %s\n", c.outcome.State, verbatim(c.outcome.Summary))
		return b.String()
	}
	if p := c.far; p != nil {
		fmt.Fprintf(&b, "\n%d of %d done, %d running, %d failed, %d skipped\n", p.Done, p.Total, p.Running, p.Failed, p.Skipped)
	}
	if len(c.steps) > 0 {
		steps := make([]string, len(c.steps))
		for i, step := range c.steps {
			steps[i] = verbatim(step)
		}
		fmt.Fprintf(&b, "\nRunning: %s\n", strings.Join(steps, ", "))
	}
	describeWaits(&b, c.ref.SessionID, c.flags, c.waits)
	describe(&b, c.ref.SessionID, c.flags, c.awaitingPeople())
	return b.String()
}

// describe lists the calls that wait for a person, with the commands that answer them.
func describe(b *strings.Builder, sessionID, flags string, waiting []activities.CallRef) {
	for _, ref := range waiting {
		if ref.Ask == nil {
			continue
		}
		if b.Len() > maxDetails {
			b.WriteString("\n… and more: see the query `status`\n")
			return
		}
		describeOne(b, sessionID, flags, ref)
	}
}

func describeOne(b *strings.Builder, sessionID, flags string, ref activities.CallRef) {
	ask := ref.Ask
	fmt.Fprintf(b, "\n### Call %s: %s waits for %s\n\n", ref.ID, ref.Tool, awaited(ask.Kind))
	if ask.Via != "" {
		sessionID = ask.SessionID
		fmt.Fprintf(b, "In session `%s`, which answers call %s.\n\n", sessionID, ask.Via)
	}
	changes := jig.Changes(ask.Reasons)
	describeReasons(b, "important", changes)
	describePreview(b, ask.Preview)
	describeReasons(b, "reason", ask.Reasons[len(changes):])
	fmt.Fprintf(b, "Summary: %s\n\n", verbatim(ask.Summary))
	fmt.Fprintf(b, "```json\n%s\n```\n", pretty(ask.Input))
	if ask.Truncated {
		fmt.Fprintf(b, "(cut at …; in full: `jig approvals show %s %s`)\n", sessionID, ref.ID)
	}
	b.WriteString("\n")
	describeTerms(b, *ask)
	if who := approval.Requesters(*ask); who != "" {
		fmt.Fprintf(b, "- asked for: %s\n", verbatim(who))
	}
	if !ask.ExpiresAt.IsZero() {
		fmt.Fprintf(b, "- expires %s\n", ask.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"))
	}
	fmt.Fprintf(b, "- digest `%s`\n\n```\n%s\n```\n", ask.Digest, strings.Join(answerCommands(sessionID, flags, *ask), "\n"))
}

// describeReasons lists reasons, each with a label.
func describeReasons(b *strings.Builder, label string, reasons []string) {
	for _, reason := range reasons {
		fmt.Fprintf(b, "- %s: %s\n", label, verbatim(reason))
	}
	if len(reasons) > 0 {
		b.WriteString("\n")
	}
}

// describeTerms states what an approval requires and what people have decided so far.
func describeTerms(b *strings.Builder, ask jig.Pending) {
	consent := approval.ConsentOf(ask)
	if ask.Kind != jig.PendingApproval || ask.Terms == nil {
		return
	}
	fmt.Fprintf(b, "- still needed: %s\n", verbatim(consent.Missing()))
	for _, line := range approval.Conditions(ask) {
		fmt.Fprintf(b, "- terms: %s\n", verbatim(line))
	}
	for _, v := range ask.Votes {
		fmt.Fprintf(b, "- approved by %s%s\n", verbatim(v.By), v.Proof.Text(v.Claimed, v.Key))
	}
	for _, d := range ask.Delegations {
		fmt.Fprintf(b, "- delegated by %s to %s\n", verbatim(d.From), verbatim(d.To))
	}
}

// verbatim formats text from a model, a person or a document as a one-line code span. No Markdown renderer shows links, images,
// HTML or headings in a code span, and readers cannot mistake it for the engine's own text. The caller must write other text before
// it on the same line, because a line that begins with three backticks could open a code block.
func verbatim(text string) string {
	text = strings.Join(strings.Fields(visible.Map(text, withoutControls)), " ")
	if text == "" {
		return "(nothing)"
	}
	longest, run := 0, 0
	for _, c := range text {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// withoutControls drops control characters, and replaces characters that are invisible or change the direction of the text with U+FFFD.
func withoutControls(c rune, hidden bool) rune {
	switch {
	case hidden:
		return unicode.ReplacementChar
	case unicode.IsControl(c) && !unicode.IsSpace(c):
		return -1
	}
	return c
}

// awaited returns the end of the sentence "the call waits for …".
func awaited(kind jig.PendingKind) string {
	switch kind {
	case jig.PendingReconcile:
		return "somebody to say whether it happened"
	case jig.PendingQuestion:
		return "an answer"
	case jig.PendingApproval:
	}
	return "approval"
}

// pretty formats JSON for a code block, with escapes for characters that people cannot see. No line of JSON begins with a backtick, so the input
// cannot close the block.
func pretty(input json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&v) != nil {
		v = string(input)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nothing in a code block is HTML
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return "{}"
	}
	return visible.JSON(strings.TrimSuffix(b.String(), "\n"))
}
