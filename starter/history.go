package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// historyFlags select decisions or rows of the audit.
type historyFlags struct {
	by, outcome, since, until string
}

func (f *historyFlags) add(cmd *cobra.Command, what, since string) {
	flags := cmd.Flags()
	flags.StringVar(&f.by, "by", "", "only "+what+" of this principal; me is you")
	flags.StringVar(&f.outcome, "outcome", "", "only decisions with this outcome: approved, granted (by a standing approval), denied, expired, withdrawn, answered or reconciled")
	flags.StringVar(&f.since, "since", "", since)
	flags.StringVar(&f.until, "until", "", "only "+what+" before this: a duration or a time as for --since")
	completeFlag(cmd, "outcome", texts(audit.Outcomes())...)
}

// texts converts names to strings.
func texts[T ~string](names []T) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return list
}

// filter converts the flags to a filter.
func (f *historyFlags) filter(a *app, now time.Time) (filter protocol.AuditFilter, err error) {
	filter.By, filter.Outcome = f.by, audit.Outcome(f.outcome)
	if f.by == "me" {
		if filter.By, err = a.actor(); err != nil {
			return filter, err
		}
	}
	if f.since != "" {
		if filter.Since, err = longAgo("--since", f.since, now); err != nil {
			return filter, err
		}
	}
	if f.until != "" {
		filter.Until, err = longAgo("--until", f.until, now)
	}
	return filter, err
}

// decisionsListed is how many decisions `approvals --decided` prints unless told otherwise.
const decisionsListed = 50

// listDecisions prints a page of decisions. It reads on until the page is full, because filters may leave gaps.
func (a *app) listDecisions(ctx context.Context, e engine, filter protocol.AuditFilter, after string, limit int) error {
	limit = cmp.Or(limit, decisionsListed)
	all := protocol.ApprovalList{Approvals: []jig.Pending{}, Next: after}
	for {
		page, err := e.Decisions(ctx, protocol.DecisionsRequest{Tenant: a.flags.tenant, Filter: filter, Cursor: all.Next, Limit: min(limit-len(all.Approvals), 40)})
		if err != nil {
			return err
		}
		all.Approvals, all.Next = append(all.Approvals, page.Approvals...), page.Next
		if page.Next == "" || len(all.Approvals) >= limit {
			break
		}
	}
	if a.json() {
		return a.printJSON(all)
	}
	if len(all.Approvals) == 0 {
		a.say("no decisions")
	}
	for _, p := range all.Approvals {
		a.line("%s", a.decisionLine(a.out, p))
	}
	if all.Next != "" {
		a.say("there is more: --after %s", all.Next)
	}
	return a.failed
}

// decisionLine formats a decision on one line: when, what and who, about which call, and what became of it.
func (a *app) decisionLine(c palette, p jig.Pending) string {
	columns := []string{c.dim(p.Decided.At.Local().Format(time.DateTime)), decisionText(c, *p.Decided)}
	for _, what := range []string{p.SessionID, p.Call, p.Tool} {
		if what != "" {
			columns = append(columns, oneLine(what, 120))
		}
	}
	line := strings.Join(columns, " ")
	if what := titleOf(p.Preview, p.Input); what != "" {
		line += " · " + what
	}
	if now := a.becameOf(c, *p.Decided); now != "" {
		line += " → " + now
	}
	return line
}

// decisionText says how and by whom a call was decided.
func decisionText(c palette, d jig.Decided) string {
	word := d.Outcome
	switch audit.Outcome(d.Outcome) {
	case audit.OutcomeApproved, audit.OutcomeGranted, audit.OutcomeAnswered, audit.OutcomeReconciled:
		if d.Edited {
			word += " with changes"
		}
		if d.InPart {
			word += " in part"
		}
		word = c.green(word)
	case audit.OutcomeDenied:
		word = c.red(word)
	case audit.OutcomeExpired, audit.OutcomeWithdrawn:
		word = c.yellow(word)
	}
	if d.By != "" {
		word += " by " + c.bold(oneLine(d.By, 60)) + proofText(d.Proof.Text(d.Claimed, d.Key))
	}
	if d.Grant != "" {
		word += " with " + oneLine(d.Grant, 60)
	}
	return word
}

// proofText returns the words about a proof, which begin with a space, on one line.
func proofText(words string) string {
	if words == "" {
		return ""
	}
	return " " + oneLine(words, 80)
}

// becameOf says what a call has come to; "" if nobody knows any more.
func (a *app) becameOf(c palette, d jig.Decided) string {
	if d.Status == "" {
		return ""
	}
	text := d.Result
	if d.Error != nil {
		text = string(d.Error.Code) + ": " + d.Error.Message
	}
	return strings.TrimSuffix(a.statusWord(c, string(d.Status))+": "+oneLine(text, 120), ": ")
}

// titleOf says on one line what a call does: the title of its preview, or else the beginning of its arguments.
func titleOf(p *jig.Preview, input json.RawMessage) string {
	if p != nil && p.Title != "" {
		return oneLine(p.Title, 120)
	}
	shown, _ := jig.Excerpt(input, 120)
	return oneLine(string(shown), 0)
}

// decidedText formats a decided call for people: the decisions about it, the latest first, what it has come to, and what was shown.
func (a *app) decidedText(c palette, shown protocol.ShownCall) string {
	p, width := shown.Pending, a.width()
	lines := []string{fmt.Sprintf("%s %s: %s", c.yellow(oneLine(p.Call, 0)), c.bold(oneLine(p.Tool, 0)), decisionText(c, *p.Decided))}
	if now := a.becameOf(c, *p.Decided); now != "" {
		lines = append(lines, "  the call: "+now)
	} else {
		lines = append(lines, sentence("the session was deleted: what became of the call is not known here, and long arguments are shortened", c.dim, width))
	}
	for _, d := range shown.Decisions {
		line := moment(d.At) + " " + decisionText(palette{}, d)
		if why := strings.TrimSuffix(strings.Join([]string{d.Reason, d.Note}, "; "), "; "); why != "" {
			line += ": " + strings.TrimPrefix(why, "; ")
		}
		lines = append(lines, sentence(oneLine(line, 400), nil, width))
	}
	return strings.Join(append(lines, a.bodyLines(c, card{Pending: p, whole: true})...), "\n")
}
