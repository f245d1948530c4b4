package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// bulkBatch is the maximum number of a session's calls that one request decides.
const bulkBatch = 50

// bulkFlags are the flags of a decision about all approvals that match a filter.
type bulkFlags struct {
	filter   pendingFlags
	all, yes bool
}

func (f *bulkFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "decide all calls that match the filters, instead of SESSION CALL…")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --all: do not ask for confirmation")
	f.filter.add(cmd)
}

// args returns a check of the arguments. With --all it accepts no arguments; without --all it uses the check that it was given.
func (f *bulkFlags) args(one cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		narrowed := f.filter != pendingFlags{}
		switch {
		case !f.all && (f.yes && !givesGrant(cmd) || narrowed):
			return usagef("filters and --yes need --all")
		case !f.all:
			return one(cmd, args)
		case len(args) > 0:
			return usagef("with --all, filters select the calls: leave out SESSION and CALL")
		case !narrowed:
			return usagef("--all needs a filter: --tool NAME, --agent NAME and so on; --tool '*' selects everything")
		}
		return nil
	}
}

// bulkItem is the outcome for one approval.
type bulkItem struct {
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	jig.Ruled
}

// bulkFailed is the outcome of an item whose decision could not be signed or sent, or whose outcome the worker did not report.
const bulkFailed = "failed"

// bulkReport is the JSON output of a bulk decision.
type bulkReport struct {
	Decisions []bulkItem `json:"decisions"`
	Accepted  int        `json:"accepted"`
	// Refused counts the items that were not accepted, including failed ones.
	Refused int `json:"refused"`
}

// decideAll makes the same decision about all approvals that match the filter, each bound to the digest of the call as it was listed. It
// asks for confirmation first, unless --yes was given.
func (a *app) decideAll(ctx context.Context, f bulkFlags, like jig.Decision) error {
	filter, err := f.filter.filter(time.Now())
	if err != nil {
		return err
	}
	filter.Kind = jig.PendingApproval
	if !f.yes && (a.json() || !a.interactive) {
		return usagef("cannot ask for confirmation without a terminal: check with `%s`, then add --yes", a.command(append([]string{"approvals"}, f.words()...)...))
	}
	return a.with(ctx, func(e engine) error {
		page, err := e.Pending(ctx, a.flags.tenant, filter, "", 0)
		if err != nil {
			return err
		}
		list := page.Approvals
		if len(list) == 0 {
			if a.json() {
				return a.printJSON(bulkReport{Decisions: []bulkItem{}})
			}
			a.say("no waiting call matches the filters")
			return nil
		}
		if !f.yes {
			a.sayCalls(list)
			going, err := a.confirm(ctx, fmt.Sprintf("%s %s?", strings.ToUpper(string(like.Answer[:1]))+string(like.Answer[1:]),
				plural(len(list), "call", "calls")))
			if err != nil {
				return err
			}
			if !going {
				a.say("nothing was decided")
				return silent(exitFailed)
			}
			if like, err = a.reasoned(ctx, like); err != nil {
				return err
			}
		}
		return a.printBulk(a.decideEach(ctx, e, list, like), like.Answer)
	})
}

// words returns the filters as the user would type them.
func (f *bulkFlags) words() []string {
	var words []string
	for _, flag := range []struct{ name, value string }{
		{"--tool", f.filter.tool},
		{"--session", f.filter.session},
		{"--agent", f.filter.agent},
		{"--requested-by", f.filter.requestedBy},
		{"--older", f.filter.older},
		{"--newer", f.filter.newer},
	} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	return words
}

// sayCalls prints to stderr the calls that are about to get the same decision, one on a line.
func (a *app) sayCalls(list []jig.Pending) {
	for _, p := range list {
		a.say("%s", a.cardLine(a.err, p))
	}
	a.say("  %s", a.err.dim("see one as a whole with: "+a.command("approvals", "show", list[0].SessionID, list[0].Call)))
}

// confirm asks a person to confirm the action. The default answer is no.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	going := false
	err := a.runForm(ctx, huh.NewForm(huh.NewGroup(huh.NewConfirm().Title(question).Value(&going))))
	return going && err == nil, err
}

