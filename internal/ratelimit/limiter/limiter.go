// Package limiter finds the limits that concern a call, from the documents of its tenant, and asks the store whether the call may begin.
package limiter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/ratelimit"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// Queues keeps the state of limits.
type Queues interface {
	// AskRateLimits lets an attempt begin if all limits allow that, or keeps its place in their queues.
	AskRateLimits(ctx context.Context, r ratelimit.Request) (ratelimit.Answer, error)
}

// Limiter applies the limits of tenants. It reads each tenant's documents once and looks for changes once a second. It is safe for concurrent use.
type Limiter struct {
	queues  Queues
	tenants *bundle.Current[*limits]
}

// New returns a limiter.
func New(documents bundle.Documents, queues Queues) *Limiter {
	return &Limiter{queues: queues, tenants: bundle.NewCurrent(documents, string(spec.KindRateLimit), read)}
}

// limits holds the limits of a tenant. It is immutable.
type limits struct {
	// broken says why the documents cannot be used. Unless it is empty, all calls of the tenant wait.
	broken string
	list   []limit
}

// holds reports whether calls of a tool wait because the documents cannot be used.
func (l *limits) holds(tool string) bool { return l.broken != "" && !toolname.Registers(tool) }

// limit is a limit of a document with its compiled expressions. A nil condition always holds; without a key, all calls share the limit. The
// starts of sessions are handled as calls without an id and a tool.
type limit struct {
	ratelimit.Claim

	tools     []string
	when, key *expr.Program
}

// Limited reports whether a limit may concern the calls of a tool or, if the name is empty, starts of sessions.
func (l *Limiter) Limited(ctx context.Context, tenant, tool string) (bool, error) {
	of, err := l.tenants.Of(ctx, tenant)
	if err != nil {
		return false, err
	}
	return of.holds(tool) || slices.ContainsFunc(of.list, func(one limit) bool { return one.counts(tool) }), nil
}

// Ask lets an attempt of a call begin if the limits that concern it allow that. Otherwise the answer says how long the call should wait before it
// asks again. A call without a tool is the start of its session. whole reports that a composition, an extraction or a session answers the call: such calls count when they begin, but not as running,
// because the calls that they wait for may need the places.
func (l *Limiter) Ask(ctx context.Context, session jig.Session, call jig.Call, whole bool) (ratelimit.Answer, error) {
	of, err := l.tenants.Of(ctx, call.Tenant)
	switch {
	case err != nil:
		return ratelimit.Answer{}, err
	case of.holds(call.Tool):
		return ratelimit.Answer{Wait: brokenLook, Why: of.broken}, nil
	}
	r := ratelimit.Request{
		Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Pass: call.Pass, Tool: call.Tool, Fence: call.Fence,
		Bounded: call.Status == jig.CallReserved,
	}
	var vars map[string]any
	for _, one := range of.list {
		if !one.counts(call.Tool) || whole && one.Rate == 0 {
			continue
		}
		if vars == nil {
			vars = variables(session, call)
		}
		if !one.concerns(ctx, vars) {
			continue
		}
		claim := one.Claim
		claim.Key = one.keyOf(ctx, vars)
		if whole {
			claim.Concurrency = 0
		}
		r.Claims = append(r.Claims, claim)
	}
	if len(r.Claims) == 0 {
		return ratelimit.Answer{}, nil
	}
	return l.queues.AskRateLimits(ctx, r)
}

// brokenLook is how often a call that waits for documents that can be read looks again.
const brokenLook = 5 * time.Second

// read compiles the limits of a tenant.
func read(_ context.Context, _ string, documents []bundle.StoredDocument) (*limits, error) {
	env, err := expr.RateLimitUse().Env()
	if err != nil {
		return nil, fmt.Errorf("compile rate limits: %w", err)
	}
	of := &limits{}
	for _, stored := range documents {
		d, err := spec.LoadRateLimit(stored.Name, stored.Body)
		if err != nil {
			of.broken = fmt.Sprintf("the rate limit %s (version %s) cannot be read, so no tool is called: %v", stored.Name, jig.ShortVersion(stored.Version), err)
			return of, nil
		}
		for _, rule := range d.Limits {
			one := limit{tools: rule.Tools, Claim: ratelimit.Claim{
				Bucket: ratelimit.Bucket{Document: d.Name, Limit: rule.Name}, Rate: rule.Rate, Period: time.Duration(rule.Per), Burst: rule.Burst,
				Concurrency: rule.Concurrency, MaxWait: time.Duration(rule.MaxWait), Sessions: rule.Sessions,
			}}
			if one.when, err = compile(env, rule.When, expr.Bool); err == nil {
				one.key, err = compile(env, rule.Key, expr.Any)
			}
			if err != nil {
				return nil, fmt.Errorf("rate limit %s, limit %s: %w", d.Name, rule.Name, err)
			}
			of.list = append(of.list, one)
		}
	}
	return of, nil
}

func compile(env *expr.Env, source spec.Expression, want expr.Type) (*expr.Program, error) {
	if source == "" {
		return nil, nil // no expression
	}
	return env.CompileAs(string(source), want)
}

// counts reports whether a limit may concern calls of a tool or, if the name is empty, starts of sessions.
func (l limit) counts(tool string) bool {
	if tool == "" || l.Sessions {
		return l.Sessions && tool == ""
	}
	return toolname.Listed(l.tools, tool)
}

// concerns reports whether a limit concerns a call of one of its tools. It does if its condition cannot be evaluated.
func (l limit) concerns(ctx context.Context, vars map[string]any) bool {
	if l.when == nil {
		return true
	}
	holds, err := l.when.EvalBool(ctx, vars)
	return holds || err != nil
}

// maxKey is the longest key, in bytes, that is stored as it is.
const maxKey = 200

// keyOf returns what the calls that share the limit have in common. All calls for which the key cannot be evaluated share the limit.
func (l limit) keyOf(ctx context.Context, vars map[string]any) string {
	if l.key == nil {
		return ""
	}
	key, err := l.key.EvalJSON(ctx, vars)
	if err != nil {
		return "?"
	}
	if len(key) > maxKey {
		sum := sha256.Sum256(key)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return string(key)
}

// variables returns what conditions and keys read; see [spec.RateLimitShapes].
func variables(s jig.Session, call jig.Call) map[string]any {
	var input any = map[string]any{}
	if value, err := expr.FromJSON(call.Input); err == nil {
		input = value
	}
	return map[string]any{
		"tool": call.Tool, "tenant": s.Tenant, "input": input,
		"agent":     map[string]any{"name": s.Agent.Name, "registered": s.Agent.Registered, "version": s.Agent.Version},
		"principal": map[string]any{"id": s.Principal.ID, "groups": slices.Concat([]string{}, s.Principal.Groups)},
		"session": map[string]any{
			"id": s.ID, "root_agent": cmp.Or(s.RootAgent, s.Agent.Name), "parent_agent": s.ParentAgent, "depth": s.Depth,
			"source": string(cmp.Or(s.Source, jig.SourceAPI)),
		},
	}
}
