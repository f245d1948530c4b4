package starter

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
)

// pendingFacts describes a waiting call, one fact per line: who asked for it, who may decide, what was decided so far, and when the next
// reminder or escalation and the expiry are due.
func pendingFacts(p jig.Pending, now time.Time) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, oneLine(fmt.Sprintf(format, args...), 300)) }
	var from []string
	if who := approval.Requesters(p); who != "" {
		from = append(from, who)
	}
	switch p.Agent {
	case "":
	case jig.CallAgent:
		from = append(from, "without an agent")
	default:
		from = append(from, "agent "+p.Agent)
	}
	if p.ParentID != "" {
		from = append(from, "for call "+p.ParentCall+" of "+p.ParentID)
	}
	if len(from) > 0 {
		add("%s", strings.Join(from, ", "))
	}
	consent := approval.ConsentOf(p)
	for _, line := range approval.Conditions(p) {
		add("%s", line)
	}
	if len(p.Votes) > 0 {
		names := make([]string, len(p.Votes))
		for i, v := range p.Votes {
			names[i] = v.By + v.Proof.Mark(v.Claimed)
		}
		add("approved so far by %s: %s", strings.Join(names, ", "), cmp.Or(consent.Missing(), "nothing is missing"))
	}
	for _, d := range p.Delegations {
		add("%s%s delegated to %s", d.From, d.Proof.Mark(d.Claimed), d.To)
	}
	if !p.NextAt.IsZero() {
		add("%s", nextFact(p, consent.Terms, now))
	}
	if !p.ExpiresAt.IsZero() {
		add("expires %s", when(p.ExpiresAt, now))
	}
	return lines
}

// todayFact says what policy demands today if that is something else than the terms under which the call waits; "" if it is not.
func todayFact(p jig.Pending, r protocol.Review, now time.Time) string {
	today := ""
	switch r.Today {
	case jig.VerdictRun:
		today = "it would run without asking"
	case jig.VerdictAsk:
		p.Terms = r.Terms
		today = strings.Join(approval.Conditions(p), "; ")
	case jig.VerdictDeny, jig.VerdictRefuse:
		today = "it would be denied"
	default:
		return ""
	}
	return oneLine(fmt.Sprintf("terms of %s; by today's policy: %s", clock(p.RequestedAt, now), today), 300)
}

// nextFact says what happens at p.NextAt.
func nextFact(p jig.Pending, t jig.Terms, now time.Time) string {
	for _, r := range t.Requirements {
		for _, e := range r.Escalate {
			if e.Reason == "" && p.RequestedAt.Add(e.After).Equal(p.NextAt) {
				return fmt.Sprintf("%s may also decide %s", e.Approvers, when(p.NextAt, now))
			}
		}
	}
	return "next reminder " + when(p.NextAt, now)
}

// questionText formats a question and the answers it accepts, for a terminal of the given width. The question is a model's text, so its lines
// stand behind the bar.
func questionText(q jig.Question, width int) string {
	lines := quoted(q.Text, quoteBar, width)
	for i, option := range q.Options {
		lines = append(lines, "  "+sentence(fmt.Sprintf("%d. %s", i+1, oneLine(plainValue(option), 200)), nil, width-2))
	}
	if len(q.Schema) > 0 {
		lines = append(lines, sentence("answer schema: "+oneLine(string(q.Schema), 500), nil, width))
	}
	return strings.Join(lines, "\n")
}
