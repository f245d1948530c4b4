package starter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"charm.land/huh/v2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/strictjson"
)

// errAborted means that a person pressed Ctrl-C instead of answering.
var errAborted = errors.New("interrupted")

// prompt is a question to the person at the terminal.
type prompt struct {
	pending jig.Pending
	// alike is how many waiting calls are like this one, itself included.
	alike int
}

// promptAction is an answer that does not decide the call yet.
type promptAction string

// The actions: to change the arguments, to approve all calls that are like this one, to read the whole call.
const (
	actionEdit  promptAction = "edit"
	actionAll   promptAction = "all"
	actionWhole promptAction = "whole"
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
	alike  []jig.Pending
	action promptAction
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
		huh.NewOption("Edit: change the arguments in an editor, then approve", string(actionEdit)),
	}
	if about.alike > 1 {
		all := fmt.Sprintf("Approve all %d calls of %s that wait here", about.alike, oneLine(p.Tool, 80))
		options = append(options, huh.NewOption(all, string(actionAll)))
	}
	options = append(options, huh.NewOption("Show the whole text", string(actionWhole)), huh.NewOption("Skip: leave it to somebody else", ""))
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
	switch wanted := promptAction(choice); wanted {
	case actionEdit, actionAll, actionWhole:
		return reply{action: wanted}, nil
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

// editText lets the person change a text in the editor that VISUAL or EDITOR names (default: vi), and returns what was saved.
func (a *app) editText(ctx context.Context, text string) ([]byte, error) {
	words := strings.Fields(cmp.Or(strings.TrimSpace(a.env["VISUAL"]), strings.TrimSpace(a.env["EDITOR"]), "vi"))
	file, err := os.CreateTemp("", "jig-*.json") // only the user can read it
	if err != nil {
		return nil, fmt.Errorf("make a file for the editor: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("write a file for the editor: %w", err)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file.Name())...) //nolint:gosec // the user names the editor
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.environ, a.stdin, a.stderr, a.stderr
	if err := cmd.Run(); err != nil {
		return nil, usagef("the editor %s failed: %w; set EDITOR to another one", words[0], err)
	}
	changed, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("read the file of the editor: %w", err)
	}
	return changed, nil
}

// handle answers one waiting call or shows how to answer it. It reports whether the call has been answered, now or earlier. It does not ask
// twice about a call that keeps waiting, for example for another person.
func (f *follower) handle(ctx context.Context, p jig.Pending) (answered bool, err error) {
	if answered, handled := f.handledBefore(p); handled {
		return answered, nil
	}
	by, err := f.actor()
	if err != nil {
		return false, err
	}
	said := reply{answer: jig.AnswerApprove, note: "approved by --yes"}
	if p.Kind != jig.PendingApproval || f.mode != answerYes { // what --yes approves is only reported
		k := f.cards(ctx, f.engine, []jig.Pending{p})[0]
		if p.Kind == jig.PendingReconcile || f.mode != answerAsk || k.review.Refusal != "" {
			f.showCard(k)
			f.note(p, false)
			return false, nil
		}
		f.say("%s", f.cardText(f.err, k))
		if said, err = f.askUntilAnswered(ctx, p); err != nil {
			return false, err
		}
		if said.skipped() {
			f.note(p, false)
			return false, nil
		}
	}
	if len(said.alike) > 0 {
		return f.approveAlike(ctx, said, by)
	}
	ruled, err := f.send(ctx, p, by, said)
	if err != nil {
		return false, f.decideFailed(err)
	}
	if said.value != nil {
		said.answer = ruledAnswered
	}
	settled := true
	for _, r := range ruled.Decisions {
		f.say("%s", f.ruledLine(f.err, r, said.answer, p.Tool, f.mode == answerYes))
		settled = settled && settles(r)
	}
	f.note(p, settled)
	if !settled && f.mode == answerYes { // somebody else must decide
		f.showCard(f.cards(ctx, f.engine, []jig.Pending{p})[0])
	}
	return settled, nil
}

// settles reports whether nobody else needs to decide after a decision.
func settles(r jig.Ruled) bool {
	return r.Outcome == jig.DecisionAccepted && r.Status != jig.CallWaiting
}

// askUntilAnswered asks the person at the terminal about a call until there is a decision. A call that somebody else decided meanwhile is skipped.
func (f *follower) askUntilAnswered(ctx context.Context, p jig.Pending) (reply, error) {
	alike := f.alike(p)
	var draft []byte
	for {
		said, err := f.ask(ctx, prompt{pending: p, alike: len(alike)})
		if err != nil {
			return said, err
		}
		switch said.action {
		case actionAll:
			said, err = f.confirmAlike(ctx, alike)
		case actionWhole:
			err = f.showWhole(ctx, p)
		case actionEdit:
			said.input, draft, err = f.edited(ctx, p, draft)
			if said.input != nil {
				said.answer = jig.AnswerApprove
			}
		default:
			return said, nil
		}
		switch code := jig.CodeOf(err); {
		case err != nil && (code == jig.CodeNotFound || code == jig.CodeConflict):
			f.complain(err)
			return reply{}, nil
		case isUsage(err):
			f.complain(err) // the person can try again
		case err != nil:
			return reply{}, err
		}
		if !said.skipped() {
			return said, nil
		}
	}
}

// alike returns the waiting calls of the same tool that nobody has dealt with yet, the call itself included.
func (f *follower) alike(p jig.Pending) []jig.Pending {
	var list []jig.Pending
	for _, other := range f.view.Pending {
		other.SessionID = cmp.Or(other.SessionID, f.id)
		if _, handled := f.handledBefore(other); !handled && other.Kind == jig.PendingApproval && other.Tool == p.Tool {
			list = append(list, other)
		}
	}
	return list
}

// confirmAlike shows the calls that would be approved together and asks whether to go on.
func (f *follower) confirmAlike(ctx context.Context, alike []jig.Pending) (reply, error) {
	f.sayCalls(alike)
	going, err := f.confirm(ctx, fmt.Sprintf("Approve %s?", plural(len(alike), "call", "calls")))
	if err != nil || !going {
		return reply{}, err
	}
	return reply{answer: jig.AnswerApprove, alike: alike}, nil
}

// approveAlike approves several calls, each bound to the digest that was shown.
func (f *follower) approveAlike(ctx context.Context, said reply, by string) (answered bool, err error) {
	answered = true
	items := f.decideEach(ctx, f.engine, said.alike, jig.Decision{By: by, Answer: said.answer, Note: said.note})
	for _, item := range items {
		f.say("%s", f.bulkLine(f.err, item, said.answer))
		for _, p := range said.alike {
			if p.SessionID == item.SessionID && p.Call == item.Call {
				f.note(p, settles(item.Ruled))
			}
		}
		answered = answered && settles(item.Ruled)
	}
	return answered, nil
}

// showWhole shows a waiting call with its whole arguments and its whole preview.
func (f *follower) showWhole(ctx context.Context, p jig.Pending) error {
	shown, err := f.engine.Show(ctx, f.flags.tenant, p.SessionID, p.Call)
	if err != nil {
		return err
	}
	whole, input := shown.Pending, shown.Input
	if whole.Digest != p.Digest {
		return changedMeanwhile(p.Call)
	}
	whole.Input, whole.Truncated, whole.SessionID = input, false, p.SessionID
	f.say("%s\n  digest %s\n%s", f.cardText(f.err, card{Pending: whole, comparison: shown.Comparison, whole: true}), whole.Digest, similarText(f.err, shown.Similar))
	return nil
}

func changedMeanwhile(call string) error {
	return jig.Errorf(jig.CodeConflict, "call %s has changed since it was shown", call).WithField("call")
}

// edited lets the person change the whole arguments of a call in an editor, beginning with the draft of an earlier try if there is one. It
// returns no input if nothing was changed.
func (f *follower) edited(ctx context.Context, p jig.Pending, draft []byte) (input json.RawMessage, text []byte, err error) {
	shown, err := f.engine.Show(ctx, f.flags.tenant, p.SessionID, p.Call)
	if err != nil {
		return nil, draft, err
	}
	whole, before := shown.Pending, shown.Input
	if whole.Digest != p.Digest {
		return nil, draft, changedMeanwhile(p.Call)
	}
	asked := []byte(prettyJSON(before) + "\n")
	if text, err = f.editText(ctx, cmp.Or(string(draft), string(asked))); err != nil {
		return nil, draft, err
	}
	if bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(asked)) {
		f.say("nothing was changed")
		return nil, nil, nil
	}
	if err := strictjson.Check(text); err != nil {
		return nil, text, unreadable("the changed arguments are not JSON", err)
	}
	return json.RawMessage(bytes.TrimSpace(text)), nil, nil
}

// send sends a person's answer. If there is a key, the answer is signed for the digest that was shown.
func (f *follower) send(ctx context.Context, p jig.Pending, by string, said reply) (client.DecideResult, error) {
	if said.value != nil {
		answer := jig.Reply{Call: p.Call, Value: said.value, By: by, Note: said.note}
		if err := f.signReply(p.SessionID, &answer, p.Digest); err != nil {
			return client.DecideResult{}, err
		}
		return f.engine.Reply(ctx, f.flags.tenant, p.SessionID, answer)
	}
	decisions := []jig.Decision{{
		Call: p.Call, By: by, Answer: said.answer, Digest: p.Digest, Input: said.input, Note: said.note, Reason: said.reason,
	}}
	if err := f.signDecisions(ctx, f.engine, p.SessionID, decisions); err != nil {
		return client.DecideResult{}, err
	}
	return f.engine.Decide(ctx, f.flags.tenant, p.SessionID, decisions)
}
