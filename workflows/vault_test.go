package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// transfer is the input of the tool under test.
type transfer struct {
	To     string `json:"to"`
	Amount int    `json:"amount"`
	Memo   string `json:"memo"   default:"rent"`
}

// vault is an engine with a real store. A test can change its catalog and policies at any time.
type vault struct {
	*activities.Activities

	db              *store.DB
	tenant, session string

	mu       sync.Mutex
	registry *tools.Registry
	rules    policy.Set
	lost     error // the error of reading the policies
	ran      []string
}

const (
	ledgerPay  = "bank.pay"
	ledgerRead = "bank.read"
	ledgerWipe = "bank.wipe"
)

// catalog returns the three tools. change is applied to the tool under test.
func (v *vault) catalog(t *testing.T, change func(*jig.Tool)) *tools.Registry {
	t.Helper()
	pay := jig.Tool{Name: ledgerPay, Description: "Pays somebody.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}}
	if change != nil {
		change(&pay)
	}
	var list []tools.Tool
	for _, contract := range []jig.Tool{
		pay,
		{Name: ledgerRead, Description: "Reads an account.", Permission: jig.PermissionRead, Idempotent: true, Execution: jig.ExecutionLocal, Labels: &jig.Labels{}},
		{Name: ledgerWipe, Description: "Wipes an account.", Permission: jig.PermissionDestructive},
	} {
		if contract.Name == "" {
			continue // the change removed it
		}
		list = append(list, tools.New(contract, func(_ context.Context, inv jig.Invocation, in transfer) (transfer, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.ran = append(v.ran, fmt.Sprintf("%s %s %s to %s %d", contract.Name, inv.SessionID, inv.CallID, in.To, in.Amount))
			return in, nil
		}))
	}
	registry, err := tools.NewRegistry(list...)
	require.NoError(t, err)
	return registry
}

func (v *vault) now() *tools.Registry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.registry
}

func (v *vault) Tool(name string) (jig.Tool, bool) { return v.now().Tool(name) }
func (v *vault) Tools() []jig.Tool                 { return v.now().Tools() }
func (v *vault) Validate(name string, input []byte) error {
	return v.now().Validate(name, input)
}

func (v *vault) Run(ctx context.Context, name string, input []byte, inv jig.Invocation) jig.ToolResult {
	return v.now().Run(ctx, name, input, inv)
}

// verdicts is a policy engine that gives the verdicts of a function, and can do nothing else.
type verdicts struct {
	*policy.Engine
	rule func(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error)
}

func (r verdicts) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	return r.rule(ctx, tool, call, session, now)
}

func (verdicts) Policies(context.Context, string) ([]jig.PolicyState, error) { return nil, nil }

// Rule applies the policies that the test set.
func (v *vault) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	v.mu.Lock()
	rules, lost := v.rules, v.lost
	v.mu.Unlock()
	if lost != nil {
		return policy.Ruling{}, lost
	}
	return rules.Rule(ctx, tool, call, session, now)
}

func (v *vault) Fill(ctx context.Context, name string, input []byte, inv jig.Invocation) ([]byte, error) {
	return v.now().Fill(ctx, name, input, inv)
}

func (v *vault) Preview(ctx context.Context, name string, input []byte, inv jig.Invocation) (jig.Preview, error) {
	return v.now().Preview(ctx, name, input, inv)
}

// Settings returns the settings of a tenant that trusts what signals claim.
func (v *vault) Settings(context.Context, string) (tenancy.Settings, error) {
	s := tenancy.Settings{Proof: jig.ProofClaimed}
	for _, id := range []string{"fay", "flo", "fred"} {
		s.People = append(s.People, jig.Principal{ID: id, Groups: []string{"finance"}})
	}
	return s, nil
}

func (v *vault) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return v.Settings(ctx, tenant)
}

