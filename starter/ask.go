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

// prompt is a question to the person at the terminal.
type prompt struct {
	pending jig.Pending
	// alike is how many waiting calls are like this one, itself included.
	alike int
}

// wish is an answer that does not decide the call yet.
type wish string

// The wishes: to change the arguments, to approve all calls that are like this one, to read the whole call.
const (
	wishEdit  wish = "edit"
	wishAll   wish = "all"
	wishWhole wish = "whole"
)

// reply is a person's answer to an approval or a question. An empty reply leaves it to somebody else.
type reply struct {
	answer jig.Answer
	reason string
	note   string
	// value is the answer to a question.
	value json.RawMessage
	// input replaces the arguments of an approved call.
	input json.RawMessage
	// alike are the other calls that are approved with this one.
	alike []jig.Pending
	wish  wish
}

// skipped reports whether the person left the decision to somebody else.
func (r reply) skipped() bool { return r.answer == "" && r.value == nil }

// askOnTerminal asks what to do with a waiting call, or for the answer to a question. The call was already shown.
func (a *app) askOnTerminal(ctx context.Context, about prompt) (reply, error) {
	p := about.pending
	if p.Kind == jig.PendingQuestion && p.Question != nil {
		return a.askQuestion(ctx, *p.Question)
	}
	options := []huh.Option[string]{
		huh.NewOption("Approve", string(jig.AnswerApprove)),
		huh.NewOption("Deny", string(jig.AnswerDeny)),
		huh.NewOption("Edit: change the arguments in an editor, then approve", string(wishEdit)),
	}
	if about.alike > 1 {
		all := fmt.Sprintf("Approve all %d calls of %s that wait here", about.alike, oneLine(p.Tool, 80))
		options = append(options, huh.NewOption(all, string(wishAll)))
	}
	options = append(options, huh.NewOption("Show the whole text", string(wishWhole)), huh.NewOption("Skip: leave it to somebody else", ""))
	choice, reason := "", ""
	question := huh.NewSelect[string]().Title(oneLine(fmt.Sprintf("%s %s", p.Call, p.Tool), 120)).Options(options...).Value(&choice)
	why := huh.NewInput().Title("Why not? (optional; the agent sees it)").Value(&reason)
	form := huh.NewForm(
		huh.NewGroup(question),
		huh.NewGroup(why).WithHideFunc(func() bool { return choice != string(jig.AnswerDeny) }),
	)
	if err := a.runForm(ctx, form); err != nil {
		return reply{}, err
	}
	switch wanted := wish(choice); wanted {
	case wishEdit, wishAll, wishWhole:
		return reply{wish: wanted}, nil
	}
	return reply{answer: jig.Answer(choice), reason: strings.TrimSpace(reason)}, nil
}

// runForm shows a form on the terminal. It returns errAborted if the person presses Ctrl-C.
func (a *app) runForm(ctx context.Context, form *huh.Form) error {
	if !a.err.on {
		form = form.WithTheme(huh.ThemeFunc(huh.ThemeBase))
	}
	err := form.WithInput(a.stdin).WithOutput(a.stderr).WithAccessible(a.env["ACCESSIBLE"] != "" || a.env["TERM"] == "dumb").RunWithContext(ctx)
	switch {
	case errors.Is(err, huh.ErrUserAborted), ctx.Err() != nil:
		return errAborted
	case err != nil:
		return fmt.Errorf("ask on the terminal: %w", err)
	}
	return nil
}
