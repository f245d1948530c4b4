package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/visible"
)

// maxOutcome limits the answer or the result in the current details, in bytes.
const maxOutcome = 8 << 10

// agentOf returns the name of a session's agent. It is not known before the session is open if the request came with a document.
func agentOf(in protocol.PassInput) string {
	if in.Agent == "" && in.Start != nil {
		return in.Start.Agent
	}
	return in.Agent
}

// taskOf returns the task of a session for people to read. The first run takes it from the request, and later runs from the run before.
func taskOf(in protocol.PassInput) string {
	if in.Start != nil {
		return protocol.Excerpt(in.Start.Asked())
	}
	return in.Task
}

// taskOfCall returns the tool and the input of a single call for people to read.
func taskOfCall(in protocol.CallInput) string {
	if in.Task != "" {
		return in.Task
	}
	name := in.Tool
	if name == "" {
		name = in.DocumentName
	}
	return protocol.Excerpt(name + "\n" + in.Asked())
}

// headline writes the state of the session.
func (s *session) headline(b *strings.Builder) {
	status := s.state()
	fmt.Fprintf(b, "**%s**", status)
	switch status {
	case jig.StatusWorking:
		b.WriteString(" (in progress)")
	case jig.StatusInputRequired:
		b.WriteString(" (waits for a person)")
	case jig.StatusCompleted, jig.StatusFailed, jig.StatusCanceled:
	}
	if s.agent == jig.CallAgent {
		b.WriteString(", a call without an agent\n")
		return
	}
	fmt.Fprintf(b, ", pass %d, agent %s\n", s.pass, verbatim(s.agent))
}

// describeTask writes what a workflow was asked to do.
func describeTask(b *strings.Builder, task string) {
	switch {
	case task == "":
	case strings.Contains(task, "\n"):
		b.WriteString("\nTask:\n\n" + codeBlock(task))
	default:
		fmt.Fprintf(b, "\nTask: %s\n", verbatim(task))
	}
}

// describeEnd writes how the session ended: the reason, the error, and the answer of an agent or the result of a single call.
func (s *session) describeEnd(b *strings.Builder) {
	if !s.settled.Status.Final() {
		return
	}
	if s.settled.Reason != "" && s.settled.Reason != jig.ReasonAnswered { // the answer itself follows
		fmt.Fprintf(b, "\nEnded: %s\n", verbatim(s.settled.Reason))
	}
	if s.closed != nil && s.closed.Result != nil {
		s.describeResult(b, *s.closed.Result)
		return
	}
	describeError(b, s.settled.Error)
	if s.settled.Answer != "" {
		b.WriteString("\nAnswer:\n\n")
		s.describeText(b, s.settled.Answer, s.settled.Truncated)
	}
}

// describeResult writes the result of a single call.
func (s *session) describeResult(b *strings.Builder, r jig.ToolResult) {
	describeError(b, r.Error)
	if r.Summary != "" && r.Error == nil {
		fmt.Fprintf(b, "\nResult: %s\n", verbatim(r.Summary))
	}
	if len(r.Data) > 0 && string(r.Data) != "null" {
		b.WriteString("\n")
		s.describeText(b, pretty(r.Data), false)
	}
}

// describeText writes text in a code block, cut to maxOutcome. If truncated is true, text is only the beginning of what there is.
func (s *session) describeText(b *strings.Builder, text string, truncated bool) {
	shown := jig.Cut(text, maxOutcome)
	b.WriteString(codeBlock(shown))
	if truncated || len(shown) < len(text) {
		fmt.Fprintf(b, "(cut here; `jig result %s` prints all of it)\n", s.ref.SessionID)
	}
}

func describeError(b *strings.Builder, e *jig.Error) {
	if e == nil {
		return
	}
	fmt.Fprintf(b, "\nError %s: %s\n", verbatim(string(e.Code)), verbatim(e.Message))
	if e.Hint != "" {
		fmt.Fprintf(b, "\nHint: %s\n", verbatim(e.Hint))
	}
}

// addressKey is the key of the workflow context's value that holds the address for commands.
type addressKey struct{}

// reachedAt returns a workflow that shows people an address of Temporal in commands. The address changes no command of the workflow itself.
func reachedAt[I, O any](address string, run func(workflow.Context, I) (O, error)) func(workflow.Context, I) (O, error) {
	return func(ctx workflow.Context, in I) (O, error) {
		return run(workflow.WithValue(ctx, addressKey{}, address), in)
	}
}

// temporalFlags returns the flags with which the temporal command reaches this workflow's Temporal and namespace; "" if it needs none.
func temporalFlags(ctx workflow.Context) string {
	flags := ""
	if address, ok := ctx.Value(addressKey{}).(string); ok && address != "" {
		flags += " --address " + address
	}
	if namespace := workflow.GetInfo(ctx).Namespace; namespace != "default" {
		flags += " --namespace " + namespace
	}
	return flags
}

// maxPreview limits the changes and the Markdown of a preview in the current details, in bytes.
const maxPreview = 6 << 10

// describePreview shows what a call will change, before anything else about the call. The tool's text stands in code spans and a code block, so
// that it can neither imitate the lines around it nor load an image.
func describePreview(b *strings.Builder, p *jig.Preview) {
	if p == nil {
		return
	}
	if p.Missing != "" {
		fmt.Fprintf(b, "**No preview** of what the call will change: %s\n\n", verbatim(p.Missing))
		return
	}
	fmt.Fprintf(b, "**Preview:** %s\n\n", verbatim(p.Title))
	text := strings.Join(p.Changes, "\n\n")
	if p.Markdown != "" {
		text = strings.Trim(text+"\n\n"+p.Markdown, "\n")
	}
	if text != "" {
		shown := jig.Cut(text, maxPreview)
		b.WriteString(codeBlock(shown))
		if len(shown) < len(text) {
			b.WriteString("(cut here; `jig approvals show` prints all of it)\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "The approval is bound to this preview: %s\n\n", verbatim(p.Binding()))
}

// codeBlock formats text as a code block that no line of the text can close.
func codeBlock(text string) string {
	text = visible.Map(text, func(r rune, hidden bool) rune {
		if r == '\n' {
			return r
		}
		return withoutControls(r, hidden)
	})
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}

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
