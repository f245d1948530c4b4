package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// policyLister lists the policies in force. A Policy may implement it.
type policyLister interface {
	// Policies lists a tenant's policies by name, including those that cannot be read.
	Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error)
}

// ListPolicies returns a page of a tenant's policies as this worker sees them.
func (a *Activities) ListPolicies(ctx context.Context, in protocol.PoliciesRequest) (protocol.PoliciesPage, error) {
	page := protocol.PoliciesPage{Policies: []jig.PolicyState{}}
	states, err := a.policies(ctx, in.Tenant)
	size := 0
	for _, s := range states {
		if s.Name <= in.After {
			continue
		}
		if size += sizeOf(s); size > pageBytes && len(page.Policies) > 0 {
			page.More = true
			break
		}
		page.Policies = append(page.Policies, s)
	}
	return page, temporalError(err)
}

func (a *Activities) policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	lister, ok := a.Policy.(policyLister)
	if !ok {
		return nil, nil
	}
	return lister.Policies(ctx, tenant)
}

// heldBack returns the policies that hold back the calls of a tenant because this worker cannot read them.
func (a *Activities) heldBack(ctx context.Context, tenant string) ([]string, error) {
	states, err := a.policies(ctx, tenant)
	var held []string
	for _, s := range states {
		if s.Error != "" {
			held = append(held, s.Unreadable())
		}
	}
	return held, err
}
