package wire

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/policy"
	"github.com/jig-run/jig/spec"
)

// policyAge is how long a worker goes on with the policies that it has read: a change holds everywhere after this.
const policyAge = time.Second

// maxKnownTenants bounds the tenants of which a worker remembers what it has read.
const maxKnownTenants = 10_000

// remember keeps what was read of a tenant, and forgets all others when they become too many: whoever starts a session names its tenant.
func remember[T any](known map[string]T, tenant string, of T) {
	if _, there := known[tenant]; !there && len(known) >= maxKnownTenants {
		clear(known)
	}
	known[tenant] = of
}

// policies rules by the policy documents that a tenant has now.
type policies struct {
	documents policyDocuments
	settings  func(ctx context.Context, tenant string) (jig.TenantSettings, error)
	failures  *ruleFailures

	mu    sync.Mutex
	known map[string]tenantPolicies
}

// policyDocuments is where policies are kept.
type policyDocuments interface {
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]jig.DocumentVersion, error)
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// tenantPolicies are a tenant's policies as they were read.
type tenantPolicies struct {
	read     time.Time
	versions []jig.DocumentVersion
	policies policy.Tenant
}

func newPolicies(documents policyDocuments, settings func(ctx context.Context, tenant string) (jig.TenantSettings, error)) *policies {
	return &policies{documents: documents, settings: settings, failures: newRuleFailures(), known: map[string]tenantPolicies{}}
}

// Rule gives the verdict on a call, or holds it back; see policy.Tenant.
func (p *policies) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (jig.Ruling, error) {
	of, err := p.of(ctx, session.Tenant)
	if err != nil {
		return jig.Ruling{}, err
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

// Policies lists a tenant's policies by name, those that cannot be read among them.
func (p *policies) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	of, err := p.of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return of.policies.States(), nil
}

// unreadable are the tenants with policies that could not be read when they were last looked at.
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

// of gives a tenant's policies, read at most policyAge ago.
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

func (p *policies) compile(ctx context.Context, tenant string, versions []jig.DocumentVersion) (tenantPolicies, error) {
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

// checkDocument says what keeps a document from being registered for a tenant: one of another tenant, and a policy that does
// not do what its own cases expect.
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
