package workflows_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools"
)

// The tools of the arena, the composition that writes, and the principal of all sessions.
const (
	raceWrite     = "race.write"
	raceRead      = "race.read"
	raceFlow      = "race.flow"
	raceRequester = "rita"
)

// raceFlowDocument is the composition. It reads, then writes.
const raceFlowDocument = `kind: composition
name: race.flow
description: Reads, then writes.
input_schema:
  type: object
  properties: {item: {type: string}, amount: {type: integer}}
  required: [item, amount]
steps:
  - id: look
    tool: race.read
    input: {item: "${input.item}"}
  - id: pay
    tool: race.write
    input: {item: "${steps.look.data.item}", amount: "${input.amount}"}
output: {paid: "${steps.pay.data}"}
`

// racePeople are the people of the arenas' tenants.
var racePeople = []jig.Principal{
	{ID: raceRequester, Groups: []string{"finance"}},
	{ID: "fay", Groups: []string{"finance"}},
	{ID: "fin", Groups: []string{"finance"}},
	{ID: "fred", Groups: []string{"finance", "legal"}},
	{ID: "lea", Groups: []string{"legal"}},
	{ID: "lou", Groups: []string{"leads"}},
	{ID: "max", Groups: []string{"board"}},
	{ID: "nobody"},
}

// arena holds what the consecutive schedules of one goroutine share: a tenant, and tools that record what they did.
type arena struct {
	db          *store.DB
	conn        *pgx.Conn
	tenant      string
	registry    *tools.Registry
	expressions *expr.Engine
	composer    *composition.Engine
	chain       *audit.Chain
	// audited is the number of the last audit row that was read.
	audited int64
	// tally counts the events of all sessions by type.
	tally map[jig.EventType]int

	mu    sync.Mutex
	plays map[string]*play
}

func newArena(t *testing.T, db *store.DB) *arena {
	t.Helper()
	a := &arena{db: db, tenant: storetest.Tenant(t), composer: composition.NewEngine(), plays: map[string]*play{}, tally: map[jig.EventType]int{}}
	a.chain = newChain(a.tenant)
	var err error
	a.registry, err = tools.NewRegistry(append(person.Tools(), a.tools()...)...)
	require.NoError(t, err)
	a.expressions, err = expr.NewEngine()
	require.NoError(t, err)
	a.conn, err = pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.conn.Close(context.WithoutCancel(t.Context())) })
	_, err = a.conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", a.tenant)
	require.NoError(t, err)
	flow, err := a.composer.Load(raceFlow, []byte(raceFlowDocument))
	require.NoError(t, err)
	require.NoError(t, db.PutDocument(t.Context(), a.tenant, activities.DocumentSpec, raceFlow, flow.Contract.Version, []byte(raceFlowDocument)))
	return a
}

func newChain(tenant string) *audit.Chain { return audit.NewChain(tenant, 1) }

// piece is the input of race.read and the output of both tools, and paying the input of race.write.
type (
	piece struct {
		Item string `json:"item"`
	}
	paying struct {
		Item   string `json:"item"`
		Amount int    `json:"amount"`
	}
)

func (a *arena) tools() []tools.Tool {
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: raceWrite, Description: "Writes.", Permission: jig.PermissionWrite, Risk: jig.RiskModerate, Labels: &jig.Labels{}, Execution: jig.ExecutionActivity,
		}, func(_ context.Context, inv jig.Invocation, in paying) (piece, error) {
			if a.of(inv.SessionID).effect(inv, in) {
				return piece{}, jig.Errorf(jig.CodeTimeout, "the connection was cut off")
			}
			return piece{Item: in.Item}, nil
		}),
		tools.New(jig.Tool{
			Name: raceRead, Description: "Reads.", Permission: jig.PermissionRead, Risk: jig.RiskSafe, Labels: &jig.Labels{}, Idempotent: true, Execution: jig.ExecutionLocal,
		}, func(_ context.Context, _ jig.Invocation, in piece) (piece, error) { return in, nil }),
	}
}

func (a *arena) of(session string) *play {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plays[session]
}

// Check accepts any model.
func (a *arena) Check(string) error { return nil }

// Answer returns the session's turns, and then ends it.
func (a *arena) Answer(_ context.Context, r chat.Request, _ func(string)) (chat.Turn, error) {
	p := a.of(r.SessionID)
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	if r.Pass < 1 || r.Pass > len(p.turns) {
		return chat.Turn{Text: "done", Stop: chat.StopEnd}, nil
	}
	turn := chat.Turn{Stop: chat.StopCalls}
	for i, one := range p.turns[r.Pass-1] {
		one.ProviderID = jig.CallID(r.Pass, i+1)
		turn.Calls = append(turn.Calls, one)
	}
	return turn, nil
}

// parseAgent reads an agent from JSON.
func (a *arena) parseAgent(_ string, body []byte) (jig.Agent, error) {
	var agent jig.Agent
	err := json.Unmarshal(body, &agent)
	return agent, err
}
