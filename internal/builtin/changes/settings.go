package changes

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

// proof returns how much a tenant demands of decisions, as a number that grows with the demand, and in words.
func proof(a spec.TenantApprovals) (int, string) {
	if a.Proof != "" {
		at := map[jig.Proof]int{jig.ProofVouched: 1, jig.ProofKey: 4, jig.ProofPasskey: 6}[a.Proof]
		return at, "proof is " + string(a.Proof)
	}
	at := map[tenancy.SignalMode]int{"": 2, tenancy.SignalsSigned: 3, tenancy.SignalsOff: 5}[a.Signals]
	return at, "signals are " + cmp.Or(string(a.Signals), "the worker's setting")
}

// starts does the same for starts.
func starts(s spec.TenantStarts) (int, string) {
	switch s.Proof {
	case jig.ProofClaimed:
		return 0, "proof is claimed"
	case jig.ProofVouched:
		return 2, "proof is vouched"
	case jig.ProofKey, jig.ProofPasskey:
	}
	return 1, "proof is the worker's setting"
}

// tenant compares the settings of a tenant. fresh means that it had none.
func (c *comparison) tenant(was, is spec.Tenant, fresh bool) {
	before, had := proof(was.Approvals)
	switch now, has := proof(is.Approvals); {
	case now < before:
		c.loosens("decisions need less proof: %s; before: %s", has, had)
	case was.Approvals.Proof == jig.ProofVouched && is.Approvals.Proof == "" && is.Approvals.Signals == "":
		c.checks("decisions may need less proof: %s; before: %s", has, had)
	}
	before, had = starts(was.Starts)
	if now, has := starts(is.Starts); now < before {
		c.loosens("starts need less proof: %s; before: %s", has, had)
	}
	c.keys(was.Keys, is.Keys)
	c.people(was.People, is.People)
	c.roles(was, is)
	for _, hook := range is.Webhooks {
		if _, known := named(was.Webhooks, hook.URL, func(w spec.TenantWebhook) string { return w.URL }); !known {
			c.loosens("a new endpoint is told about approvals: %s", hook.URL)
		}
	}
	for _, m := range is.Messages {
		if !slices.ContainsFunc(was.Messages, func(w spec.TenantMessage) bool { return toldTo(w) == toldTo(m) }) {
			c.loosens("new people are told about approvals: %s", toldTo(m))
		}
	}
	c.grants(was.Grants, is.Grants)
	if fresh {
		return
	}
	switch before, after := owners(was), owners(is); {
	case len(listed(was)) > 1 && len(listed(is)) <= 1:
		c.loosens("operator tools are approved by %s; it was %s", after, before)
	case after != before:
		c.checks("operator tools are approved by %s; it was %s", after, before)
	}
	if !reflect.DeepEqual(is.Approvals.Reconcilers, was.Approvals.Reconcilers) {
		c.checks("other people may settle calls whose outcome is unknown")
	}
}

// toldTo says where a message goes.
func toldTo(m spec.TenantMessage) string {
	return cmp.Or(strings.Join(m.Mail, ", "), "the chat of "+m.ChatEnv)
}

func (c *comparison) keys(was, is []spec.TenantKey) {
	for _, key := range is {
		old, known := named(was, key.ID, func(k spec.TenantKey) string { return k.ID })
		switch {
		case known && old.Disabled && !key.Disabled && reflect.DeepEqual(old, disabledKey(key)):
			c.loosens("key %s, which signs for %s, is no longer disabled", key.ID, cmp.Or(key.Principal, "everybody"))
		case known && key.Disabled && reflect.DeepEqual(disabledKey(old), key):
		case !known:
			c.loosens("new key %s, which signs for %s", key.ID, cmp.Or(key.Principal, "everybody"))
		case !reflect.DeepEqual(old, key):
			c.loosens("changed key %s, which signs for %s", key.ID, cmp.Or(key.Principal, "everybody"))
		}
	}
}

// disabledKey returns a key as it is when it is disabled.
func disabledKey(k spec.TenantKey) spec.TenantKey {
	k.Disabled = true
	return k
}

