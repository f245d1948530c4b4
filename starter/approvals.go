package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

// pendingFlags are the flags that filter the waiting calls.
type pendingFlags struct {
	tool, kind, session, agent, requestedBy string
	older, newer                            string
}

func (f *pendingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "only calls of this tool, or of a category such as file.*")
	flags.StringVar(&f.session, "session", "", "only calls of this session")
	flags.StringVar(&f.agent, "agent", "", "only calls of this agent")
	flags.StringVar(&f.requestedBy, "requested-by", "", "only calls requested by this principal")
	flags.StringVar(&f.older, "older", "", "only calls that have waited longer than this, e.g. 1h or 2d")
	flags.StringVar(&f.newer, "newer", "", "only calls that have waited less than this")
}

// filter converts the flags to a filter.
func (f *pendingFlags) filter(now time.Time) (jig.PendingFilter, error) {
	p := jig.PendingFilter{Tool: f.tool, Kind: jig.PendingKind(f.kind), SessionID: f.session, Agent: f.agent, RequestedBy: f.requestedBy}
	switch p.Kind {
	case "", jig.PendingApproval, jig.PendingReconcile, jig.PendingQuestion:
	default:
		return p, usagef("--kind is %q; it must be approval, reconcile or question", f.kind)
	}
	var err error
	if p.Before, err = ago("--older", f.older, now); err != nil {
		return p, err
	}
	p.After, err = ago("--newer", f.newer, now)
	return p, err
}

// ago parses text as a duration and returns the time that long before now. For an empty text it returns the zero time.
func ago(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d <= 0 {
		return time.Time{}, usagef("%s is %q; write e.g. 45m, 12h or 30d", flag, text)
	}
	return now.Add(-d).UTC(), nil
}

func (a *app) approvalsCommand() *cobra.Command {
	cmd := a.approvalsListCommand("approvals")
	list := a.approvalsListCommand("list")
	list.Example = `  jig approvals list --mine`
	cmd.AddCommand(list, a.showCommand(), a.statisticsCommand())
	return cmd
}

