package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/jsontext"
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
	// whole reports that long texts are not shortened.
	whole bool
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

// cardText formats a waiting call for people: what was changed, what will happen, why it asks, and who may decide.
func (a *app) cardText(c palette, k card) string {
	p, width := k.Pending, a.width()
	lines := append([]string{headText(c, p)}, a.bodyLines(c, k)...)
	now := time.Now()
	for _, fact := range pendingFacts(p, now) {
		lines = append(lines, sentence(fact, c.dim, width))
	}
	if today := todayFact(p, k.review, now); today != "" {
		lines = append(lines, sentence(today, c.yellow, width))
	}
	return strings.Join(lines, "\n")
}

// bodyLines formats what was changed, what will happen, and why it asks.
func (a *app) bodyLines(c palette, k card) []string {
	p, width := k.Pending, a.width()
	var lines []string
	left := 0
	changes := jig.Changes(p.Reasons)
	for _, change := range changes {
		lines = append(lines, sentence(oneLine(change, 400), c.yellow, width))
	}
	question := p.Kind == jig.PendingQuestion && p.Question != nil
	switch {
	case question:
		lines = append(lines, questionText(*p.Question, width))
	case p.Preview != nil:
		shown := *p.Preview
		if !k.whole {
			shown, left = shortPreview(shown, maxDiffLines)
		}
		if lines = append(lines, previewText(c, shown, width)); left > 0 {
			lines = append(lines, "  "+c.yellow(plural(left, "more line", "more lines")+":")+" "+c.cyan(a.command("approvals", "show", k.SessionID, k.Call)))
		}
	case p.Summary != "":
		lines = append(lines, sentence(oneLine(p.Summary, 200), nil, width))
	}
	if !question && len(p.Input) > 0 {
		p.Input = withoutCovered(p.Input, p.Preview)
		p.Truncated = p.Truncated && (left == 0 || strings.Contains(string(p.Input), "…")) // else the line about more lines says it
		lines = append(lines, inputText(p, width))
	}
	if k.comparison != nil {
		lines = append(lines, comparisonText(c, *k.comparison, len(p.Votes) > 0, width))
	}
	for _, reason := range p.Reasons[len(changes):] {
		lines = append(lines, sentence("· "+oneLine(reason, 200), nil, width))
	}
	return lines
}

// maxDiffLines is how many lines of diffs and of Markdown a card has, unless it shows the whole texts.
const maxDiffLines = 8

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
	what := titleOf(p.Preview, p.Input)
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

// answers lists the commands that answer a waiting call as the principal whom the identity flags name. Over HTTP,
// or if decisions are signed or the name is left open, it leaves out the command of the stock Temporal CLI, which would need an address, a token from
// `jig token` or the name in its payload.
func (a *app) answers(p jig.Pending, identity []string) []string {
	var signal string
	var own [][]string
	switch p.Kind {
	case jig.PendingReconcile:
		word := jig.Reconciliation{Call: p.Call, Outcome: jig.OutcomeHappened, By: a.flags.as}
		command := []string{"reconcile", p.SessionID, p.Call, "--outcome", "happened|not_happened|give_up"}
		if p.Attempt > 1 {
			word.Attempt = p.Attempt
			command = append(command, "--attempt", strconv.Itoa(p.Attempt))
		}
		signal, own = a.signalCommand(p.SessionID, client.SignalReconcile, word), [][]string{command}
	case jig.PendingQuestion:
		word := "…"
		if p.Question != nil && len(p.Question.Options) > 0 {
			options := make([]string, len(p.Question.Options))
			for i, o := range p.Question.Options {
				options[i] = plainValue(o)
			}
			if choice := strings.Join(options, "|"); choice == oneLine(choice, 80) {
				word = choice
			}
		}
		signal = a.signalCommand(p.SessionID, client.SignalAnswer, jig.Reply{Call: p.Call, Value: json.RawMessage(`"…"`), By: a.flags.as})
		own = [][]string{{"answer", p.SessionID, p.Call, word}, {"deny", p.SessionID, p.Call, "--reason", "…"}}
	case jig.PendingApproval:
		signal = a.signalCommand(p.SessionID, client.SignalApprove, jig.Decision{Call: p.Call, By: a.flags.as})
		own = [][]string{{"approve", p.SessionID, p.Call}, {"deny", p.SessionID, p.Call, "--reason", "…"}}
		if p.Terms != nil && len(p.Terms.Requirements) > 0 {
			own = append(own, []string{"delegate", p.SessionID, p.Call, "--to", "…"})
		}
	}
	var list []string
	if a.server == nil && !a.signs() && !slices.Contains(identity, "…") {
		list = append(list, signal)
	}
	for _, words := range own {
		list = append(list, a.command(append(words, identity...)...))
	}
	return list
}

