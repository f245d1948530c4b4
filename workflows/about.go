package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
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
