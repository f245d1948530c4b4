package starter

import (
	"context"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// located returns where the calls that a user names wait: in the session itself or, if the session waits for a child, there. If that cannot
// be found out, it returns the calls as they were named, and deciding them reports what is wrong.
func (a *app) located(ctx context.Context, e engine, session string, calls []string) ([]protocol.WaitingCall, error) {
	found, err := e.Locate(ctx, a.flags.tenant, session, calls)
	if jig.CodeOf(err) == jig.CodeConflict {
		return nil, err
	}
	if err == nil {
		return found, nil
	}
	found = make([]protocol.WaitingCall, len(calls))
	for i, call := range calls {
		found[i] = protocol.WaitingCall{SessionID: session, Call: call}
	}
	return found, nil
}

// locatedOne is located for one call.
func (a *app) locatedOne(ctx context.Context, e engine, session, call string) (inSession, its string, err error) {
	found, err := a.located(ctx, e, session, []string{call})
	if err != nil {
		return "", "", err
	}
	return found[0].SessionID, found[0].Call, nil
}

// onlyWaiting returns the only call that waits for approval: in a session or, if that is empty, among all that the user may decide. It shows
// the call and, on a terminal, asks whether to go on.
func (a *app) onlyWaiting(ctx context.Context, e engine, session string, answer jig.Answer) (protocol.WaitingCall, error) {
	filter := jig.PendingFilter{SessionID: session, Kind: jig.PendingApproval}
	where := "in session " + session
	if session == "" {
		var err error
		if filter.For, err = a.actor(); err != nil {
			return protocol.WaitingCall{}, err
		}
		where = "that " + filter.For + " may decide"
	}
	p, err := a.single(ctx, e, filter, where, "for approval", func(p jig.Pending) string {
		return a.command(append([]string{string(answer), p.SessionID, p.Call}, a.identity()...)...)
	})
	if err != nil {
		return protocol.WaitingCall{}, err
	}
	in := p.SessionID
	if p.Via != "" { // the card says where the call of the session waits
		in = session
	}
	a.say("%s %s", in, a.cardText(a.err, a.cards(ctx, e, []jig.Pending{p})[0]))
	if a.interactive && !a.json() {
		going, err := a.confirm(ctx, fmt.Sprintf("%s%s it?", strings.ToUpper(string(answer[:1])), string(answer[1:])))
		if err != nil {
			return protocol.WaitingCall{}, err
		}
		if !going {
			a.say("nothing was decided")
			return protocol.WaitingCall{}, silent(exitFailed)
		}
	}
	return protocol.WaitingCall{SessionID: p.SessionID, Call: p.Call, Tool: p.Tool, Digest: p.Digest}, nil
}

// single returns the only call that matches a filter. where and what complete the errors, such as "2 calls in session ses_1 wait for approval";
// command is the command that names one of several calls.
func (a *app) single(ctx context.Context, e engine, filter jig.PendingFilter, where, what string, command func(jig.Pending) string) (jig.Pending, error) {
	page, err := e.Pending(ctx, a.flags.tenant, filter, "", 0)
	if err != nil {
		return jig.Pending{}, err
	}
	list := page.Approvals
	switch len(list) {
	case 0:
		if filter.SessionID != "" {
			if _, err := e.Status(ctx, a.flags.tenant, filter.SessionID); err != nil {
				return jig.Pending{}, err
			}
		}
		return jig.Pending{}, jig.Errorf(jig.CodeNotFound, "no call %s waits %s", where, what).WithField("call")
	case 1:
		return list[0], nil
	}
	commands := make([]string, 0, len(list))
	for _, p := range list[:min(len(list), 10)] {
		commands = append(commands, "  "+command(p))
	}
	return jig.Pending{}, usage(jig.Errorf(jig.CodeInvalidInput, "%d calls %s wait %s", len(list), where, what).WithField("call").
		WithHint("name one of them:\n" + strings.Join(commands, "\n")))
}

// decideThere makes the same decision about calls that wait in one session, and prints the outcomes. If a grant comes with it, it goes on with
// the waiting calls that the grant covers.
func (a *app) decideThere(ctx context.Context, e engine, targets []protocol.WaitingCall, like jig.Decision, yes bool) error {
	like, err := a.reasoned(ctx, like)
	if err != nil {
		return err
	}
	session := targets[0].SessionID
	list := make([]jig.Decision, len(targets))
	for i, target := range targets {
		if target.SessionID != session {
			return usage(jig.Errorf(jig.CodeInvalidInput, "the calls wait in different sessions").WithField("call").
				WithHint("decide them one after the other"))
		}
		list[i] = like
		list[i].Call = target.Call
	}
	if err := a.signDecisions(ctx, e, session, list); err != nil {
		return err
	}
	result, err := e.Decide(ctx, a.flags.tenant, session, list)
	if err != nil {
		return err
	}
	if like.Grant == nil || len(result.Decisions) != 1 || result.Decisions[0].Grant == "" {
		return a.printRuled(session, result, like.Answer)
	}
	return a.withRelease(ctx, e, session, result, like, yes)
}
