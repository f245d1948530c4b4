package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// maxReviewedCards bounds how many calls of a list are reviewed. The commands of the others are shown as if the user may decide.
const maxReviewedCards = 200

// card is a waiting call as the user sees it.
type card struct {
	jig.Pending
	// review holds what applies now. Its zero value says that nothing is known against the user and the terms.
	review protocol.Review
	// comparison says whether the call is still what is shown; nil if that was not asked.
	comparison *protocol.Comparison
}

// cards adds to waiting calls whether the user may decide them and what policy demands today. If that cannot be found out, for example because
// the worker is older, the calls are shown without it.
func (a *app) cards(ctx context.Context, e engine, list []jig.Pending) []card {
	cards := make([]card, len(list))
	calls := make([]protocol.WaitingCall, len(list))
	for i, p := range list {
		cards[i].Pending = p
		calls[i] = protocol.WaitingCall{SessionID: p.SessionID, Call: p.Call}
	}
	by, err := a.actor()
	if err != nil || len(list) == 0 {
		return cards
	}
	reviews, err := e.Review(ctx, a.flags.tenant, by, a.signs(), calls[:min(len(calls), maxReviewedCards)])
	if err != nil {
		return cards
	}
	for i, p := range list {
		at := slices.IndexFunc(reviews, func(r protocol.Review) bool { return r.SessionID == p.SessionID && r.Call == p.Call })
		if at >= 0 {
			cards[i].review = reviews[at]
		}
	}
	return cards
}

// showCard shows a waiting call on stderr, with the commands that answer it.
func (a *app) showCard(k card) {
	a.say("%s\n%s", a.cardText(a.err, k), a.commandsText(a.err, k))
}

// printCard prints a waiting call on stdout, with the commands that answer it.
func (a *app) printCard(k card, prefix string) error {
	return a.print("%s%s\n%s", prefix, a.cardText(a.out, k), a.commandsText(a.out, k))
}

// cardText formats a waiting call for people: what it will change, why it waits, its arguments, and who may decide.
func (a *app) cardText(c palette, k card) string {
	p, width := k.Pending, a.width()
	lines := []string{headText(c, p)}
	changes := jig.Changes(p.Reasons)
	for _, change := range changes {
		lines = append(lines, sentence(oneLine(change, 400), c.yellow, width))
	}
	question := p.Kind == jig.PendingQuestion && p.Question != nil
	if question {
		lines = append(lines, questionText(*p.Question, width))
	} else if p.Preview != nil {
		lines = append(lines, previewText(c, *p.Preview, width))
	}
	if k.comparison != nil {
		lines = append(lines, comparisonText(c, *k.comparison, len(p.Votes) > 0, width))
	}
	for _, reason := range p.Reasons[len(changes):] {
		lines = append(lines, sentence("· "+oneLine(reason, 200), nil, width))
	}
	if !question {
		if p.Summary != "" {
			lines = append(lines, sentence(oneLine(p.Summary, 200), nil, width))
		}
		if len(p.Input) > 0 {
			lines = append(lines, inputText(p, width))
		}
	}
	now := time.Now()
	for _, fact := range pendingFacts(p, now) {
		lines = append(lines, sentence(fact, c.dim, width))
	}
	if today := todayFact(p, k.review, now); today != "" {
		lines = append(lines, sentence(today, c.yellow, width))
	}
	return strings.Join(lines, "\n")
}

// headText formats the first line of a card: which call waits, and for what.
func headText(c palette, p jig.Pending) string {
	call, tool := c.yellow(oneLine(p.Call, 0)), c.bold(oneLine(p.Tool, 0))
	if p.Via != "" { // it waits in a child session that answers the call
		call = fmt.Sprintf("%s → %s %s", oneLine(p.Via, 0), oneLine(p.SessionID, 0), call)
	}
	switch p.Kind {
	case jig.PendingReconcile:
		if p.Attempt > 1 {
			return fmt.Sprintf("%s %s: outcome of attempt %d unknown", call, tool, p.Attempt)
		}
		return fmt.Sprintf("%s %s: outcome unknown", call, tool)
	case jig.PendingQuestion:
		return fmt.Sprintf("%s %s asks a person", call, tool)
	case jig.PendingApproval:
	}
	return fmt.Sprintf("%s %s waits for approval", call, tool)
}

// cardLine formats a waiting call for a list of calls that get the same decision: on one line with the title of its preview or else the
// beginning of its arguments. If that is wider than the terminal, the title or the arguments follow on lines of their own, behind a bar.
func (a *app) cardLine(c palette, p jig.Pending) string {
	shown, _ := jig.Excerpt(p.Input, 120)
	what := oneLine(string(shown), 0)
	if p.Preview != nil && p.Preview.Title != "" {
		what = oneLine(p.Preview.Title, 120)
	}
	head := fmt.Sprintf("  %s %s %s", oneLine(p.SessionID, 0), c.yellow(oneLine(p.Call, 0)), c.bold(oneLine(p.Tool, 0)))
	if width := a.width(); width > 0 && lipgloss.Width(head+"  "+what) > width {
		return head + "\n" + strings.Join(quoted(what, inputBar, width), "\n")
	}
	return strings.TrimRight(head+"  "+what, " ")
}

// commandsText lists the commands that answer a waiting call, or says why the user may not decide it.
func (a *app) commandsText(c palette, k card) string {
	lines := []string{"  answer it with one of:"}
	commands := a.answers(k.Pending, a.identity())
	if k.review.Refusal != "" {
		lines = []string{"  " + c.yellow(oneLine(k.review.Refusal, 300))}
		switch {
		case k.review.Unsigned:
			commands = a.answers(k.Pending, []string{"--key", "…"})
		case a.signs(), a.named:
			commands = nil
		default: // the name is only that of the user's account
			lines = append(lines, fmt.Sprintf("  if you are not %s, say who you are:", oneLine(a.flags.as, 80)))
			commands = a.answers(k.Pending, []string{"--as", "…"})
		}
	}
	for _, command := range commands {
		lines = append(lines, "    "+c.cyan(command))
	}
	return strings.Join(lines, "\n")
}

// identity returns the flags that make another command act as the same principal: none if the environment says who it is.
func (a *app) identity() []string {
	switch {
	case a.flags.key != "":
		return []string{"--key", a.flags.key}
	case a.server != nil, a.signs(), a.env["JIG_PRINCIPAL"] == a.flags.as:
		return nil
	}
	return []string{"--as", a.flags.as}
}
