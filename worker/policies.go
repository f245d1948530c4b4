package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

// policyAge is how long a worker uses a tenant's documents before it checks them for changes. A change takes effect on every worker
// within this time.
const policyAge = time.Second

// maxKnownTenants bounds the number of tenants in each of a worker's caches.
const maxKnownTenants = 10_000

// remember caches a value for a tenant and clears the whole cache first if it is full. The bound is needed because callers choose the
// tenant of the sessions they start.
func remember[T any](known map[string]T, tenant string, of T) {
	if _, there := known[tenant]; !there && len(known) >= maxKnownTenants {
		clear(known)
	}
	known[tenant] = of
}

// policies evaluates calls against the current policy documents of the call's tenant.
type policies struct {
	documents policyDocuments
	settings  func(ctx context.Context, tenant string) (tenancy.Settings, error)
	failures  *ruleFailures

	mu    sync.Mutex
	known map[string]tenantPolicies
}

// policyDocuments is the part of the store that reads documents.
type policyDocuments interface {
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error)
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// tenantPolicies are a tenant's compiled policies, their versions, and the time they were checked.
type tenantPolicies struct {
	read     time.Time
	versions []bundle.DocumentVersion
	policies policy.Tenant
}

func newPolicies(documents policyDocuments, settings func(ctx context.Context, tenant string) (tenancy.Settings, error)) *policies {
	return &policies{documents: documents, settings: settings, failures: newRuleFailures(), known: map[string]tenantPolicies{}}
}

// Rule returns the verdict on a call, or holds it back; see [policy.Tenant].
func (p *policies) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	of, err := p.of(ctx, session.Tenant)
	if err != nil {
		return policy.Ruling{}, err
	}
	decides := of.policies
	if policy.Operator(tool.Name) {
		settings, err := p.settings(ctx, session.Tenant)
		decides.Owners, decides.OwnersUnknown = policy.OwnerTerms(settings), err
	}
	x, err := decides.Decide(ctx, tool, call, session, now)
	for _, spoken := range x.Spoken {
		if spoken.Failed {
			p.failures.count(session.Tenant, spoken.Policy, spoken.Rule)
		}
	}
	return x.Ruling, err
}

// Policies lists a tenant's policies by name, including those that cannot be read.
func (p *policies) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	of, err := p.of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return of.policies.States(), nil
}

// unreadable lists the cached tenants that have unreadable policies.
func (p *policies) unreadable() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tenants []string
	for tenant, of := range p.known {
		if len(of.policies.Unreadable) > 0 {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// of returns a tenant's policies, checked for changes at most policyAge ago.
func (p *policies) of(ctx context.Context, tenant string) (tenantPolicies, error) {
	p.mu.Lock()
	known, ok := p.known[tenant]
	p.mu.Unlock()
	if ok && time.Since(known.read) < policyAge {
		return known, nil
	}
	versions, err := p.documents.CurrentDocuments(ctx, tenant, string(spec.KindPolicy))
	if err != nil {
		return known, err
	}
	if !ok || !slices.Equal(versions, known.versions) {
		if known, err = p.compile(ctx, tenant, versions); err != nil {
			return known, err
		}
	}
	known.read = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	remember(p.known, tenant, known)
	return known, nil
}

func (p *policies) compile(ctx context.Context, tenant string, versions []bundle.DocumentVersion) (tenantPolicies, error) {
	of := tenantPolicies{versions: versions}
	list := make([]*policy.Rules, 0, len(versions))
	for _, v := range versions {
		body, err := p.documents.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return of, err
		}
		rules, err := compilePolicy(v.Name, v.Version, body)
		if err != nil {
			of.policies.Unreadable = append(of.policies.Unreadable, policy.Unreadable(v.Name, v.Version, err))
			continue
		}
		list = append(list, rules)
	}
	of.policies.Policies = policy.NewSet(list...)
	return of, nil
}

func compilePolicy(name, version string, body []byte) (*policy.Rules, error) {
	read, err := spec.LoadPolicy(name, body)
	if err != nil {
		return nil, err
	}
	return policy.Compile(read, version)
}

// checkDocument reports why a document cannot be registered for a tenant: it is the document of another tenant, or a policy that fails one
// of its own test cases.
func checkDocument(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error {
	if err := checkTenant(tenant, doc); err != nil || doc.Policy == nil {
		return err
	}
	rules, err := policy.Compile(*doc.Policy, doc.Version)
	if err != nil {
		return err
	}
	find := func(name string) (jig.Tool, bool) {
		i := slices.IndexFunc(tools, func(t jig.Tool) bool { return t.Name == name })
		if i < 0 {
			return jig.Tool{}, false
		}
		return tools[i], true
	}
	for _, result := range policy.Test(ctx, rules, find) {
		if !result.OK {
			return jig.Errorf(jig.CodeInvalidInput, "policy %s: its case %q does not hold", doc.Name, result.Name).
				WithHint("`jig policy test " + doc.Path + "` shows what was expected and what came")
		}
	}
	return nil
}
