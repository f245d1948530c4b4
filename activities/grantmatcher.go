package activities

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/tenancy"
)

// grantMatcher finds the grants for calls of one session that are admitted together.
type grantMatcher struct {
	*Activities
	session jig.Session
	// known caches the grants by tool. taken counts how often this admission has used each grant. settings are the tenant's settings.
	known    map[string][]jig.Grant
	taken    map[string]int
	settings *tenancy.Settings
	// origins traces the arguments of the calls.
	origins *origins
}

func (a *Activities) newGrantMatcher(session jig.Session) *grantMatcher {
	return &grantMatcher{Activities: a, session: session, known: map[string][]jig.Grant{}, taken: map[string]int{}, origins: &origins{Activities: a}}
}

// knows returns the tenant's settings, and on whose word a call rests.
func (c *grantMatcher) knows(ctx context.Context, call jig.Call) (tenancy.Settings, []jig.Asker, error) {
	if c.settings == nil {
		settings, err := c.Tenants.Settings(ctx, c.session.Tenant)
		if err != nil {
			return settings, nil, err
		}
		c.settings = &settings
	}
	askers, err := c.askersOf(ctx, c.session, call)
	return *c.settings, askers, err
}

// apply lets a grant stand in for a person if one covers the call and the people who gave it could have approved it. Then the call
// is reserved and the approval names the grant. When the call begins, the store checks again that the grant is valid.
func (c *grantMatcher) apply(ctx context.Context, tool jig.Tool, call *jig.Call, asked *jig.Pending) error {
	if !approval.TakesGrant(tool, *asked) {
		return nil
	}
	list, ok := c.known[tool.Name]
	if !ok {
		var err error
		if list, err = c.Store.LiveGrants(ctx, c.session.Tenant, []string{tool.Name}, c.Now()); err != nil {
			return err
		}
		c.known[tool.Name] = list
	}
	ended := ""
	for _, g := range list {
		g.Used += c.taken[g.ID]
		covers, err := c.grants.Covers(ctx, g, tool, *call, c.session, c.Now())
		if err != nil {
			c.Logger.WarnContext(ctx, "a grant's condition could not be evaluated: the grant does not cover this call",
				slog.String("grant", g.ID), slog.String("call_id", call.ID), slog.String("error", err.Error()))
			continue
		}
		if !covers {
			if ended == "" && c.endedWithContract(ctx, g, tool, *call) {
				ended = g.ID
			}
			continue
		}
		votes := approval.VotesOf(g, givers(g, *c.settings), *asked, c.settings.Proof, c.Now())
		if votes == nil {
			continue
		}
		c.taken[g.ID]++
		call.Status = jig.CallReserved
		asked.Grant, asked.Votes = g.ID, votes
		return nil
	}
	if ended != "" {
		asked.Reasons = append(slices.Clone(asked.Reasons),
			fmt.Sprintf("the standing approval %s ended: the contract of %s has changed since it was given", ended, tool.Name))
	}
	return nil
}

// endedWithContract reports whether a grant would cover the call if the tool's contract still had the meaning that it had when the
// grant was given.
func (c *grantMatcher) endedWithContract(ctx context.Context, g jig.Grant, tool jig.Tool, call jig.Call) bool {
	if g.Meaning == tool.Meaning {
		return false
	}
	g.Meaning = tool.Meaning
	covers, err := c.grants.Covers(ctx, g, tool, call, c.session, c.Now())
	return err == nil && covers
}
