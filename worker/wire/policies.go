package wire

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/policy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools/bundles"
	"github.com/jig-run/jig/tools/catalog"
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
	rules    policy.Set
	// broken says which document cannot be read; then every call asks.
	broken string
}

func newPolicies(documents policyDocuments) *policies {
	return &policies{documents: documents, known: map[string]tenantPolicies{}}
}

// Rule gives the verdict on a call. A policy that cannot be read lets nothing run by itself. The tools that register policies, and
// take them back, are never denied by one, only asked about, so that nobody locks a tenant out of its own policies.
func (p *policies) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (jig.Ruling, error) {
	of, err := p.of(ctx, session.Tenant)
	if err != nil {
		return jig.Ruling{}, err
	}
	if of.broken != "" {
		return jig.Ruling{Verdict: jig.VerdictAsk, Reasons: []string{of.broken}, PolicyVersion: "unreadable", Person: true}, nil
	}
	x := of.rules.Explain(ctx, tool, call, session, now)
	if x.Verdict == jig.VerdictDeny && registersPolicies(tool.Name) {
		ruling := x.Asked()
		ruling.Reasons = append(ruling.Reasons, "the tools that register policies and take them back are asked about, never denied")
		return ruling, nil
	}
	return x.Ruling, nil
}

// registersPolicies reports whether a tool changes which policies hold.
func registersPolicies(tool string) bool {
	return tool == catalog.PutTool || tool == bundles.InstallTool || tool == bundles.RemoveTool
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
			of.broken = fmt.Sprintf("policy %s (version %s) cannot be read, so every call is asked about: %v", v.Name, jig.ShortVersion(v.Version), err)
			return of, nil
		}
		list = append(list, rules)
	}
	of.rules = policy.NewSet(list...)
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
