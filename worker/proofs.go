package worker

import (
	"context"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/policy"
)

// proofs verifies that the token of a request is for exactly that request.
type proofs struct{}

// Decision verifies the token of a decision.
func (proofs) Decision(keys []identity.Key, tenant, session string, d jig.Decision, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := token.ForDecision(tenant, session, d, digest)
	return verify(d.Token, keys, want, err, now)
}

// Reply verifies the token of an answer.
func (proofs) Reply(keys []identity.Key, tenant, session string, r jig.Reply, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := token.ForReply(tenant, session, r, digest)
	return verify(r.Token, keys, want, err, now)
}

// Reconciliation verifies the token of a reconciliation.
func (proofs) Reconciliation(keys []identity.Key, tenant, session string, r jig.Reconciliation, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := token.ForReconciliation(tenant, session, r, digest)
	return verify(r.Token, keys, want, err, now)
}

// Subject verifies the token of an action that concerns no call.
func (proofs) Subject(keys []identity.Key, text, tenant, action, subject, reason string, now time.Time) (string, identity.Evidence, error) {
	want, err := token.ForSubject(tenant, action, subject, reason)
	return verify(text, keys, want, err, now)
}

func verify(text string, keys []identity.Key, want identity.Claim, err error, now time.Time) (string, identity.Evidence, error) {
	if err != nil {
		return "", identity.Evidence{}, err
	}
	return token.Verify(text, keys, want, now)
}

// maxCompiledGrants bounds the cache of compiled grants.
const maxCompiledGrants = 10_000

// grantRules creates and matches grants. It compiles each condition once.
type grantRules struct {
	mu       sync.Mutex
	compiled map[string]*policy.GrantRule
}

func newGrantRules() *grantRules { return &grantRules{compiled: map[string]*policy.GrantRule{}} }

// New checks a grant request against the tenant's ceiling and returns the grant.
func (*grantRules) New(request jig.GrantRequest, ceiling approval.GrantCeiling, tool jig.Tool, now time.Time) (jig.Grant, error) {
	return policy.NewGrant(request, ceiling, tool, now)
}

// Covers reports whether a grant covers a call.
func (g *grantRules) Covers(ctx context.Context, grant jig.Grant, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (bool, error) {
	rule, err := g.rule(grant)
	if err != nil {
		return false, err
	}
	return rule.Covers(ctx, tool, call, session, now)
}

// rule returns the compiled rule of a grant. It uses the grant's current state, so that it includes uses counted after the compilation.
func (g *grantRules) rule(grant jig.Grant) (*policy.GrantRule, error) {
	key := grant.Tenant + "\x00" + grant.ID + "\x00" + grant.When
	g.mu.Lock()
	rule, ok := g.compiled[key]
	g.mu.Unlock()
	if ok {
		return rule.With(grant), nil
	}
	rule, err := policy.CompileGrant(grant)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.compiled) >= maxCompiledGrants {
		clear(g.compiled)
	}
	g.compiled[key] = rule
	return rule, nil
}