// decideEach sends the decisions in batches per session and returns one result per approval. If a batch fails, it continues
// with the next one; after an UNAVAILABLE error, or if ctx is canceled, it does not try the rest.
func (a *app) decideEach(ctx context.Context, e engine, list []jig.Pending, like jig.Decision) []bulkItem {
	var sessions []string
	of := map[string][]jig.Pending{}
	for _, p := range list {
		if _, known := of[p.SessionID]; !known {
			sessions = append(sessions, p.SessionID)
		}
		of[p.SessionID] = append(of[p.SessionID], p)
	}
	items := make([]bulkItem, 0, len(list))
	var gone error
	for _, session := range sessions {
		for batch := range slices.Chunk(of[session], bulkBatch) {
			if gone == nil && ctx.Err() != nil {
				gone = ctx.Err()
			}
			if gone != nil {
				items = append(items, failedItems(batch, "not tried: "+jig.AsError(gone).Message)...)
				continue
			}
			done, err := a.decideBatch(ctx, e, batch, like)
			items = append(items, done...)
			if jig.CodeOf(err) == jig.CodeUnavailable {
				gone = err
			}
		}
	}
	return items
}

// decideBatch sends the decisions on approvals of one session, each with the digest that was listed. It returns an error and also records
// it in every item.
func (a *app) decideBatch(ctx context.Context, e engine, batch []jig.Pending, like jig.Decision) ([]bulkItem, error) {
	decisions := make([]jig.Decision, len(batch))
	for i, p := range batch {
		decisions[i] = like
		decisions[i].Call, decisions[i].Digest = p.Call, p.Digest
	}
	if err := a.signDecisions(ctx, e, batch[0].SessionID, decisions); err != nil {
		return failedItems(batch, jig.AsError(err).Message), err
	}
	result, err := e.Decide(ctx, a.flags.tenant, batch[0].SessionID, decisions)
	if err != nil {
		return failedItems(batch, jig.AsError(err).Message), err
	}
	items := failedItems(batch, "the worker did not report the outcome")
	for i, p := range batch {
		if at := slices.IndexFunc(result.Decisions, func(r jig.Ruled) bool { return r.Call == p.Call }); at >= 0 {
			items[i].Ruled = result.Decisions[at]
			items[i].Template = ""
		}
	}
	return items, nil
}

func failedItems(batch []jig.Pending, why string) []bulkItem {
	items := make([]bulkItem, len(batch))
	for i, p := range batch {
		items[i] = bulkItem{SessionID: p.SessionID, Tool: p.Tool, Ruled: jig.Ruled{Call: p.Call, Outcome: bulkFailed, Reason: why}}
	}
	return items
}

// bulkLine formats the result of one item.
func (a *app) bulkLine(c palette, item bulkItem, answer jig.Answer) string {
	if item.Outcome == bulkFailed {
		return fmt.Sprintf("%s %s the decision failed: %s", item.SessionID, c.red(item.Call), oneLine(item.Reason, 0))
	}
	return item.SessionID + " " + a.ruledLine(c, item.Ruled, answer, item.Tool, false)
}

// printBulk prints the result of each item. The exit code is 1 if an item was not accepted.
func (a *app) printBulk(items []bulkItem, answer jig.Answer) error {
	report := bulkReport{Decisions: items}
	for _, item := range items {
		if item.Outcome == jig.DecisionAccepted {
			report.Accepted++
		} else {
			report.Refused++
		}
	}
	code := exitDone
	if report.Refused > 0 {
		code = exitFailed
	}
	if a.json() {
		return a.exitJSON(report, code)
	}
	for _, item := range items {
		a.line("%s", a.bulkLine(a.out, item, answer))
	}
	a.say("%d accepted, %d not accepted", report.Accepted, report.Refused)
	return silent(code)
}

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
			view, err := e.Status(ctx, a.flags.tenant, filter.SessionID)
			if err != nil {
				return jig.Pending{}, err
			}
			if view.Status.Final() {
				return jig.Pending{}, jig.Errorf(jig.CodeConflict, "session %s has ended (%s): nothing in it is waiting", filter.SessionID, view.Status).
					WithField("session")
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
