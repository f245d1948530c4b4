package wire

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/policy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// settledTenants are the tenants' settings with what the operator of this worker adds.
type settledTenants struct {
	tenants *tenants
	// operator is a key that every tenant accepts: without it nobody could approve a tenant's first document.
	operator *jig.Key
	// everybody are the permissions of whoever a session acts for, in tenants without a document.
	everybody []string
}

// Settings are the tenant's, the operator's key among its keys, and where there are none what everybody may.
func (s *settledTenants) Settings(ctx context.Context, tenant string) (jig.TenantSettings, error) {
	settings, err := s.tenants.Settings(ctx, tenant)
	if err == nil && s.operator != nil {
		settings.Keys = append(slices.Clone(settings.Keys), *s.operator)
		settings.Operator = s.operator.Principal
	}
	if err == nil && settings.Version == "" {
		settings.Everybody = s.everybody
	}
	return settings, err
}

// newGrant makes grants for the tool that gives them: of any tool that the tenant sees.
func newGrant(settled activities.Tenants, kept documents, registry **tools.Registry) func(context.Context, string, jig.GrantRequest, time.Time) (jig.Grant, error) {
	return func(ctx context.Context, tenant string, request jig.GrantRequest, now time.Time) (jig.Grant, error) {
		settings, err := settled.Settings(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		known, err := kept.known(registry)(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		names := make([]string, 0, len(known.Tools))
		for _, tool := range known.Tools {
			if tool.Name == request.Tool && (len(tool.Tenants) == 0 || slices.Contains(tool.Tenants, tenant)) {
				return policy.NewGrant(request, settings.Grants, tool, now)
			}
			names = append(names, tool.Name)
		}
		return jig.Grant{}, jig.Errorf(jig.CodeToolNotFound, "there is no tool %s", request.Tool).WithField("/tool").
			WithHint(spec.Suggest(request.Tool, names))
	}
}
