package starter

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
)

// proof is a command's proof of who decides: a key, or a token that was created elsewhere.
type proof struct {
	token string
	// by is the deciding principal, after settle; empty if only the token says who it is.
	by string
}

// addProofFlags adds --key and --token to a command that decides about calls.
func (a *app) addProofFlags(cmd *cobra.Command, p *proof) {
	a.addKeyFlag(cmd)
	cmd.Flags().StringVar(&p.token, "token", "", "token from \"jig token\" that proves who decides; valid for one call")
}

// count returns the number of calls to decide. With --all the number is not known yet; count returns 2, which means several.
func (f *bulkFlags) count(args []string) int {
	if f.all {
		return 2
	}
	return max(len(args)-1, 1)
}

// settle determines who decides and checks the flags; calls is the number of calls, and a token is valid for only one. A token already
// names its principal, so with a token only an explicit --as counts.
func (p *proof) settle(a *app, cmd *cobra.Command, calls int) (err error) {
	if !cmd.Flags().Changed("token") {
		p.by, err = a.actor()
		return err
	}
	p.token = strings.TrimSpace(p.token)
	switch {
	case p.token == "":
		return usagef("--token is empty; give a token from \"jig token\"")
	case calls > 1:
		return usagef("--token needs exactly one call")
	case cmd.Flags().Changed("key"):
		return usagef("--token and --key cannot be combined")
	}
	if cmd.Flags().Changed("as") {
		p.by = a.flags.as
	}
	return nil
}

// signs reports whether a signing key is configured. It does not check that the key can be read.
func (a *app) signs() bool { return a.flags.key != "" || a.env[signingKeySetting] != "" }

// signDecisions signs each decision of a session if there is a key. For a decision without a digest, it looks up the digest of the waiting
// call.
func (a *app) signDecisions(ctx context.Context, e engine, session string, decisions []jig.Decision) error {
	if !a.signs() {
		return nil
	}
	var waiting []jig.Pending
	if slices.ContainsFunc(decisions, func(d jig.Decision) bool { return d.Token == "" && d.Digest == "" }) {
		var err error
		if waiting, err = e.Approvals(ctx, a.flags.tenant, session); err != nil {
			return err
		}
	}
	for i := range decisions {
		d := &decisions[i]
		if d.Token != "" {
			continue
		}
		claim, err := token.ForDecision(a.flags.tenant, session, *d, cmp.Or(d.Digest, digestOf(waiting, session, d.Call)))
		if err != nil {
			return usage(err)
		}
		if d.Token, err = a.sign(claim); err != nil {
			return err
		}
	}
	return nil
}

// signReply signs the answer to a question if there is a key.
func (a *app) signReply(session string, r *jig.Reply, digest string) error {
	if r.Token != "" || !a.signs() {
		return nil
	}
	claim, err := token.ForReply(a.flags.tenant, session, *r, digest)
	if err != nil {
		return usage(err)
	}
	r.Token, err = a.sign(claim)
	return err
}

// signWord signs a reconciliation if there is a key.
func (a *app) signWord(ctx context.Context, e engine, session string, word *jig.Reconciliation) error {
	if word.Token != "" || !a.signs() {
		return nil
	}
	waiting, err := e.Approvals(ctx, a.flags.tenant, session)
	if err != nil {
		return err
	}
	claim, err := token.ForReconciliation(a.flags.tenant, session, *word, digestOf(waiting, session, word.Call))
	if err != nil {
		return usage(err)
	}
	word.Token, err = a.sign(claim)
	return err
}

// signSubject returns the token for an action that concerns no call, such as a pause; "" if there is no key.
func (a *app) signSubject(ctx context.Context, e engine, by, action, subject, reason string) (string, error) {
	if !a.signs() {
		return "", nil
	}
	installation, err := e.Installation(ctx, a.flags.tenant)
	if err != nil {
		return "", err
	}
	claim, err := token.ForSubject(installation, a.flags.tenant, action, subject, reason)
	if err != nil {
		return "", usage(err)
	}
	claim.Principal = by
	return a.sign(claim)
}

// digestOf returns the digest of a waiting call. If the call does not wait, it returns ""; the engine then refuses the decision and records
// it.
func digestOf(waiting []jig.Pending, session, call string) string {
	p, _ := findWaiting(waiting, session, call)
	return p.Digest
}

func findWaiting(waiting []jig.Pending, session, call string) (jig.Pending, bool) {
	at := slices.IndexFunc(waiting, func(p jig.Pending) bool { return p.Call == call && (p.SessionID == "" || p.SessionID == session) })
	if at < 0 {
		return jig.Pending{}, false
	}
	return waiting[at], true
}

// systemUser returns the user name that the operating system reports.
func (a *app) systemUser() string {
	return cmp.Or(a.env["USER"], a.env["LOGNAME"], a.env["USERNAME"], "cli")
}
