package starter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/jsontext"
)

// answers lists the commands that answer a waiting call as the principal whom the identity flags name. If decisions are signed, or the name is
// left open, it leaves out the command of the stock Temporal CLI, which would need a token from `jig token` or the name in its payload.
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
	if !a.signs() && !slices.Contains(identity, "…") {
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
