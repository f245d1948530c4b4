package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/token"
)

// proof is how a command that decides proves who does: with a key, or with a token that was made elsewhere.
type proof struct {
	token string
	// by is who decides, once settled; empty when the token alone says so.
	by string
}

// addProofFlags adds --key and --token to a command that decides calls.
func (a *app) addProofFlags(cmd *cobra.Command, p *proof) {
	a.addKeyFlag(cmd)
	cmd.Flags().StringVar(&p.token, "token", "", "token that proves who decides, of \"jig token\"; for one call")
}

// count is how many calls are decided: several, as far as anybody knows, with --all.
func (f *bulkFlags) count(args []string) int {
	if f.all {
		return 2
	}
	return len(args) - 1
}

// settle finds out who decides so many calls. A token speaks for itself: beside it, only a --as that was given counts.
func (p *proof) settle(a *app, cmd *cobra.Command, calls int) (err error) {
	if !cmd.Flags().Changed("token") {
		p.by, err = a.actor()
		return err
	}
	p.token = strings.TrimSpace(p.token)
	switch {
	case p.token == "":
		return usagef("--token is empty; give what \"jig token\" prints")
	case calls > 1:
		return usagef("--token goes with one call")
	case cmd.Flags().Changed("key"):
		return usagef("--token and --key exclude each other")
	}
	if cmd.Flags().Changed("as") {
		p.by = a.flags.as
	}
	return nil
}

// signs reports whether there is a key to sign with, readable or not.
func (a *app) signs() bool { return a.flags.key != "" || a.env[signingKeySetting] != "" }

// signDecisions puts a token into each decision of a session, when there is a key. A decision without a digest is signed for
// what waits now: it is looked up.
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

// signReply puts a token into the answer to a question, when there is a key.
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

// signWord puts a token into a word on an outcome that nobody knows, when there is a key.
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

// signSubject is the token of what is done to no call, e.g. a pause; "" when there is no key.
func (a *app) signSubject(by, action, subject, reason string) (string, error) {
	claim, err := token.ForSubject(a.flags.tenant, action, subject, reason)
	if err != nil {
		return "", usage(err)
	}
	claim.Principal = by
	return a.sign(claim)
}

// digestOf is the digest of what waits under a call. It is "" when nothing does: then the engine refuses, and records it.
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

// systemUser is who the operating system says is at work.
func (a *app) systemUser() string {
	return cmp.Or(a.env["USER"], a.env["LOGNAME"], a.env["USERNAME"], "cli")
}