func (c *comparison) people(was, is []spec.TenantPerson) {
	before := make(map[string]spec.TenantPerson, len(was))
	for _, p := range was {
		before[p.ID] = p
	}
	for _, person := range is {
		had := before[person.ID]
		if more := without(person.Groups, had.Groups); len(more) > 0 {
			c.loosens("%s joins %s", person.ID, strings.Join(more, ", "))
		}
		if more := without(person.Permissions, had.Permissions); len(more) > 0 {
			c.loosens("%s gets the permissions %s", person.ID, strings.Join(more, ", "))
		}
		for _, l := range person.Logins {
			if !slices.Contains(had.Logins, l) {
				c.loosens("who signs in as %s at %s acts as %s", l.Subject, l.Issuer, person.ID)
			}
		}
		delete(before, person.ID)
		if had.Disabled && !person.Disabled {
			c.loosens("%s is no longer disabled", person.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if before[id].Disabled {
			c.loosens("%s is no longer listed, and so no longer disabled", id)
		}
	}
}

// roles compares who has which roles, what these permit, and which groups of identity providers count.
func (c *comparison) roles(was, is spec.Tenant) {
	before := was.AllRoles()
	for _, role := range is.AllRoles() {
		had, known := named(before, role.Name, func(r tenancy.Role) string { return r.Name })
		if more := slices.Concat(without(role.People, had.People), without(role.Groups, had.Groups)); len(more) > 0 {
			c.loosens("the role %s is given to %s", role.Name, strings.Join(more, ", "))
		}
		if more := without(role.Permissions, had.Permissions); known && len(more) > 0 {
			c.loosens("the role %s gets the permissions %s", role.Name, strings.Join(more, ", "))
		}
	}
	for _, g := range is.LoginGroups {
		if !slices.Contains(was.LoginGroups, g) {
			c.loosens("people in %s of %s count as members of %s", g.Value, g.Issuer, g.Group)
		}
	}
}

func (c *comparison) grants(was, is spec.TenantGrants) {
	before, after := ceiling(was), ceiling(is)
	switch {
	case is.Off:
	case was.Off:
		c.loosens("standing approvals are possible; they were off")
	case after.MaxUses > before.MaxUses:
		c.loosens("standing approvals cover up to %d calls; it was %d", after.MaxUses, before.MaxUses)
	case after.MaxAge > before.MaxAge:
		c.loosens("standing approvals hold up to %s; it was %s", after.MaxAge, before.MaxAge)
	}
}

func ceiling(g spec.TenantGrants) approval.GrantCeiling {
	return approval.GrantCeiling{MaxUses: g.MaxUses, MaxAge: time.Duration(g.MaxAge)}.WithDefaults()
}

// listed returns the people who count when operator tools are approved.
func listed(t spec.Tenant) []string {
	s := tenancy.Settings{People: t.Principals(), Directory: t.Directory()}
	if t.Owners != nil {
		s.Owners = &tenancy.Owners{Approvers: t.Owners.Approvers()}
	}
	if r := t.Approvals.Reconcilers; r != nil {
		reconcilers := jig.Approvers(*r)
		s.Reconcilers = &reconcilers
	}
	return s.Listed()
}

// owners says who approves operator tools.
func owners(t spec.Tenant) string {
	people := listed(t)
	switch {
	case len(people) == 0:
		return "anybody"
	case len(people) == 1:
		return people[0] + ", also when " + people[0] + " asks"
	case t.Owners == nil:
		return "anybody but the requester"
	}
	return fmt.Sprintf("%s (%s), but not the requester", t.Owners.Approvers(), plural(max(t.Owners.Quorum, 1), "approval"))
}

// budget compares the limits of a budget by their names.
func (c *comparison) budget(was, is spec.Budget) {
	for _, limit := range was.Limits {
		now, kept := named(is.Limits, limit.Name, func(l spec.BudgetLimit) string { return l.Name })
		if !kept {
			c.loosens("limit %s is gone", limit.Name)
			continue
		}
		if raised(limit.Tokens, now.Tokens) {
			c.loosens("limit %s allows %s tokens; it was %d", limit.Name, amount(now.Tokens), limit.Tokens)
		}
		if raised(limit.Cost, now.Cost) {
			c.loosens("limit %s allows %s money; it was %v", limit.Name, amount(now.Cost), limit.Cost)
		}
		if now.Level != limit.Level || now.Window != limit.Window || now.When != limit.When || !reflect.DeepEqual(now.Exhausted, limit.Exhausted) {
			c.checks("limit %s counts other calls, or does something else when it is used up", limit.Name)
		}
	}
	if len(is.Limits) > 0 && (is.Currency != was.Currency || !reflect.DeepEqual(is.Prices, was.Prices)) {
		c.checks("other prices or another currency")
	}
}

// rates compares the limits of a document of rate limits by their names.
func (c *comparison) rates(was, is spec.RateLimit) {
	at := make(map[string]int, len(is.Limits))
	for i, limit := range is.Limits {
		at[limit.Name] = i
	}
	for _, limit := range was.Limits {
		i, kept := at[limit.Name]
		if !kept {
			c.loosens("limit %s is gone", limit.Name)
			continue
		}
		now := is.Limits[i]
		if limit.Rate > 0 && (now.Rate == 0 || perSecond(now.Rate, now.Per) > perSecond(limit.Rate, limit.Per)) {
			c.loosens("limit %s lets calls begin more often", limit.Name)
		}
		if now.Burst > limit.Burst {
			c.loosens("limit %s lets %d calls begin at once; it was %d", limit.Name, now.Burst, limit.Burst)
		}
		if raised(limit.Concurrency, now.Concurrency) {
			c.loosens("limit %s allows %s calls at the same time; it was %d", limit.Name, amount(now.Concurrency), limit.Concurrency)
		}
		if now.When != limit.When || now.Key != limit.Key || now.Sessions != limit.Sessions || !slices.Equal(now.Tools, limit.Tools) {
			c.checks("limit %s counts other calls", limit.Name)
		}
	}
}

// raised reports whether a limit, of which 0 means none, allows more than before.
func raised[T int | int64 | float64](was, is T) bool { return was > 0 && (is == 0 || is > was) }

// amount names a limit of which 0 means none.
func amount[T int | int64 | float64](n T) string {
	if n == 0 {
		return "any amount of"
	}
	return fmt.Sprint(n)
}

func perSecond(rate int, per spec.Duration) float64 {
	return float64(rate) / max(time.Duration(per).Seconds(), 1)
}