// approvalsListCommand returns the command that lists waiting calls, under a name.
func (a *app) approvalsListCommand(name string) *cobra.Command {
	var f pendingFlags
	var h historyFlags
	var limit int
	var after string
	var mine, decided bool
	cmd := &cobra.Command{
		Use:   name,
		Short: "List the calls that wait for a person, oldest first, or decisions about calls",
		Long: `List the calls that wait for a person, oldest first. --limit prints one page; pass its cursor to --after to get the next one.
With --decided, or a flag that selects decisions, list decisions about calls, the latest first, with what became of the calls.
JSON output: {"approvals": […], "next_cursor"?}. A decided call has the member "decided".`,
		Example: `  jig approvals
  jig approvals --decided --by me --since 7d
  jig approvals --decided --tool 'ledger.*' --outcome denied --since 2026-11-01 --until 2026-12-01
  jig approvals --mine
  jig approvals --tool 'file.*' --older 1h --limit 20
  jig approvals --session ses_… --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit is %d; it must be 1 or more", limit)
			}
			if decided || h != (historyFlags{}) {
				return a.decisions(cmd.Context(), f, h, mine, after, limit)
			}
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			if mine {
				if filter.For, err = a.actor(); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), func(e engine) error {
				narrow := filter
				narrow.SessionID = ""
				var page client.PendingPage
				if narrow == (jig.PendingFilter{}) && limit == 0 && after == "" { // older workers know only this request
					page.Approvals, err = e.Approvals(cmd.Context(), a.flags.tenant, f.session)
				} else {
					page, err = e.Pending(cmd.Context(), a.flags.tenant, filter, after, limit)
				}
				if err != nil {
					return err
				}
				return a.printPending(cmd.Context(), e, f.session, page)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&decided, "decided", false, "decisions about calls, the latest first, instead of calls that wait")
	h.add(cmd, "decisions", "only decisions since this: a duration such as 7d, or a time such as 2026-12-24 or 2026-12-24T15:00:00Z")
	cmd.Flags().StringVar(&f.kind, "kind", "", "only calls of this kind: approval, reconcile or question")
	cmd.Flags().BoolVar(&mine, "mine", false, "only calls that you (--as, or the signing key's principal) may decide and have not decided yet")
	cmd.Flags().IntVar(&limit, "limit", 0, "print at most this many (default all)")
	cmd.Flags().StringVar(&after, "after", "", "continue after this cursor")
	return cmd
}

// decisions lists decisions, by the flags that filter them.
func (a *app) decisions(ctx context.Context, f pendingFlags, h historyFlags, mine bool, after string, limit int) error {
	if mine || f.kind != "" || f.requestedBy != "" || f.older != "" || f.newer != "" {
		return usagef("--mine, --kind, --requested-by, --older and --newer filter calls that wait; decisions are filtered by --by, --outcome, --since and --until")
	}
	filter, err := h.filter(a, time.Now())
	if err != nil {
		return err
	}
	filter.Tool, filter.Agent = f.tool, f.agent
	if f.session != "" {
		filter.SessionID = a.session(f.session)
	}
	return a.with(ctx, func(e engine) error { return a.listDecisions(ctx, e, filter, after, limit) })
}

// printPending prints a page of calls that wait: those of a session and of its children, or those of all sessions.
func (a *app) printPending(ctx context.Context, e engine, session string, page client.PendingPage) error {
	if a.json() {
		return a.printJSON(client.PendingPage{Approvals: append([]jig.Pending{}, page.Approvals...), Next: page.Next})
	}
	if len(page.Approvals) == 0 {
		a.say("no call is waiting")
	}
	for _, k := range a.cards(ctx, e, page.Approvals) {
		in := k.SessionID
		if k.Via != "" { // the card says where the call of the session waits
			in = a.session(session)
		}
		if err := a.printCard(k, in+" "); err != nil {
			return err
		}
	}
	if page.Next != "" {
		a.say("there is more: --after %s", page.Next)
	}
	return nil
}

func (a *app) showCommand() *cobra.Command {
	document := ""
	cmd := &cobra.Command{
		Use:   "show SESSION [CALL]",
		Short: "Show a call that waits or waited for a person, with its full arguments",
		Long: `Show a waiting call with its full arguments; lists and events shorten long ones to 2 KiB. The digest covers exactly these arguments:
an approval with --digest is refused if anything has changed since. Without CALL, it shows the only call that waits in the session.
With --document it prints only the whole text of one of the documents that the call registers or installs.
For a call that waits for approval, it says whether the tool's contract or what the call would change is different now; that is found out at most
once a minute, and changes nothing.
Earlier decisions about calls of the tool are shown with the difference between the arguments.
A decided call is shown with its decisions and its outcome, even after its session was deleted.
JSON output: {"pending": …, "input": …, "comparison": …, "similar": […], "to_sign": […], "decisions": […]}, where to_sign has the claims of tokens for the answers; with --document: {"path", "body"}.`,
		Example: `  jig approvals show ses_… 3.1
  jig approvals show ses_… 1.1 --document 'policy shop'`,
		Args: sessionArgs(1, 2),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			session, call, err := a.waitingIn(ctx, e, args)
			if err != nil {
				return err
			}
			shown, err := e.Show(ctx, a.flags.tenant, session, call)
			if err != nil {
				return err
			}
			if document != "" {
				return a.showDocument(shown.Input, document)
			}
			pending := &shown.Pending
			pending.SessionID = cmp.Or(pending.SessionID, session)
			if a.json() {
				if a.server == nil { // a server answers about the principal of the credential
					shown = shown.By(a.flags.as)
				}
				return a.printJSON(shown)
			}
			if pending.Decided == nil || pending.Decided.Status != "" {
				pending.Input, pending.Truncated = shown.Input, false
			}
			if pending.Decided != nil {
				return a.print("%s %s\n  digest %s", pending.SessionID, a.decidedText(a.out, shown), pending.Digest)
			}
			k := a.cards(ctx, e, []jig.Pending{*pending})[0]
			k.comparison, k.whole = shown.Comparison, true
			return a.print("%s %s\n  digest %s\n%s%s", k.SessionID, a.cardText(a.out, k), k.Digest, similarText(a.out, shown.Similar), a.commandsText(a.out, k))
		}),
	}
	cmd.Flags().StringVar(&document, "document", "", "print only this document: its file, its name, or its kind and name")
	return cmd
}

// waitingIn returns where the call that a user names waits. If only the session is named, it is the only call that waits there.
func (a *app) waitingIn(ctx context.Context, e engine, args []string) (session, call string, err error) {
	session = a.session(args[0])
	if len(args) > 1 {
		return a.locatedOne(ctx, e, session, args[1])
	}
	p, err := a.single(ctx, e, jig.PendingFilter{SessionID: session}, "in session "+session, "for a person", func(p jig.Pending) string {
		return a.command("approvals", "show", p.SessionID, p.Call)
	})
	return p.SessionID, p.Call, err
}

// similarText formats earlier decisions about calls of the same tool.
func similarText(c palette, list []protocol.SimilarDecision) string {
	var b strings.Builder
	for _, s := range list {
		difference := "the same arguments"
		if s.Difference != "" {
			difference = "the difference to its arguments:"
		}
		b.WriteString(c.dim(fmt.Sprintf("  earlier: %s %s, %s by %s, %s; %s", oneLine(s.SessionID, 0), oneLine(s.Call, 0), s.Answer, oneLine(s.By, 80),
			s.At.Format(time.RFC3339), difference)) + "\n")
		if s.Difference != "" {
			b.WriteString(indent(safeText(s.Difference), "    ") + "\n")
		}
	}
	return b.String()
}

// givenDocument is a document among the arguments of catalog.put or bundle.install.
type givenDocument struct {
	Path string `json:"path"`
	Body string `json:"body"`
}

// names returns the texts that name the document on the command line. A document that cannot be read has only its file.
func (d givenDocument) names() []string {
	doc, problems := spec.Load(d.Path, []byte(d.Body))
	if len(problems.Errors()) > 0 {
		return []string{d.Path}
	}
	return []string{d.Path, doc.Name, string(doc.Kind) + " " + doc.Name}
}

// showDocument prints one of the documents among the arguments of a call.
func (a *app) showDocument(input json.RawMessage, name string) error {
	var in struct{ Documents, Files []givenDocument }
	if err := json.Unmarshal(input, &in); err != nil {
		return jig.Errorf(jig.CodeNotFound, "the call has no documents").WithField("document")
	}
	all := slices.Concat(in.Documents, in.Files)
	var found []givenDocument
	var known []string
	for _, d := range all {
		names := d.names()
		known = append(known, names[len(names)-1])
		if slices.Contains(names, name) {
			found = append(found, d)
		}
	}
	switch {
	case len(all) == 0:
		return jig.Errorf(jig.CodeNotFound, "the call has no documents").WithField("document").WithHint("leave out --document")
	case len(found) == 0:
		return jig.Errorf(jig.CodeNotFound, "the call has no document %q", name).WithField("document").WithHint(suggest.OrKnown(name, known))
	case len(found) > 1:
		return usagef("%d documents of the call are called %q: name the file", len(found), name)
	case a.json():
		return a.printJSON(found[0])
	}
	return a.print("%s", strings.TrimSuffix(safeText(found[0].Body), "\n"))
}
