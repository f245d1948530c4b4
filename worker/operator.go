package worker

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// settledTenants returns the tenants' settings with the additions of this worker's operator.
type settledTenants struct {
	tenants *tenants
	// operator is a key that every tenant accepts. Without it nobody could approve a tenant's first document. It may be nil.
	operator *identity.Key
	// everybody lists the permissions of every principal in tenants without a document.
	everybody []string
}

// Settings returns the tenant's settings. It adds the operator's key to the tenant's keys and, for tenants without a document, the
// permissions of everybody.
func (s *settledTenants) Settings(ctx context.Context, tenant string) (tenancy.Settings, error) {
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

// newGrant returns the function that creates grants for the tool that gives them. A grant may be for any tool that the tenant can see.
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