// signalCommand returns the stock Temporal CLI's command that sends a signal.
func (a *app) signalCommand(id, name string, payload any) string {
	input, err := jsontext.Encode(payload)
	if err != nil { // cannot happen: the payload consists of strings
		input = json.RawMessage("{}")
	}
	words := []string{"temporal", "workflow", "signal"}
	if address := a.settings.Temporal.HostPort; address != "" && address != client.DefaultAddress {
		words = append(words, "--address", address)
	}
	if namespace := a.settings.Temporal.Namespace; namespace != "" && namespace != client.DefaultNamespace {
		words = append(words, "--namespace", namespace)
	}
	words = append(words, "--workflow-id", id, "--name", name, "--input", string(input))
	return shellLine(words...)
}

// command returns a command of this program, with the flags that reach the same tenant and server.
func (a *app) command(words ...string) string {
	all := append([]string{}, words...)
	if a.flags.tenant != jig.DefaultTenant && a.flags.tenant != "" && a.server == nil {
		all = append(all, "--tenant", a.flags.tenant)
	}
	for _, flag := range []struct{ name, value string }{
		{"--url", a.flags.url},
		{"--temporal-address", a.flags.address},
		{"--namespace", a.flags.namespace},
		{"--task-queue", a.flags.taskQueue},
	} {
		if flag.value != "" {
			all = append(all, flag.name, flag.value)
		}
	}
	return a.program + " " + shellLine(all...)
}

// shellLine quotes words for a POSIX shell.
func shellLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`!*?[](){}<>|&;#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// ruledLine formats the outcome of a decision.
func (a *app) ruledLine(c palette, r jig.Ruled, answer jig.Answer, tool string, unasked bool) string {
	if r.Outcome != jig.DecisionAccepted {
		why, more, _ := strings.Cut(cmp.Or(r.Reason, "no reason was given"), "\n")
		lines := []string{fmt.Sprintf("%s %s: %s", c.yellow(oneLine(r.Call, 0)), "the decision was refused", oneLine(why, 0))}
		if more != "" {
			lines = append(lines, quoted(more, quoteBar, a.width())...)
		}
		return strings.Join(lines, "\n")
	}
	word := c.green("approved")
	switch answer {
	case jig.AnswerDeny:
		word = c.red("denied")
	case jig.AnswerDelegate, ruledAnswered, ruledReconciled:
		word = map[jig.Answer]string{jig.AnswerDelegate: "delegated", ruledAnswered: "answered", ruledReconciled: "reconciled"}[answer]
	case jig.AnswerApprove, jig.AnswerExpire:
	}
	line := fmt.Sprintf("%s %s", word, r.Call)
	if tool != "" {
		line += " " + tool
	} else if answer == jig.AnswerApprove && r.Status == jig.CallReserved {
		line += ", not run yet"
	}
	if from, ok := strings.CutPrefix(r.Reason, "taken back "); ok && answer == jig.AnswerDelegate {
		line = "took back " + r.Call + " " + oneLine(from, 0)
	} else if to, ok := strings.CutPrefix(r.Reason, "delegated to "); ok && answer == jig.AnswerDelegate {
		line += " to " + oneLine(to, 0)
	} else if r.Reason != "" {
		line += ": " + oneLine(r.Reason, 0)
	}
	if r.Grant != "" {
		line += ", with the standing approval " + r.Grant
	}
	if unasked {
		line += " (without asking, because of --yes)"
	}
	return line
}

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
			names[i] = v.By + v.Proof.Text(v.Claimed, v.Key)
		}
		add("approved so far by %s: %s", strings.Join(names, ", "), cmp.Or(consent.Missing(), "nothing is missing"))
	}
	for _, d := range p.Delegations {
		add("%s%s delegated to %s", d.From, d.Proof.Text(d.Claimed, d.Key), d.To)
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
			if e.Reason == "" && p.RequestedAt.Add(time.Duration(e.After)).Equal(p.NextAt) {
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