// govern sets the policies. Each document is a list of rules in YAML.
func (v *vault) govern(t *testing.T, documents ...string) {
	t.Helper()
	var list []*policy.Rules
	for i, rules := range documents {
		doc, problems := spec.Load("policy.yaml", fmt.Appendf(nil, "kind: policy\nname: p%d\nrules:\n%s", i, rules))
		require.Empty(t, problems)
		compiled, err := policy.Compile(*doc.Policy(), doc.Version)
		require.NoError(t, err)
		list = append(list, compiled)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rules = policy.NewSet(list...)
}

func (v *vault) sell(registry *tools.Registry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.registry = registry
}

const quorumRule = "  - {name: two, when: 'tool.name == \"bank.pay\"', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n"

// newVault returns a vault with a session whose first pass asks for two payments, 1.1 and 1.2, and a wipe, 1.3.
func newVault(t *testing.T, db *store.DB, rules ...string) *vault {
	t.Helper()
	v := &vault{db: db, tenant: storetest.Tenant(t)}
	v.registry = v.catalog(t, nil)
	v.govern(t, rules...)
	v.serve(t, db)
	v.session = v.open(t, v.tenant)
	return v
}

// serve creates the engine with a store.
func (v *vault) serve(t *testing.T, db activities.Store) {
	t.Helper()
	expressions, err := expr.NewEngine()
	require.NoError(t, err)
	v.Activities = activities.New(activities.Deps{
		Store: db, Catalog: v, Policy: verdicts{rule: v.Rule}, Tenants: v, Expressions: expressions, Composer: composition.NewEngine(),
	})
}

// elsewhere is the store of another installation with the same rows, for example a copy of the database.
type elsewhere struct{ *store.DB }

func (elsewhere) Installation() string { return "elsewhere" }

// open starts a session and admits the calls of its first pass.
func (v *vault) open(t *testing.T, tenant string) string {
	t.Helper()
	pinned := map[string]string{}
	for _, tool := range v.Tools() {
		pinned[tool.Name] = tool.Version
	}
	s, err := v.db.CreateSession(t.Context(), jig.Session{
		Tenant: tenant, ID: jig.NewSessionID(), Task: "pay", Catalog: pinned, Principal: jig.Principal{ID: "ana", Claimed: true},
		Agent: jig.Agent{Name: "payer", Version: "0123456789abcdef", Model: "script/payer", Tools: []string{"*"}},
	})
	require.NoError(t, err)
	_, err = v.db.BeginPass(t.Context(), tenant, s.ID, 1)
	require.NoError(t, err)
	_, err = v.db.SaveTurn(t.Context(), tenant, s.ID, 1, chat.Turn{Stop: chat.StopCalls, Calls: []jig.ToolCall{
		{ProviderID: "a", Name: ledgerPay, Input: json.RawMessage(`{"to":"bob","amount":10}`)},
		{ProviderID: "b", Name: ledgerPay, Input: json.RawMessage(`{"to":"cleo","amount":20}`)},
		{ProviderID: "c", Name: ledgerWipe, Input: json.RawMessage(`{"to":"dan","amount":30}`)},
	}})
	require.NoError(t, err)
	_, err = v.Admit(t.Context(), activities.AdmitInput{PassRef: activities.PassRef{
		SessionRef: protocol.SessionRef{Tenant: tenant, SessionID: s.ID}, Pass: 1,
	}, Limit: 100})
	require.NoError(t, err)
	return s.ID
}

// say decides on a call as a signal does.
func (v *vault) say(t *testing.T, answer jig.Answer, call, by string) jig.Ruled {
	t.Helper()
	return v.decide(t, answer, jig.Decision{Call: call, By: by})
}

func (v *vault) decide(t *testing.T, answer jig.Answer, d jig.Decision) jig.Ruled {
	t.Helper()
	payload, err := json.Marshal(d)
	require.NoError(t, err)
	heard, err := v.Hear(t.Context(), activities.Signal{
		SessionRef: v.ref().SessionRef, Name: string(answer), Key: "signal:" + jig.NewSessionID(), Payload: payload, Pass: 1,
	})
	require.NoError(t, err)
	require.Len(t, heard.Decisions, 1)
	return heard.Decisions[0]
}

func (v *vault) ref() activities.RunInput {
	return activities.RunInput{SessionRef: protocol.SessionRef{Tenant: v.tenant, SessionID: v.session}, Call: "1.1"}
}

// attempt runs the activity as a worker does. A time limit catches an endless loop.
func (v *vault) attempt(t *testing.T, name string, in activities.RunInput) (activities.Ran, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterActivityWithOptions(v.RunTool, activity.RegisterOptions{Name: name})
	type answer struct {
		ran activities.Ran
		err error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		value, err := env.ExecuteActivity(name, in)
		if a.err = err; err == nil {
			a.err = value.Get(&a.ran)
		}
		got <- a
	}()
	limit, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	select {
	case a := <-got:
		return a.ran, a.err
	case <-limit.Done():
		require.Fail(t, "the attempt does not end")
		return activities.Ran{}, nil
	}
}

func (v *vault) effects() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.ran)
}

