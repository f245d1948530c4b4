package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"

	"github.com/jig-run/jig"
)

// errAborted means that a person pressed Ctrl-C instead of answering.
var errAborted = errors.New("interrupted")

// reply is a person's answer to an approval or a question. An empty reply leaves it to somebody else.
type reply struct {
	answer jig.Answer
	reason string
	note   string
	// value is the answer to a question.
	value json.RawMessage
}

// skipped reports whether the person left the decision to somebody else.
func (r reply) skipped() bool { return r.answer == "" && r.value == nil }

// askOnTerminal shows an approval and asks what to do with it, or asks for the answer to a question that was already shown.
func (a *app) askOnTerminal(ctx context.Context, p jig.Pending) (reply, error) {
	if p.Kind == jig.PendingQuestion && p.Question != nil {
		return a.askQuestion(ctx, *p.Question)
	}
	choice, reason := "", ""
	question := huh.NewSelect[string]().
		Title(fmt.Sprintf("%s wants to run %s", p.Call, p.Tool)).
		Description(pendingInWords(p)).
		Options(
			huh.NewOption("Approve", string(jig.AnswerApprove)),
			huh.NewOption("Deny", string(jig.AnswerDeny)),
			huh.NewOption("Skip: leave it to somebody else", ""),
		).Value(&choice)
	why := huh.NewInput().Title("Why not? (optional; the agent sees it)").Value(&reason)
	form := huh.NewForm(
		huh.NewGroup(question),
		huh.NewGroup(why).WithHideFunc(func() bool { return choice != string(jig.AnswerDeny) }),
	)
	if err := a.runForm(ctx, form); err != nil {
		return reply{}, err
	}
	return reply{answer: jig.Answer(choice), reason: strings.TrimSpace(reason)}, nil
}

// runForm shows a form on the terminal. It returns errAborted if the person presses Ctrl-C.
func (a *app) runForm(ctx context.Context, form *huh.Form) error {
	err := form.WithInput(a.stdin).WithOutput(a.stderr).WithAccessible(a.env["ACCESSIBLE"] != "" || a.env["TERM"] == "dumb").RunWithContext(ctx)
	switch {
	case errors.Is(err, huh.ErrUserAborted), ctx.Err() != nil:
		return errAborted
	case err != nil:
		return fmt.Errorf("ask on the terminal: %w", err)
	}
	return nil
}

// formWidth is the width of the lines of a preview in a form, which has a frame of its own.
const formWidth = 76

// pendingInWords describes a waiting call, for the form that asks about it.
func pendingInWords(p jig.Pending) string {
	var b strings.Builder
	if p.Preview != nil {
		b.WriteString(previewText(palette{}, *p.Preview, formWidth) + "\n")
	}
	if p.Summary != "" {
		b.WriteString(oneLine(p.Summary, 200) + "\n")
	}
	b.WriteString(inputText(p))
	for _, reason := range p.Reasons {
		b.WriteString("\n· " + oneLine(reason, 200))
	}
	for _, fact := range pendingFacts(p) {
		b.WriteString("\n" + fact)
	}
	return b.String()
}
