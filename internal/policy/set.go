package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Set holds the policies of a tenant. The rules of all policies are evaluated on every call, and the strictest wins, whichever document it is
// in. An empty set means the base rules alone. A set is immutable and safe for concurrent use.
type Set []*Rules

// NewSet makes a set of policies. Their order has no meaning.
func NewSet(list ...*Rules) Set {
	s := Set(slices.Clone(list))
	slices.SortFunc(s, func(a, b *Rules) int { return cmp.Compare(a.Version(), b.Version()) })
	return s
}

// Version returns the policy version that rulings carry: the versions of all documents, or [BaseVersion] for the base rules.
func (s Set) Version() string {
	if len(s) == 0 {
		return BaseVersion
	}
	versions := make([]string, len(s))
	for i, r := range s {
		versions[i] = r.Version()
	}
	return strings.Join(versions, " ")
}

// Rule returns the verdict of these policies on a call; see [Rules.Rule]. It returns an error if ctx ended before all rules were evaluated,
// because the result of an interrupted rule is not known.
func (s Set) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Ruling, error) {
	x := s.Explain(ctx, tool, call, session, now)
	if err := ctx.Err(); err != nil {
		return Ruling{}, fmt.Errorf("evaluate the policies: %w", err)
	}
	return x.Ruling, nil
}

// Explain is like [Set.Rule] and also returns the base verdict and the rules that led to the ruling. It does not check whether ctx has ended.
func (s Set) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	start := baseVerdict(tool)
	start.trace(tool, call)
	x := Explanation{Base: start.ruling()}
	for _, r := range s {
		x.Spoken = append(x.Spoken, r.speak(ctx, tool, call, session, now)...)
	}
	slices.SortStableFunc(x.Spoken, func(a, b Spoken) int {
		return cmp.Or(cmp.Compare(b.strictness(), a.strictness()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule))
	})
	x.Ruling = Ruling{Verdict: decide(start, x.Spoken), PolicyVersion: s.Version()}
	if x.Verdict == start.verdict {
		x.Reasons = slices.Clone(start.reasons)
	}
	for _, spoken := range x.Spoken {
		reason := fmt.Sprintf("policy %s, rule %s: %s", spoken.Policy, spoken.Rule, spoken.Reason)
		if spoken.counts() && spoken.Verdict != x.Verdict {
			reason += fmt.Sprintf(" (says %s, overruled)", spoken.Verdict)
		}
		x.Reasons = append(x.Reasons, reason)
	}
	if x.Verdict == jig.VerdictAsk {
		ask(&x.Ruling, x.Spoken)
	}
	if asks := start.asksUntraced(x.Spoken); asks && x.Verdict != jig.VerdictDeny {
		x.Reasons = append(x.Reasons, start.untraced...)
		if way := start.wayOut(x.Spoken); way != "" {
			x.Reasons = append(x.Reasons, way)
		}
		x.Ruling.Base, x.Person = false, true
	}
	x.Person = x.Person || slices.ContainsFunc(x.Spoken, func(s Spoken) bool { return s.Failed && s.counts() })
	return x
}