// owner changes a tenant's rows as the owner of the tables.
func (v *vault) owner(t *testing.T, tenant string, work func(*pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	work(conn)
}

// update changes the rows of call 1.1, its approval and others in one transaction. A statement has the form "table: assignments".
func (v *vault) update(t *testing.T, statements ...string) {
	t.Helper()
	v.owner(t, v.tenant, func(conn *pgx.Conn) {
		require.NoError(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			for _, statement := range statements {
				table, assignments, _ := strings.Cut(statement, ": ")
				sql := "update " + table + " set " + assignments + " where tenant_id = $1"
				args := []any{v.tenant}
				if table != "grants" {
					sql, args = sql+" and session_id = $2", append(args, v.session)
				}
				if table == "calls" || table == "approvals" {
					sql += " and call_id = '1.1'"
				}
				tag, err := tx.Exec(t.Context(), sql, args...)
				require.NoError(t, err, statement)
				require.Positive(t, tag.RowsAffected(), statement)
			}
			return nil
		}))
	})
}

// copied inserts copies of call 1.1 and its approval with other keys, as if they had always been there.
func (v *vault) copied(t *testing.T, tenant string, changes map[string]string) {
	t.Helper()
	for _, table := range []string{"calls", "approvals"} {
		var row map[string]any
		var columns []string
		v.owner(t, v.tenant, func(conn *pgx.Conn) {
			var raw []byte
			require.NoError(t, conn.QueryRow(t.Context(),
				"select to_jsonb(r) from "+table+" r where tenant_id = $1 and session_id = $2 and call_id = '1.1'", v.tenant, v.session).Scan(&raw))
			require.NoError(t, json.Unmarshal(raw, &row))
			rows, err := conn.Query(t.Context(), `select column_name::text from information_schema.columns where table_schema = current_schema
				and table_name = $1 and is_generated = 'NEVER' and is_identity = 'NO' order by 1`, table)
			require.NoError(t, err)
			columns, err = pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
		})
		for column, value := range changes {
			row[column] = value
		}
		raw, err := json.Marshal(row)
		require.NoError(t, err)
		v.owner(t, tenant, func(conn *pgx.Conn) {
			list := strings.Join(columns, ", ")
			_, err := conn.Exec(t.Context(), "delete from "+table+" where tenant_id = $1 and session_id = $2 and call_id = $3",
				row["tenant_id"], row["session_id"], row["call_id"])
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), "insert into "+table+" ("+list+") select "+list+" from jsonb_populate_record(null::"+table+", $1)", raw)
			require.NoError(t, err)
		})
	}
}

// status returns the status of a call.
func (v *vault) status(t *testing.T, call string) jig.CallStatus {
	t.Helper()
	c, err := v.db.Call(t.Context(), v.tenant, v.session, call)
	require.NoError(t, err)
	return c.Status
}
