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

// Set is the policies of a tenant: the rules of all of them speak on every call, and the strictest wins whichever document
// it stands in. An empty one is the base rules alone. It never changes and is safe for concurrent use.
type Set []*Rules

// NewSet puts policies together; their order means nothing.
func NewSet(list ...*Rules) Set {
	s := Set(slices.Clone(list))
	slices.SortFunc(s, func(a, b *Rules) int { return cmp.Compare(a.Version(), b.Version()) })
	return s
}

// Version is what rulings carry as their policy version: those of the documents, or the base rules' own.
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

// Rule gives the verdict of these policies on a call; see Rules.Rule. An error means that ctx ended before all rules were
// evaluated: a rule that was cut off says nothing about the call.
func (s Set) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (jig.Ruling, error) {
	x := s.Explain(ctx, tool, call, session, now)
	if err := ctx.Err(); err != nil {
		return jig.Ruling{}, fmt.Errorf("evaluate the policies: %w", err)
	}
	return x.Ruling, nil
}

// Explain is Rule, and says what led to the verdict.
func (s Set) Explain(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) Explanation {
	start := baseVerdict(tool)
	x := Explanation{Base: start.ruling()}
	for _, r := range s {
		x.Spoken = append(x.Spoken, r.speak(ctx, tool, call, session, now)...)
	}
	slices.SortStableFunc(x.Spoken, func(a, b Spoken) int {
		return cmp.Or(cmp.Compare(b.strictness(), a.strictness()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule))
	})
	x.Ruling = jig.Ruling{Verdict: decide(start, x.Spoken), PolicyVersion: s.Version()}
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
	x.Person = slices.ContainsFunc(x.Spoken, func(s Spoken) bool { return s.Failed && s.counts() })
	return x
}
