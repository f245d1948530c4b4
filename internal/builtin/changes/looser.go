package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/spec"
)

// comparison collects what a document guards less than the one that it replaces (looser), and changes that can mean that (check).
type comparison struct{ looser, check []string }

func (c *comparison) loosens(format string, args ...any) {
	c.looser = append(c.looser, oneLine(fmt.Sprintf(format, args...)))
}

func (c *comparison) checks(format string, args ...any) {
	c.check = append(c.check, oneLine(fmt.Sprintf(format, args...)))
}

// oneLine keeps texts of a document, such as the subject of a login, from beginning a line of their own.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// documents compares two documents of the same kind and name. One of them is the zero Document if there is none.
func (c *comparison) documents(before, after spec.Document) {
	switch {
	case before.Policy() != nil || after.Policy() != nil:
		c.policy(orZero(before.Policy()).Rules, orZero(after.Policy()).Rules)
	case before.Budget() != nil:
		c.budget(*before.Budget(), orZero(after.Budget()))
	case before.RateLimit() != nil:
		c.rates(*before.RateLimit(), orZero(after.RateLimit()))
	case before.Tenant() != nil || after.Tenant() != nil:
		c.tenant(orZero(before.Tenant()), orZero(after.Tenant()), before.Tenant() == nil)
		if after.Tenant() == nil {
			c.checks("the tenant has no settings of its own any more: nobody has a key, a group or a permission from it")
		}
	case after.Agent() != nil:
		c.agent(orZero(before.Agent()), *after.Agent())
	case before.Execution() != nil && after.Execution() != nil:
		c.contract(before.Execution().Tool, after.Execution().Tool)
	}
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// named returns the element with a name.
func named[T any](list []T, name string, of func(T) string) (found T, ok bool) {
	i := slices.IndexFunc(list, func(v T) bool { return of(v) == name })
	if i < 0 {
		return found, false
	}
	return list[i], true
}

// strictness orders verdicts; a higher one guards more.
func strictness(v jig.Verdict) int {
	return slices.Index([]jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny}, v)
}

// policy compares the rules of a policy by their names.
func (c *comparison) policy(before, after []spec.PolicyRule) {
	name := func(r spec.PolicyRule) string { return r.Name }
	for _, was := range before {
		is, kept := named(after, was.Name, name)
		switch {
		case kept:
			c.rule(was, is)
		case was.Verdict != jig.VerdictRun:
			c.loosens("rule %s (%s) is gone", was.Name, was.Verdict)
		}
	}
	for _, is := range after {
		if _, known := named(before, is.Name, name); known || is.Verdict == jig.VerdictDeny {
			continue
		}
		if is.Verdict == jig.VerdictAsk {
			looser, _ := approval.Looser(jig.Terms{}, is.Terms(""))
			for _, less := range looser {
				c.loosens("new rule %s %s", is.Name, less)
			}
			continue
		}
		c.loosens("new rule %s lets calls run when %s", is.Name, expression(is.When))
		if is.Untraced {
			c.loosens("rule %s also lets calls run whose arguments cannot be traced", is.Name)
		}
	}
}

// rule compares two versions of a rule.
func (c *comparison) rule(was, is spec.PolicyRule) {
	if strictness(is.Verdict) < strictness(was.Verdict) {
		c.loosens("rule %s says %s; it said %s", was.Name, is.Verdict, was.Verdict)
	}
	if is.When != was.When {
		c.checks("rule %s (%s) holds for other calls: when %s; it was %s", was.Name, is.Verdict, expression(is.When), expression(was.When))
	}
	if is.Untraced && !was.Untraced {
		c.loosens("rule %s also lets calls run whose arguments cannot be traced", was.Name)
	}
	if was.Verdict != jig.VerdictAsk || is.Verdict != jig.VerdictAsk {
		return
	}
	looser, check := approval.Looser(was.Terms(""), is.Terms(""))
	for _, less := range looser {
		c.loosens("rule %s %s", was.Name, less)
	}
	for _, other := range check {
		c.checks("rule %s %s", was.Name, other)
	}
	if was.Expires > 0 && (is.Expires == 0 || is.Expires > was.Expires) {
		wait := "as long as the agent says"
		if is.Expires > 0 {
			wait = "for " + is.Expires.String()
		}
		c.checks("rule %s lets approvals wait %s; it was %s", was.Name, wait, was.Expires)
	}
}

// agent compares what an agent may do.
func (c *comparison) agent(was, is jig.Agent) {
	if more := without(is.Tools, was.Tools); len(more) > 0 {
		c.loosens("it may use %s", strings.Join(more, ", "))
	}
	if more := without(is.Agents, was.Agents); len(more) > 0 {
		c.loosens("it may start the agents %s", strings.Join(more, ", "))
	}
	if more := without(is.Models, was.Models); len(more) > 0 {
		c.loosens("others may choose the models %s for it", strings.Join(more, ", "))
	}
	if was.Limits.MaxTotalTokens > 0 && (is.Limits.MaxTotalTokens == 0 || is.Limits.MaxTotalTokens > was.Limits.MaxTotalTokens) {
		c.loosens("its limit of %d tokens for a session is raised or gone", was.Limits.MaxTotalTokens)
	}
}

// contract compares what a document declares about the tool that it defines.
func (c *comparison) contract(was, is jig.Tool) {
	permissions := []jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}
	if slices.Index(permissions, is.Permission) < slices.Index(permissions, was.Permission) {
		c.loosens("it is declared as %s; it was %s", is.Permission, was.Permission)
	}
	risks := []jig.Risk{jig.RiskSafe, jig.RiskModerate, jig.RiskHigh}
	if slices.Index(risks, is.Risk) < slices.Index(risks, was.Risk) {
		c.loosens("its risk is %s; it was %s", is.Risk, was.Risk)
	}
	if was.Approval == jig.ApprovalAlwaysAsk && is.Approval != jig.ApprovalAlwaysAsk {
		c.loosens("it no longer always asks")
	}
	switch {
	case was.RequiredPermission != "" && is.RequiredPermission == "":
		c.loosens("it no longer requires the permission %s", was.RequiredPermission)
	case was.RequiredPermission != "" && is.RequiredPermission != was.RequiredPermission:
		c.checks("it requires the permission %s; it was %s", is.RequiredPermission, was.RequiredPermission)
	}
	if was.Sends() && !is.Sends() {
		c.loosens("it is no longer declared to send data away")
	}
	for _, kind := range []string{jig.ReadsPrivate, jig.ReadsUntrusted} {
		if was.Reads(kind) && !is.Reads(kind) {
			c.loosens("it no longer counts as reading %s data", kind)
		}
	}
	if gone := without(was.Tags, is.Tags); len(gone) > 0 {
		c.checks("rules that look for the tags %s no longer find it", strings.Join(gone, ", "))
	}
	if was.Previews && !is.Previews {
		c.checks("people no longer see what its calls will change")
	}
}

func without(list, known []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(known, s) })
}

// maxShown is the length of the longest expression that is shown whole, in bytes.
const maxShown = 300

// expression returns an expression on one line.
func expression(e spec.Expression) string {
	return jig.Cut(oneLine(preview.Code(string(e))), maxShown)
}
