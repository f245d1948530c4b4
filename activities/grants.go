package activities

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
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

// settingsFor returns the tenant's settings, and on whose word a call rests.
func (c *grantMatcher) settingsFor(ctx context.Context, call jig.Call) (tenancy.Settings, []jig.Asker, error) {
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

// addStanding adds the standing approval that a decision names, or refuses the decision if it does not cover the call.
func (a *Activities) addStanding(
	ctx context.Context, settings tenancy.Settings, r *approval.DecisionRequest, session jig.Session, tool jig.Tool, call jig.Call,
) error {
	g, err := a.Store.Grant(ctx, r.Tenant, r.Decision.GrantID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		r.Refusal = explain(err)
		return nil
	}
	if err != nil {
		return err
	}
	standing := &approval.Standing{Grant: g, People: givers(g, settings)}
	if r.Refusal, err = a.uncovered(ctx, settings, *standing, session, tool, call); err == nil && r.Refusal == "" {
		r.Standing = standing
	}
	return err
}

// givers returns the people who gave a grant, as the tenant knows them now, without those who are disabled.
func givers(g jig.Grant, settings tenancy.Settings) []jig.Principal {
	people := make([]jig.Principal, 0, len(g.By))
	for _, id := range g.By {
		if !settings.IsDisabled(id) {
			p := settings.Person(id)
			p.Maker = g.Makers[id]
			people = append(people, p)
		}
	}
	return people
}

// uncovered returns why a grant cannot approve a call that waits, as policy judges the call now; "" if it can. Whether it also meets the terms
// under which the call waits is decided with the call.
func (a *Activities) uncovered(
	ctx context.Context, settings tenancy.Settings, s approval.Standing, session jig.Session, tool jig.Tool, call jig.Call,
) (string, error) {
	g, now := s.Grant, a.Now()
	switch {
	case !g.Live(now):
		return fmt.Sprintf("the standing approval %s was used up, has expired or was revoked", g.ID), nil
	case tool.Version != call.Version:
		return fmt.Sprintf("the contract of %s has changed since the call was shown", call.Tool), nil
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, now)
	switch {
	case err != nil:
		return "", err
	case ruling.Held != "":
		return jig.Templatef("policy cannot judge the call now: %s", ruling.Held), nil
	case ruling.Verdict == jig.VerdictDeny:
		return "policy does not allow the call: " + strings.Join(ruling.Reasons, "; "), nil
	case ruling.Person:
		return "only people can approve this call, because a rule cannot be evaluated: " + strings.Join(ruling.Reasons, "; "), nil
	}
	covers, err := a.grants.Covers(ctx, g, tool, call, session, now)
	if err != nil {
		return fmt.Sprintf("the standing approval %s cannot be checked for this call: ", g.ID) + explain(err), nil
	}
	askers, err := a.askersOf(ctx, session, call)
	if err != nil {
		return "", err
	}
	fresh := settings.Voters().Wider(a.pending(session, tool, call, ruling, settings, askers), now)
	switch {
	case !covers || !approval.TakesGrant(tool, fresh):
		return fmt.Sprintf("the standing approval %s does not cover this call", g.ID), nil
	case approval.VotesOf(g, s.People, fresh, settings.Proof, now) == nil:
		return fmt.Sprintf("by today's policy the standing approval %s does not suffice: %s", g.ID, approval.ConsentOf(fresh).Missing()), nil
	}
	return "", nil
}

// GrantFits returns a page of the waiting calls that a grant covers and that somebody may decide, the oldest first.
func (a *Activities) GrantFits(ctx context.Context, in protocol.FitsRequest) (_ protocol.FitsPage, err error) {
	defer asTemporal(&err)
	page := protocol.FitsPage{Approvals: []jig.Pending{}}
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return page, err
	}
	if page.Grant, err = a.Store.Grant(ctx, in.Tenant, in.Grant); err != nil || !page.Grant.Live(a.Now()) {
		return page, err
	}
	standing := approval.Standing{Grant: page.Grant, People: givers(page.Grant, settings)}
	filter := jig.PendingFilter{Tool: page.Grant.Tool, Agent: page.Grant.Agent, Kind: jig.PendingApproval, For: in.For}
	waiting, err := a.decidable(ctx, protocol.PendingRequest{Tenant: in.Tenant, Filter: filter, Cursor: in.Cursor, Limit: maxListed})
	if err != nil {
		return page, err
	}
	page.Next = waiting.Next
	for _, asked := range waiting.Approvals {
		fit, err := a.fit(ctx, settings, standing, asked)
		if err != nil {
			return page, err
		}
		if fit {
			shortPreview(&asked)
			page.Approvals = append(page.Approvals, asked)
		}
	}
	return page, nil
}

// fit reports whether a standing approval covers a call that waits, and suffices for it.
func (a *Activities) fit(ctx context.Context, settings tenancy.Settings, s approval.Standing, asked jig.Pending) (bool, error) {
	session, call, err := a.callOf(ctx, protocol.SessionRef{Tenant: asked.Tenant, SessionID: asked.SessionID}, asked.Call)
	if err != nil {
		return false, err
	}
	tool, known, err := a.currentTool(ctx, call)
	asked = settings.Voters().Counted(asked, a.Now())
	if err != nil || !known || approval.VotesOf(s.Grant, s.People, asked, settings.Proof, a.Now()) == nil {
		return false, err
	}
	why, err := a.uncovered(ctx, settings, s, session, tool, call)
	return why == "", err
}
