package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

// The defaults of a grant, unless the tenant's ceiling is lower.
const (
	defaultGrantUses = 10
	defaultGrantAge  = 24 * time.Hour
)

// maxGrantNote limits the note of a grant, in characters.
const maxGrantNote = 2_000

var agentForm = regexp.MustCompile(`^(` + jig.DraftPrefix + `)?[a-z][a-z0-9._-]{0,127}$`)

// GrantRule is a compiled standing approval. It is immutable and safe for concurrent use.
type GrantRule struct {
	grant jig.Grant
	when  *expr.Program
}

// CompileGrant compiles a standing approval so that it can be matched. Errors are INVALID_INPUT with the field grant.when.
func CompileGrant(g jig.Grant) (*GrantRule, error) {
	when, err := compileWhen(g.When)
	if err != nil {
		return nil, err
	}
	return &GrantRule{grant: g, when: when}, nil
}

func compileWhen(source string) (*expr.Program, error) {
	env, err := expr.PolicyUse().Env()
	if err != nil {
		return nil, fmt.Errorf("compile a grant: %w", err)
	}
	when, err := env.CompileAs(source, expr.Bool)
	if err != nil {
		return nil, badGrant("when", jig.AsError(err).Hint, "the condition: %s", jig.AsError(err).Message)
	}
	return when, nil
}

// badGrant returns an error about a request for a grant.
func badGrant(field, hint, format string, args ...any) *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField("grant." + field).WithHint(hint)
}

// Grant returns the standing approval that the rule was made from.
func (r *GrantRule) Grant() jig.Grant { return r.grant }

// Covers reports whether the grant applies to a call. The grant must be live, belong to the session's tenant, and name this tool and agent. It
// must have been given for a contract with the same meaning, grants must be allowed for the tool, and the condition must hold. A condition that
// cannot be evaluated does not hold, and the error says why. The input in call must be the input that will run.
func (r *GrantRule) Covers(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (bool, error) {
	g := r.grant
	switch {
	case !g.Live(now), g.Tenant != session.Tenant:
		return false, nil
	case g.Tool != tool.Name, g.Tool != call.Tool, g.Agent != "" && g.Agent != session.Agent.Name:
		return false, nil
	case g.Meaning == "", g.Meaning != tool.Meaning:
		return false, nil
	case baseVerdict(tool).fixed:
		return false, nil
	}
	holds, err := r.when.EvalBool(ctx, variables(tool, call, session, now))
	if err != nil {
		return false, fmt.Errorf("the condition of grant %s: %w", g.ID, err)
	}
	return holds, nil
}

// NewGrant makes a grant from a request, for calls of a tool. Defaults are 10 uses and 24 hours (less if the ceiling is lower), a condition
// that always holds, and all agents. The caller adds the tenant, the id, who gave it and where. Errors are INVALID_INPUT with the field
// grant.tool, grant.agent, grant.when, grant.max_uses, grant.expires or grant.note.
func NewGrant(req jig.GrantRequest, ceiling approval.GrantCeiling, tool jig.Tool, now time.Time) (jig.Grant, error) {
	ceiling = ceiling.WithDefaults()
	g := jig.Grant{Tool: tool.Name, Meaning: tool.Meaning, Agent: req.Agent, When: req.When, MaxUses: req.MaxUses, Note: req.Note, CreatedAt: now}
	if err := grantable(req, ceiling, tool); err != nil {
		return jig.Grant{}, err
	}
	if g.Agent == "*" {
		g.Agent = ""
	}
	if g.Agent != "" && !agentForm.MatchString(g.Agent) {
		return jig.Grant{}, badGrant("agent", "give an agent's name, or * for all", "%s is not the name of an agent", quote(req.Agent))
	}
	if n := utf8.RuneCountInString(req.Note); n > maxGrantNote {
		return jig.Grant{}, badGrant("note", fmt.Sprintf("use at most %d", maxGrantNote), "the note has %d characters", n)
	}
	if g.When == "" {
		g.When = "true"
	}
	if err := checkWhen(g.When, tool); err != nil {
		return jig.Grant{}, err
	}
	switch {
	case req.MaxUses == 0:
		g.MaxUses = min(defaultGrantUses, ceiling.MaxUses)
	case req.MaxUses < 0:
		return jig.Grant{}, badGrant("max_uses", "use 1 or more", "a standing approval of %d uses approves nothing", req.MaxUses)
	case req.MaxUses > ceiling.MaxUses:
		return jig.Grant{}, badGrant("max_uses", fmt.Sprintf("use at most %d", ceiling.MaxUses),
			"%d uses are above the tenant's ceiling of %d", req.MaxUses, ceiling.MaxUses)
	}
	age, err := grantAge(req.Expires, ceiling.MaxAge)
	if err != nil {
		return jig.Grant{}, err
	}
	g.ExpiresAt = now.Add(age)
	return g, nil
}

// grantable refuses tools that no standing approval may cover.
func grantable(req jig.GrantRequest, ceiling approval.GrantCeiling, tool jig.Tool) error {
	switch start := baseVerdict(tool); {
	case ceiling.Off:
		return badGrant("tool", "decide each call by itself, or ask the operator to change grants.off", "the tenant allows no standing approvals")
	case req.Tool != "" && req.Tool != tool.Name:
		return badGrant("tool", "leave it out, or write "+tool.Name, "the standing approval names %s, and the call is of %s", quote(req.Tool), tool.Name)
	case tool.Permission == jig.PermissionDestructive:
		return badGrant("tool", "decide each of its calls by itself", "%s is destructive: no standing approval can cover it", tool.Name)
	case tool.Approval == jig.ApprovalAlwaysAsk:
		return badGrant("tool", "decide each of its calls by itself", "%s always asks: no standing approval can cover it", tool.Name)
	case start.fixed:
		return badGrant("tool", "decide each of its calls by itself",
			"the contract of %s says something that is not known: no standing approval can cover it", tool.Name)
	}
	return nil
}

// checkWhen compiles a condition and checks it against what is known about the tool's input.
func checkWhen(source string, tool jig.Tool) error {
	when, err := compileWhen(source)
	if err != nil {
		return err
	}
	shapes := maps.Clone(spec.PolicyShapes())
	if json.Valid(tool.InputSchema) {
		shapes["input"], shapes["call.input"] = tool.InputSchema, tool.InputSchema
	}
	if err := when.Check(shapes); err != nil {
		return badGrant("when", jig.AsError(err).Hint, "the condition: %s", jig.AsError(err).Message)
	}
	return nil
}

// grantAge parses how long a grant is valid.
func grantAge(text string, ceiling time.Duration) (time.Duration, error) {
	const hint = `write e.g. "12h" or "7d"`
	if text == "" {
		return min(defaultGrantAge, ceiling), nil
	}
	age, err := duration.Parse(text)
	switch {
	case err != nil:
		return 0, badGrant("expires", hint, "%s is not a duration", quote(text))
	case age <= 0:
		return 0, badGrant("expires", hint, "a standing approval of %s has expired already", quote(text))
	case age > ceiling:
		return 0, badGrant("expires", "use at most "+spec.Duration(ceiling).String(), "%s is above the tenant's ceiling of %s", spec.Duration(age), spec.Duration(ceiling))
	default:
		return age, nil
	}
}

// With returns the rule for a newer version of the same grant. It reuses the compiled condition.
func (r *GrantRule) With(g jig.Grant) *GrantRule { return &GrantRule{grant: g, when: r.when} }

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
