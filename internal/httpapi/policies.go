package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

type policiesAnswer struct {
	Body struct {
		Policies []jig.PolicyState `json:"policies"`
	} `nameHint:"PolicyList"`
}

func (a *API) listPolicies(ctx context.Context, _ *struct{}) (*policiesAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Policies(ctx, tenant)
	var answer policiesAnswer
	answer.Body.Policies = append([]jig.PolicyState{}, list...)
	return &answer, err
}

type simulateRequest struct {
	Body struct {
		Tool     string          `json:"tool" names:"tool" minLength:"1" maxLength:"64" doc:"The name of the tool"`
		Input    json.RawMessage `json:"input,omitempty" doc:"The arguments, which are filled with defaults and not validated"`
		Document string          `json:"document,omitempty" doc:"The text of a policy document, which replaces the policy of the same name"`
		Agent    string          `json:"agent,omitempty" names:"agent" maxLength:"200" doc:"The agent that makes the call; omit it for a call without a model"`
		By       string          `json:"by,omitempty" names:"person" maxLength:"200" doc:"The principal of the session. Naming another one than the credential's needs the scope author or manage. Default: that of the credential"`
	} `nameHint:"SimulateCall"`
}

type simulateAnswer struct{ Body protocol.Verdict }

func (a *API) simulateCall(ctx context.Context, in *simulateRequest) (*simulateAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.By != "" && b.By != who.ID {
		if err := a.needs(ctx, credential.ScopeAuthor, credential.ScopeManage); err != nil {
			return nil, err
		}
	}
	v, err := a.options.Engine.Simulate(ctx, protocol.VerdictRequest{
		Tenant: tenant, Document: b.Document, Tool: b.Tool, Input: b.Input, Agent: b.Agent, By: cmp.Or(b.By, who.ID),
	})
	return &simulateAnswer{Body: v}, err
}

type checkRequest struct {
	Body struct {
		Document string `json:"document" minLength:"1" doc:"The text of a policy document"`
	} `nameHint:"CheckPolicy"`
}

type checkAnswer struct{ Body protocol.CasesPage }

func (a *API) checkPolicy(ctx context.Context, in *checkRequest) (*checkAnswer, error) {
	tenant, _ := callerOf(ctx)
	page, err := a.options.Engine.PolicyCases(ctx, tenant, in.Body.Document)
	return &checkAnswer{Body: page}, err
}

type backtestRequest struct {
	Body struct {
		Document string    `json:"document" minLength:"1" doc:"The text of a policy document, which replaces the policy of the same name"`
		Since    time.Time `json:"since" doc:"Only calls since this time"`
		All      bool      `json:"all,omitempty" doc:"Include calls whose verdict the document does not change"`
		Cursor   string    `json:"cursor,omitempty" maxLength:"2000" doc:"next_cursor of the previous page, with the same document, since and all"`
	} `nameHint:"BacktestPolicy"`
}

type backtestAnswer struct {
	Body struct {
		Results []protocol.BacktestResult `json:"results" doc:"The calls whose verdict changes, and those whose tool is unknown"`
		Tally   []protocol.BacktestCount  `json:"tally" doc:"How many calls have the same three verdicts"`
		Refused int                       `json:"refused,omitempty" doc:"Calls that never reached policy"`
		Unknown int                       `json:"unknown,omitempty" doc:"Calls whose tool is no longer known"`
		Next    string                    `json:"next_cursor,omitempty"`
	} `nameHint:"BacktestAnswer"`
}

func (a *API) backtestPolicy(ctx context.Context, in *backtestRequest) (*backtestAnswer, error) {
	tenant, _ := callerOf(ctx)
	request := protocol.BacktestRequest{Tenant: tenant, Document: in.Body.Document, Since: in.Body.Since.UTC(), All: in.Body.All}
	mark, from, err := continued(in.Body.Cursor, request)
	if err != nil {
		return nil, err
	}
	request.Cursor = from
	page, err := a.options.Engine.BacktestOnce(ctx, request)
	if err != nil {
		return nil, err
	}
	var answer backtestAnswer
	b := &answer.Body
	b.Results, b.Tally = append([]protocol.BacktestResult{}, page.Results...), append([]protocol.BacktestCount{}, page.Tally...)
	b.Refused, b.Unknown = page.Refused, page.Unknown
	if page.Next != "" {
		b.Next = mark + page.Next
	}
	return &answer, nil
}
