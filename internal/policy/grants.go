package policy

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/suggest"
)

// maxCompiledGrants bounds the cache of compiled grants.
const maxCompiledGrants = 10_000

// Grants matches standing approvals. It compiles each condition once. It is safe for concurrent use.
type Grants struct {
	compiled *cache.Cache[string, *GrantRule]
}

// NewGrants returns a matcher of grants.
func NewGrants() *Grants {
	return &Grants{compiled: cache.New[string, *GrantRule](0, maxCompiledGrants)}
}

// Covers reports whether a grant covers a call. It uses the grant's current state, which includes uses counted after the compilation.
func (g *Grants) Covers(ctx context.Context, grant jig.Grant, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (bool, error) {
	key := grant.Tenant + "\x00" + grant.ID + "\x00" + grant.When
	rule, err := g.compiled.Get(key, func(*GrantRule, bool) (*GrantRule, error) { return CompileGrant(grant) })
	if err != nil {
		return false, err
	}
	return rule.With(grant).Covers(ctx, tool, call, session, now)
}

// GrantFor returns a grant for one of a tenant's tools. known may contain tools that other tenants have for themselves; the tenant cannot
// grant those. It returns TOOL_NOT_FOUND if the tenant has no such tool.
func GrantFor(tenant string, known []jig.Tool, request jig.GrantRequest, ceiling approval.GrantCeiling, now time.Time) (jig.Grant, error) {
	names := make([]string, 0, len(known))
	for _, tool := range known {
		if tool.Name == request.Tool && (len(tool.Tenants) == 0 || slices.Contains(tool.Tenants, tenant)) {
			return NewGrant(request, ceiling, tool, now)
		}
		names = append(names, tool.Name)
	}
	return jig.Grant{}, jig.Errorf(jig.CodeToolNotFound, "there is no tool %s", request.Tool).WithField("/tool").
		WithHint(suggest.OrKnown(request.Tool, names))
}
