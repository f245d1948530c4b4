package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/suggest"
)

func (a *app) eventCommand() *cobra.Command {
	var data, id string
	cmd := &cobra.Command{
		Use:   "event SESSION NAME",
		Short: "Send an event to a session, for which its compositions may wait",
		Long: `Send an event to a session. A composition takes it as soon as it waits for an event with that name (wait_for). The session accepts only one event
with the same --id, however often it is sent.`,
		Example: `  jig event order-7 paid --data '{"order": "2026-0042"}'
  jig event order-7 paid --data @payment.json --id payment-1`,
		Args: sessionFirst(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			event := client.Event{Name: args[1], ID: id, By: a.flags.as}
			if data != "" {
				var err error
				if event.Data, err = a.jsonArgument("--data", data); err != nil {
					return err
				}
			}
			if err := event.Check(); err != nil {
				return usage(err)
			}
			return a.with(cmd.Context(), func(e engine) error {
				if err := e.Event(cmd.Context(), a.flags.tenant, a.session(args[0]), event); err != nil {
					return err
				}
				if err := a.done(a.session(args[0]), "event sent to"); err != nil {
					return err
				}
				a.sayAwaited(cmd.Context(), e, a.session(args[0]), event.Name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the event's data: JSON, @file.json or @-")
	cmd.Flags().StringVar(&id, "id", "", "your own id for the event; the session accepts only one event with it")
	return cmd
}

// sayAwaited says which events a session waits for, if nothing in it waits for the one that was sent. It may do so later.
func (a *app) sayAwaited(ctx context.Context, e engine, session, name string) {
	view, err := e.Status(ctx, a.flags.tenant, session)
	if err != nil {
		return // the event was sent, and the rest is a courtesy
	}
	var awaited []string
	for _, w := range view.Waits {
		if w.Event == name {
			return
		}
		if w.Event != "" && !slices.Contains(awaited, w.Event) {
			awaited = append(awaited, w.Event)
		}
	}
	if len(awaited) > 0 {
		a.say("nothing waits for an event %q now; the session waits for %s", name, suggest.Or(awaited))
	}
}

func (a *app) eventsCommand() *cobra.Command {
	var after int64
	var follow bool
	cmd := &cobra.Command{
		Use:   "events SESSION",
		Short: "Print a session's log, one event per line",
		Example: `  jig events ses_… --output json
  jig events ses_… --after 40 --follow`,
		Args: sessionArgs(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			if follow {
				return a.followEvents(ctx, e, a.session(args[0]), after, false, nil)
			}
			list, err := e.Events(ctx, a.flags.tenant, a.session(args[0]), after)
			if err != nil {
				return err
			}
			for _, event := range list {
				if err := a.printEvent(event); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events after this sequence number")
	cmd.Flags().BoolVar(&follow, "follow", false, "keep printing until the session ends")
	return cmd
}

func (a *app) watchCommand() *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use:   "watch SESSION|ENTITY",
		Short: "Follow a session, or the extraction of an entity, until it ends",
		Example: `  jig watch ses_…
  jig watch ent_…`,
		Args: sessionArgs(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			id, shown, err := a.followed(ctx, e, args[0])
			if err != nil {
				return err
			}
			if err := a.followEvents(ctx, e, id, after, true, shown); err != nil || a.json() || shown != nil {
				return err
			}
			return a.printOutput(ctx, e, id)
		}),
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events after this sequence number")
	return cmd
}

// printOutput prints, for people, the output of a session that runs a single call. Programs find it in the call's last event or with
// `status`.
func (a *app) printOutput(ctx context.Context, e engine, id string) error {
	view, err := e.Status(ctx, a.flags.tenant, id)
	if err != nil {
		return err
	}
	if view.Output, err = a.wholeOutput(ctx, e, view); err != nil || len(view.Output) == 0 {
		return err
	}
	return a.print("\n%s", safeText(prettyJSON(view.Output)))
}

// followEvents prints events as they come. shown selects the events; nil selects all. With attend it also shows calls that wait for a
// person.
func (a *app) followEvents(ctx context.Context, e engine, id string, after int64, attend bool, shown func(jig.Event) bool) error {
	f := &follower{app: a, engine: e, id: id, quiet: !attend, show: func(event jig.Event) error {
		if shown != nil && !shown(event) {
			return nil
		}
		return a.printEvent(event)
	}}
	if shown == nil {
		f.text = a.textOn(a.stdout, a.out)
	}
	return f.follow(ctx, after)
}

func (a *app) printEvent(event jig.Event) error {
	return a.output(event, func() error { return a.print("%s", a.eventLine(a.out, event)) })
}

// eventData holds the fields of an event's data that a log line shows.
type eventData struct {
	Title      string    `json:"title"`
	Summary    string    `json:"summary"`
	Text       string    `json:"text"`
	Role       string    `json:"role"`
	Reason     string    `json:"reason"`
	Reasons    []string  `json:"reasons"`
	By         names     `json:"by"`
	Claimed    bool      `json:"claimed"`
	Proof      jig.Proof `json:"proof"`
	Key        string    `json:"key"`
	Model      string    `json:"model"`
	Answer     string    `json:"answer"`
	Message    string    `json:"message"`
	Agent      string    `json:"agent"`
	DurationMS int64     `json:"duration_ms"`
	// SessionID and Call name a call that waits in another session, which answers the call Via of this one. Child is the session that a call
	// started.
	SessionID string     `json:"session_id"`
	Call      string     `json:"call"`
	Via       string     `json:"via"`
	Child     string     `json:"child_session_id"`
	Error     *jig.Error `json:"error"`
	// Next is when a model is asked again.
	Next time.Time `json:"next_attempt_at"`
}

// approvalData is the data of approval, question and grant events.
type approvalData struct {
	To        string          `json:"to"`
	From      string          `json:"from"`
	Note      string          `json:"note"`
	Missing   string          `json:"missing"`
	Approvers *jig.Approvers  `json:"approvers"`
	Question  *jig.Question   `json:"question"`
	Value     json.RawMessage `json:"value"`
	Grant     string          `json:"grant"`
	When      string          `json:"when"`
	Used      int             `json:"used"`
	MaxUses   int             `json:"max_uses"`
	ExpiresAt time.Time       `json:"expires_at"`
	Scope     string          `json:"scope"`
	Target    string          `json:"target"`
	Reason    string          `json:"reason"`
	Edited    *struct {
		After json.RawMessage `json:"after"`
	} `json:"edited"`
}

// names holds the names of one or several principals.
type names []string

// UnmarshalJSON accepts one name or a list of names.
func (n *names) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*n = nil
		if one != "" {
			*n = names{one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(n)) //nolint:wrapcheck // the error of encoding/json names the position
}

// eventLine formats one line of the live log: time, pass, call and tool, what happened, and how long it took.
func (a *app) eventLine(c palette, e jig.Event) string {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		d = eventData{}
	}
	columns := []string{c.dim(e.At.Local().Format(time.TimeOnly)), fmt.Sprintf("%-8s", passWord(e.Pass)), mark(c, e.Type)}
	if e.Tool != "" || e.CallID != "" {
		columns = append(columns, c.bold(oneLine(e.CallID+" "+e.Tool, 160)))
	}
	word, limit := eventWord(e.Type), 160
	if e.Type == jig.EventMessageAdded && d.Role == "assistant" {
		word, limit, d.By = "model says", 1000, nil
	}
	columns = append(columns, oneLine(word, 0))
	if text := oneLine(d.words(e), limit); text != "" {
		columns = append(columns, "· "+text)
	}
	if took := shortDuration(max(time.Duration(d.DurationMS)*time.Millisecond, a.tasks.took(e))); took != "" {
		columns = append(columns, c.dim("("+took+")"))
	}
	return strings.Join(columns, " ")
}

func passWord(pass int) string {
	if pass == 0 {
		return ""
	}
	return fmt.Sprintf("pass %d", pass)
}

// words picks the most informative text of an event and adds who caused it.
func (d eventData) words(e jig.Event) string {
	failure := ""
	if d.Error != nil {
		failure = string(d.Error.Code) + ": " + d.Error.Message
	}
	text := cmp.Or(approvalSummary(e), taskSummary(e), failure, d.Summary, d.Text, d.Message, d.Reason, strings.Join(d.Reasons, "; "), d.Answer, d.Model, d.Agent, d.Title)
	if e.Type == jig.EventModelWaiting {
		text += "; asked again at " + d.Next.Local().Format(time.TimeOnly)
	}
	if d.Via != "" && d.SessionID != "" {
		text = strings.TrimSuffix("in "+d.SessionID+" "+d.Call+": "+text, ": ")
	}
	if d.Child != "" && e.Type == jig.EventToolStarted {
		text = strings.TrimSpace(d.Title + " → " + d.Child)
	}
	if len(d.By) == 0 {
		return text
	}
	by, proof := "by "+strings.Join(d.By, ", "), d.Proof.Text(d.Claimed, d.Key)
	if text == "" {
		return by + proof
	}
	if proof = strings.Trim(proof, " ()"); proof != "" {
		by += ", " + proof
	}
	return text + " (" + by + ")"
}

// approvalSummary summarizes an approval, question or grant event. It returns "" for all other events.
func approvalSummary(e jig.Event) string {
	var d approvalData
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	switch e.Type { //nolint:exhaustive // the others have a summary, a text or a reason
	case jig.EventApprovalVoted, jig.EventApprovalReminded:
		return cmp.Or(d.Missing, "nothing is missing")
	case jig.EventApprovalDelegated:
		if d.From != "" {
			return strings.TrimSuffix("taken back from "+d.From+": "+d.Note, ": ")
		}
		return strings.TrimSuffix("to "+d.To+": "+d.Note, ": ")
	case jig.EventApprovalEscalated:
		if d.Approvers != nil {
			return "now also " + d.Approvers.String()
		}
	case jig.EventToolEdited, jig.EventToolApproved:
		return d.editSummary()
	case jig.EventToolAsked:
		if d.Question != nil {
			return d.Question.Text
		}
	case jig.EventToolAnswered:
		return plainValue(d.Value)
	case jig.EventGrantCreated:
		text := fmt.Sprintf("%s: %s until %s", d.Grant, plural(d.MaxUses, "call", "calls"), moment(d.ExpiresAt))
		if d.When != "" && d.When != "true" {
			text += ", when " + d.When
		}
		return text
	case jig.EventStepWaiting:
		var w jig.Wait
		if json.Unmarshal(e.Data, &w) != nil {
			return ""
		}
		return strings.TrimSpace(strings.TrimPrefix(w.String(), " waits"))
	case jig.EventToolPaused, jig.EventSessionPaused:
		return d.pauseSummary()
	case jig.EventGrantUsed:
		return fmt.Sprintf("%s: %d of %s", d.Grant, d.Used, plural(d.MaxUses, "call", "calls"))
	}
	return ""
}

// pauseSummary says what is paused, and why, if the event names what.
func (d approvalData) pauseSummary() string {
	if d.Scope == "" {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(d.Scope+" "+d.Target)+": "+d.Reason, ": ")
}

// editSummary describes how a call was changed, which approvals are still missing, and which grant covered the call.
func (d approvalData) editSummary() string {
	var parts []string
	if d.Edited != nil {
		parts = append(parts, "changed to "+string(d.Edited.After))
	}
	if d.Missing != "" {
		parts = append(parts, d.Missing)
	}
	if d.Grant != "" {
		parts = append(parts, "covered by "+d.Grant)
	}
	return strings.Join(parts, "; ")
}

// mark returns a symbol that makes the kind of event easy to spot.
func mark(c palette, t jig.EventType) string {
	good := []jig.EventType{
		jig.EventToolCompleted, jig.EventSessionCompleted, jig.EventToolApproved, jig.EventToolReconciled, jig.EventToolAnswered,
		jig.EventTaskCompleted,
	}
	bad := []jig.EventType{
		jig.EventToolFailed, jig.EventSessionFailed, jig.EventToolDenied, jig.EventToolExpired, jig.EventDecisionRefused, jig.EventToolCancelled,
		jig.EventSessionCanceled, jig.EventTaskFailed,
	}
	asks := []jig.EventType{
		jig.EventToolNeedsApproval, jig.EventToolOutcomeUnknown, jig.EventToolAsked, jig.EventToolEdited, jig.EventApprovalReminded,
		jig.EventApprovalEscalated, jig.EventApprovalWithdrawn, jig.EventSessionPaused, jig.EventToolPaused, jig.EventBudgetExhausted,
	}
	switch {
	case slices.Contains(good, t):
		return c.green("✓")
	case slices.Contains(bad, t):
		return c.red("✗")
	case slices.Contains(asks, t):
		return c.yellow("?")
	default:
		return c.dim("·")
	}
}

// eventWord describes the event type in words.
func eventWord(t jig.EventType) string {
	words := map[jig.EventType]string{
		jig.EventToolNeedsApproval: "waits for approval", jig.EventToolOutcomeUnknown: "outcome unknown: a person must settle it",
		jig.EventToolHeld: "waits", jig.EventStepWaiting: "waits", jig.EventModelWaiting: "waits for the model's provider", jig.EventSessionHeld: "waits to start", jig.EventToolAsked: "asks a person", jig.EventToolEdited: "changed: waits for a new approval",
		jig.EventApprovalVoted: "approved in part", jig.EventApprovalDelegated: "approval delegated",
		jig.EventApprovalReminded: "still waits for approval", jig.EventApprovalEscalated: "more people may approve",
		jig.EventGrantCreated: "standing approval given", jig.EventGrantUsed: "standing approval used",
		jig.EventToolPaused: "held back by a pause", jig.EventToolSkipped: "skipped, a duplicate", jig.EventToolOutput: "says", jig.EventDecisionRefused: "decision refused",
	}
	if word, ok := words[t]; ok {
		return word
	}
	subject, verb, _ := strings.Cut(string(t), ".")
	if subject == "tool" {
		return verb
	}
	return subject + " " + verb
}
