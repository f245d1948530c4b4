package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// showPending shows on stderr what waits, and the commands that answer it.
func (a *app) showPending(p jig.Pending) {
	a.say("%s", a.pendingText(a.err, p))
	a.showCommands(p)
}

// pendingText shows what waits to a person.
func (a *app) pendingText(c palette, p jig.Pending) string {
	head := fmt.Sprintf("%s %s waits for approval", c.yellow(p.Call), c.bold(p.Tool))
	if p.Kind == jig.PendingReconcile {
		head = fmt.Sprintf("%s %s: nobody knows whether it happened", c.yellow(p.Call), c.bold(p.Tool))
	}
	lines := []string{head}
	if p.Summary != "" {
		lines = append(lines, "  "+oneLine(p.Summary, 200))
	}
	if len(p.Input) > 0 {
		lines = append(lines, indent(inputText(p), "    "))
	}
	for _, reason := range p.Reasons {
		lines = append(lines, "  · "+oneLine(reason, 200))
	}
	if !p.ExpiresAt.IsZero() {
		lines = append(lines, c.dim("  expires "+p.ExpiresAt.Local().Format(time.DateTime)))
	}
	return strings.Join(lines, "\n")
}

// showCommands shows the exact commands that answer what waits.
func (a *app) showCommands(p jig.Pending) {
	a.say("  answer it with either of:")
	for _, command := range a.answers(p) {
		a.say("    %s", a.err.cyan(command))
	}
}

// answers are the commands that answer what waits.
func (a *app) answers(p jig.Pending) []string {
	if p.Kind == jig.PendingReconcile {
		word := jig.Reconciliation{Call: p.Call, Outcome: jig.OutcomeHappened, By: a.flags.as}
		return []string{
			a.signalCommand(p.SessionID, client.SignalReconcile, word),
			a.command("reconcile", p.SessionID, p.Call, "--outcome", "happened|not_happened|give_up"),
		}
	}
	return []string{
		a.signalCommand(p.SessionID, client.SignalApprove, jig.Decision{Call: p.Call, By: a.flags.as}),
		a.command("approve", p.SessionID, p.Call),
		a.command("deny", p.SessionID, p.Call, "--reason", "…"),
	}
}

// signalCommand is the stock Temporal CLI's command.
func (a *app) signalCommand(id, name string, payload any) string {
	input, err := marshal(payload)
	if err != nil { // the payload is made of strings
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

// command is this program's own command, with the flags that lead to the same place.
func (a *app) command(words ...string) string {
	all := append([]string{}, words...)
	if a.flags.tenant != jig.DefaultTenant && a.flags.tenant != "" {
		all = append(all, "--tenant", a.flags.tenant)
	}
	for _, flag := range []struct{ name, value string }{
		{"--temporal-address", a.flags.address}, {"--namespace", a.flags.namespace}, {"--task-queue", a.flags.taskQueue},
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

// ruledLine says what became of a decision.
func (a *app) ruledLine(c palette, r jig.Ruled, answer jig.Answer, tool string, unasked bool) string {
	if r.Outcome != jig.DecisionAccepted {
		return fmt.Sprintf("%s %s: %s", c.yellow(r.Call), "the decision was refused", firstOf(r.Reason, "no reason was given"))
	}
	word := c.green("approved")
	if answer == jig.AnswerDeny {
		word = c.red("denied")
	}
	line := fmt.Sprintf("%s %s", word, r.Call)
	if tool != "" {
		line += " " + tool
	}
	if unasked {
		line += " (without asking, because of --yes)"
	}
	return line
}
