package worker

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy/current"
	"github.com/jig-run/jig/spec"
)

// newGrant returns the function with which the tool grants.create creates grants.
func newGrant(tenants *current.Tenants, known *current.Catalog) func(context.Context, string, jig.GrantRequest, time.Time) (jig.Grant, error) {
	return func(ctx context.Context, tenant string, request jig.GrantRequest, now time.Time) (jig.Grant, error) {
		settings, err := tenants.Settings(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		exists, err := known.Known(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		return policy.GrantFor(tenant, exists.Tools, request, settings.Grants, now)
	}
}

// checkDocument reports why a document cannot be registered for a tenant. tools are the tenant's tools.
func checkDocument(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error {
	if err := current.Check(tenant, doc); err != nil {
		return err
	}
	return policy.CheckDocument(ctx, doc, tools)
}
