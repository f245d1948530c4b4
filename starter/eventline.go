package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// eventData is what events may say, as far as a line shows it.
type eventData struct {
	Summary    string     `json:"summary"`
	Text       string     `json:"text"`
	Reason     string     `json:"reason"`
	Reasons    []string   `json:"reasons"`
	By         string     `json:"by"`
	Model      string     `json:"model"`
	Answer     string     `json:"answer"`
	Message    string     `json:"message"`
	Agent      string     `json:"agent"`
	DurationMS int64      `json:"duration_ms"`
	Error      *jig.Error `json:"error"`
}

// eventLine is one line of the live log: time, pass, call and tool, what happened, how long it took.
func (a *app) eventLine(c palette, e jig.Event) string {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		d = eventData{}
	}
	columns := []string{c.dim(e.At.Local().Format(time.TimeOnly)), fmt.Sprintf("%-8s", passWord(e.Pass)), mark(c, e.Type)}
	if e.Tool != "" || e.CallID != "" {
		columns = append(columns, c.bold(strings.TrimSpace(e.CallID+" "+e.Tool)))
	}
	columns = append(columns, eventWord(e.Type))
	if text := oneLine(d.words(), 160); text != "" {
		columns = append(columns, "· "+text)
	}
	if took := shortDuration(time.Duration(d.DurationMS) * time.Millisecond); took != "" {
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

// words picks the most telling text that an event has.
func (d eventData) words() string {
	failure := ""
	if d.Error != nil {
		failure = string(d.Error.Code) + ": " + d.Error.Message
	}
	text := firstOf(failure, d.Summary, d.Text, d.Message, d.Reason, strings.Join(d.Reasons, "; "), d.Answer, d.Model, d.Agent)
	if d.By != "" {
		return strings.TrimSpace(text + " (by " + d.By + ")")
	}
	return text
}

// mark is a sign that the eye finds.
func mark(c palette, t jig.EventType) string {
	good := []jig.EventType{jig.EventToolCompleted, jig.EventSessionCompleted, jig.EventToolApproved, jig.EventToolReconciled}
	bad := []jig.EventType{
		jig.EventToolFailed, jig.EventSessionFailed, jig.EventToolDenied, jig.EventToolExpired, jig.EventDecisionRefused, jig.EventToolCancelled,
		jig.EventSessionCanceled,
	}
	asks := []jig.EventType{jig.EventToolNeedsApproval, jig.EventToolOutcomeUnknown}
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

// eventWord is the event's type in words.
func eventWord(t jig.EventType) string {
	words := map[jig.EventType]string{
		jig.EventToolNeedsApproval: "waits for approval", jig.EventToolOutcomeUnknown: "outcome unknown: a person must say",
		jig.EventToolSkipped: "skipped, a duplicate", jig.EventToolOutput: "says", jig.EventDecisionRefused: "decision refused",
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
