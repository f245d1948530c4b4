package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/visible"
)

// describeWaits lists the steps that wait for events or times, with the commands that send the events.
func describeWaits(b *strings.Builder, sessionID, flags string, waits []jig.Wait) {
	for _, w := range waits {
		if b.Len() > maxDetails {
			return
		}
		fmt.Fprintf(b, "\nWaits: %s\n", verbatim(w.String()))
		if to := cmp.Or(w.SessionID, sessionID); w.Event != "" {
			fmt.Fprintf(b, "\n```\njig event %s %s --data '{}'\n%s\n```\n", to, w.Event,
				signalCommand(to, flags, protocol.SignalEvent, fmt.Sprintf(`{"name":%q,"data":{}}`, w.Event)))
		}
	}
}

// answerCommands returns commands of the stock Temporal CLI that answer a waiting call, ready to paste into a shell. They contain text
// that a model wrote. An apostrophe would end the shell quotation, so it is written as a JSON escape. The lines are short enough for the
// Web UI's pane. flags says how to reach Temporal; see temporalFlags.
func answerCommands(sessionID, flags string, p jig.Pending) []string {
	signal := func(name, input string) string { return signalCommand(sessionID, flags, name, input) }
	if p.Kind == jig.PendingQuestion {
		value := `"…"`
		if p.Question != nil && len(p.Question.Options) > 0 {
			value = string(p.Question.Options[0])
		}
		return []string{signal(protocol.SignalAnswer, fmt.Sprintf(`{"call":%q,"value":%s,"by":"YOU"}`, p.Call, value))}
	}
	if p.Kind == jig.PendingReconcile {
		attempt := ""
		if p.Attempt > 1 {
			attempt = fmt.Sprintf(`,"attempt":%d`, p.Attempt)
		}
		return []string{signal(protocol.SignalReconcile, fmt.Sprintf(`{"call":%q%s,"outcome":"happened","by":"YOU"}`, p.Call, attempt))}
	}
	return []string{
		signal(protocol.SignalApprove, fmt.Sprintf(`{"call":%q,"by":"YOU"}`, p.Call)),
		signal(protocol.SignalDeny, fmt.Sprintf(`{"call":%q,"by":"YOU","reason":"…"}`, p.Call)),
	}
}

// signalCommand returns the command of the stock Temporal CLI that sends a signal to a session. See [answerCommands].
func signalCommand(sessionID, flags, name, input string) string {
	return fmt.Sprintf("temporal workflow signal%s \\\n  --workflow-id %s --name %s \\\n  --input '%s'",
		flags, sessionID, name, strings.ReplaceAll(visible.JSON(input), "'", `\u0027`))
}
