// Package grants contains the tool grants.create, which requests a standing approval without a call that waits for one. The people who
// approve the call of grants.create give the grant. The package must not know how grants are stored.
package grants

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// CreateTool is the name of the tool.
const CreateTool = toolname.GrantsCreate

// Options are the settings of the tools; all are required.
type Options struct {
	// New checks the request against the tenant's ceiling and returns a grant without its id and givers.
	New func(ctx context.Context, tenant string, request jig.GrantRequest, now time.Time) (jig.Grant, error)
	// Approved returns the people who approved a call.
	Approved func(ctx context.Context, tenant, session, call string) (by []string, proof jig.Proof, err error)
	// Put stores a grant; storing the same id again has no effect.
	Put func(ctx context.Context, g jig.Grant) error
	// ID returns the id of the grant that a call creates. It is the same for every attempt.
	ID func(session, call string) string
}

// Created is the output of grants.create.
type Created struct {
	ID        string    `json:"grant_id"`
	Tool      string    `json:"tool"`
	Agent     string    `json:"agent,omitempty"`
	When      string    `json:"when"`
	MaxUses   int       `json:"max_uses"`
	ExpiresAt time.Time `json:"expires_at"`
	By        []string  `json:"by"`
}

// Summary implements tools.Summarizer.
func (c Created) Summary() string {
	return fmt.Sprintf("%s: %d calls of %s until %s, by %s", c.ID, c.MaxUses, c.Tool, c.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"), strings.Join(c.By, ", "))
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{tools.New(jig.Tool{
		Name: CreateTool,
		Description: "Gives a standing approval: calls of a tool that meet a condition run without asking anybody, up to a number of uses and until a time. " +
			"The people who approve this call give the standing approval.",
		Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"operator"},
		Labels: &jig.Labels{},
	}, o.create, tools.WithPreview(o.preview))}
}

// preview shows which calls will run without asking. The condition is checked as it is when the grant is given.
func (o Options) preview(ctx context.Context, inv jig.Invocation, in jig.GrantRequest) (jig.Preview, error) {
	if err := named(in); err != nil {
		return jig.Preview{}, err
	}
	now := time.Now()
	g, err := o.New(ctx, inv.Tenant, in, now)
	if err != nil {
		return jig.Preview{}, err
	}
	agent := "calls of any agent"
	if g.Agent != "" {
		agent = "only calls of agent " + g.Agent
	}
	// The lifetime begins when the grant is given, so a time of day would be different in every preview.
	return jig.Preview{
		Title: fmt.Sprintf("Lets up to %d calls of %s run without asking", g.MaxUses, g.Tool),
		Changes: []string{
			"when: " + preview.Code(g.When), agent, "for " + g.ExpiresAt.Sub(now).String() + " after it is given",
			"given by the people who approve this call",
		},
	}, nil
}

// named returns an error if a request names no tool.
func named(in jig.GrantRequest) error {
	if in.Tool == "" {
		return jig.Errorf(jig.CodeInvalidInput, "no tool is named").WithField("/tool").WithHint("name the tool whose calls it approves")
	}
	return nil
}

func (o Options) create(ctx context.Context, inv jig.Invocation, in jig.GrantRequest) (Created, error) {
	g, err := o.grant(ctx, inv, in)
	if err != nil {
		e := *jig.AsError(err)
		e.NotExecuted = true
		return Created{}, &e
	}
	if err := o.Put(ctx, g); err != nil {
		return Created{}, err
	}
	return Created{ID: g.ID, Tool: g.Tool, Agent: g.Agent, When: g.When, MaxUses: g.MaxUses, ExpiresAt: g.ExpiresAt.UTC(), By: g.By}, nil
}

// grant returns the grant to store.
func (o Options) grant(ctx context.Context, inv jig.Invocation, in jig.GrantRequest) (jig.Grant, error) {
	if err := named(in); err != nil {
		return jig.Grant{}, err
	}
	by, proof, err := o.Approved(ctx, inv.Tenant, inv.SessionID, inv.CallID)
	if err != nil {
		return jig.Grant{}, err
	}
	if len(by) == 0 {
		return jig.Grant{}, jig.Errorf(jig.CodeNotPermitted, "nobody approved this call, so the grant has no giver")
	}
	g, err := o.New(ctx, inv.Tenant, in, time.Now())
	if err != nil {
		return jig.Grant{}, err
	}
	g.Tenant, g.ID, g.By, g.Claimed, g.SessionID, g.Call = inv.Tenant, o.ID(inv.SessionID, inv.CallID), by, jig.ProofClaimed.AtLeast(proof), inv.SessionID, inv.CallID
	g.Proof = proof
	return g, nil
}
