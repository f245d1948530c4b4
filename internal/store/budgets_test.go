package store_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// claim is a claim of tokens in the account of a tenant, which may use limit tokens.
func claim(tokens, limit int64) budget.Claim {
	return budget.Claim{
		Account:  budget.Account{Budget: "spending", Limit: "all"},
		Reserved: budget.Amount{Tokens: tokens}, Limits: budget.Amount{Tokens: limit},
	}
}

func (w world) reservation(session, key string, claims ...budget.Claim) budget.Reservation {
	return budget.Reservation{Tenant: w.tenant, SessionID: session, Key: key, Attempt: jig.NewAttemptID(), Claims: claims}
}

// book reserves claims and reports whether they fit.
func (w world) book(t *testing.T, r budget.Reservation) bool {
	t.Helper()
	exhausted, err := w.ReserveBudget(t.Context(), budget.Request{Reservation: r, Seconds: 3600})
	require.NoError(t, err)
	return len(exhausted) == 0
}

func (w world) settle(t *testing.T, r budget.Reservation, tokens int64) {
	t.Helper()
	spent := make([]budget.Amount, len(r.Claims))
	for i := range spent {
		spent[i].Tokens = tokens
	}
	require.NoError(t, w.SettleBudget(t.Context(), budget.Settlement{Reservation: r, Spent: spent}))
}

// tokens returns how many tokens are spent and held in the only account.
func (w world) tokens(t *testing.T) (spent, held int64) {
	t.Helper()
	used, err := w.BudgetCounters(t.Context(), w.tenant, []string{""}, "")
	require.NoError(t, err)
	if len(used) == 0 {
		return 0, 0
	}
	require.Len(t, used, 1)
	return used[0].Spent.Tokens, used[0].Held.Tokens
}

func (w world) requireTokens(t *testing.T, spent, held int64) {
	t.Helper()
	s, h := w.tokens(t)
	require.Equal(t, []int64{spent, held}, []int64{s, h}, "spent and held")
}

func TestReserveBudget_CountsWhatIsReserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.reservation(w.session, "turn 1", claim(60, 100))
	require.True(t, w.book(t, first))
	w.requireTokens(t, 0, 60)
	second := w.reservation(w.session, "turn 2", claim(60, 100))
	require.False(t, w.book(t, second), "what is reserved counts")
	w.requireTokens(t, 0, 60)

	w.settle(t, first, 30)
	w.requireTokens(t, 30, 0)
	require.True(t, w.book(t, second))
	w.requireTokens(t, 30, 60)
	w.settle(t, second, 60)
	w.requireTokens(t, 90, 0)
	require.True(t, w.book(t, w.reservation(w.session, "turn 3", claim(10, 100))), "exactly")
	require.False(t, w.book(t, w.reservation(w.session, "turn 4", claim(1, 100))))
}

// An attempt that waits while another one asks a person has not been allowed anything.
func TestReserveBudget_SeesThePauseOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reservation(w.session, "turn 1", claim(60, 50))
	require.True(t, w.book(t, w.reservation(w.session, "turn 1", claim(1, 50))), "so that there is a reservation")
	exhausted := make(chan []budget.Exhausted, 1)
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "select from budget_reservations where session_id = $1 for update", w.session)
		require.NoError(t, err)
		go func() {
			found, err := w.ReserveBudget(t.Context(), budget.Request{Reservation: r, Seconds: 60})
			if err == nil {
				exhausted <- found
			}
			close(exhausted)
		}()
		require.Eventually(t, func() bool {
			var waits bool
			row := tx.QueryRow(t.Context(), "select exists (select from pg_stat_activity a where pg_backend_pid() = any(pg_blocking_pids(a.pid)))")
			return row.Scan(&waits) == nil && waits
		}, 10*time.Second, time.Millisecond)
		_, err = tx.Exec(t.Context(), `update budget_reservations set state = 'waiting', asked = '[{"budget":"spending","limit":"all"}]'
			where session_id = $1`, w.session)
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "insert into pauses (tenant_id, scope, target, by) values ($1, 'session', $2, $3)", w.tenant, w.session, budget.Actor)
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()))
	})
	require.Len(t, <-exhausted, 1)
}

// The answer to a settlement may be lost, so that its caller tries again.
func TestSettleBudget_ASecondTimeChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	r := w.reservation(w.session, "model "+c.ID, claim(60, 100))
	require.True(t, w.book(t, r))
	settlement := budget.Settlement{
		Reservation: r, Spent: []budget.Amount{{Tokens: 30}},
		Record: &budget.Record{Pass: 1, CallID: c.ID, Model: "openai/gpt", Usage: chat.Usage{InputTokens: 30}},
	}
	for range 2 {
		require.NoError(t, w.SettleBudget(t.Context(), settlement))
		w.requireTokens(t, 30, 0)
		rows, err := w.Usage(t.Context(), protocol.UsageRequest{Tenant: w.tenant, Model: "openai/gpt", Since: clock(t).Add(-time.Hour)})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, int64(30), rows[0].InputTokens)
	}
}

func TestReserveBudget_AllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := claim(10, 5)
	own.Scope = w.session
	exhausted, err := w.ReserveBudget(t.Context(), budget.Request{
		Reservation: w.reservation(w.session, "turn 1", claim(10, 100), own), Seconds: 60,
		Events: []jig.Event{{Type: jig.EventBudgetExhausted, Data: []byte(`{}`)}},
	})
	require.NoError(t, err)
	require.Len(t, exhausted, 1)
	require.Equal(t, own.Account, exhausted[0].Account)
	used, err := w.BudgetCounters(t.Context(), w.tenant, []string{""}, "")
	require.NoError(t, err)
	require.Empty(t, used, "nothing is reserved")
	require.Empty(t, w.types(t), "no event without the reservation")
}

func TestReserveBudget_RetryReplacesItsOwnReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.reservation(w.session, "turn 1", claim(80, 100))
	require.True(t, w.book(t, dead))
	retry := w.reservation(w.session, "turn 1", claim(90, 100))
	require.True(t, w.book(t, retry), "the reservation of the dead attempt does not count")
	w.requireTokens(t, 0, 90)

	w.settle(t, dead, 7) // it was not dead after all: the provider was paid twice
	w.requireTokens(t, 7, 90)
	w.settle(t, retry, 8)
	w.requireTokens(t, 15, 0)
	w.settle(t, retry, 0)
	w.requireTokens(t, 15, 0)
}

func TestReleaseBudgets_FreesWhatDeadWorkersReserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.reservation(w.session, "turn 2", claim(10, 100))
	require.True(t, w.book(t, other))
	dead := w.reservation(w.session, "turn 1", claim(80, 100))
	exhausted, err := w.ReserveBudget(t.Context(), budget.Request{Reservation: dead, Seconds: 0})
	require.NoError(t, err)
	require.Empty(t, exhausted)
	w.requireTokens(t, 0, 90)

	require.Eventually(t, func() bool {
		_, err := w.ReleaseBudgets(t.Context(), 1000)
		_, held := w.tokens(t)
		return err == nil && held == 10
	}, time.Minute, 10*time.Millisecond, "the reservation that expired is released, the other one is not")
	w.settle(t, dead, 5)
	w.requireTokens(t, 5, 10)
}

func TestRefuseBudget_APersonAllowsTheCallOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reservation(w.session, "turn 1", claim(60, 50))
	require.False(t, w.book(t, r))
	refusal := budget.Refusal{
		Reservation: r, Exhausted: []budget.Account{r.Claims[0].Account}, Call: []byte(`{}`), Reason: "limit all is exhausted",
		Events: []jig.Event{{Type: jig.EventBudgetExhausted, Pass: 1, Data: []byte(`{"action":"ask"}`)}},
	}
	require.NoError(t, w.RefuseBudget(t.Context(), refusal))
	require.NoError(t, w.RefuseBudget(t.Context(), refusal), "a second time changes nothing")
	require.Equal(t, []string{"budget.exhausted", "session.paused"}, w.types(t))
	require.Equal(t, "limit all is exhausted", w.last(t, jig.EventSessionPaused)["reason"])
	begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	require.Equal(t, jig.PauseSession, begun.Session.Paused)
	waiting, err := w.WaitingForBudget(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Len(t, waiting, 1)

	lifted, err := w.ResumeBudget(t.Context(), w.tenant, w.session, r.Claims)
	require.NoError(t, err)
	require.False(t, lifted, "it still does not fit")
	require.False(t, w.book(t, r), "nobody has allowed it yet")

	require.True(t, w.resume(t, jig.PauseSession, w.session))
	another := claim(60, 50)
	another.Limit = "another"
	require.False(t, w.book(t, w.reservation(w.session, "turn 1", claim(60, 50), another)), "only the limit that was shown")
	require.True(t, w.book(t, r))
	w.requireTokens(t, 0, 60)
	require.False(t, w.book(t, w.reservation(w.session, "turn 2", claim(60, 50))), "only this call")
}

func TestResumeBudget_WhenThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reservation(w.session, "turn 1", claim(60, 50))
	require.False(t, w.book(t, r))
	require.NoError(t, w.RefuseBudget(t.Context(), budget.Refusal{
		Reservation: r, Exhausted: []budget.Account{r.Claims[0].Account}, Call: []byte(`{}`), Reason: "limit all is exhausted",
	}))
	raised := []budget.Claim{claim(60, 70)}
	lifted, err := w.ResumeBudget(t.Context(), w.tenant, w.session, raised)
	require.NoError(t, err)
	require.True(t, lifted)
	require.Equal(t, budget.Actor, w.last(t, jig.EventSessionResumed)["by"])
	require.True(t, w.book(t, w.reservation(w.session, "turn 9", claim(20, 70))), "another call is faster")
	r.Claims = raised
	require.False(t, w.book(t, r), "nobody allowed it to exceed the limit")

	require.NoError(t, w.RefuseBudget(t.Context(), budget.Refusal{Reservation: r, Call: []byte(`{}`), Reason: "again"}))
	require.True(t, w.resume(t, jig.PauseSession, w.session))
	require.True(t, w.pause(t, jig.PauseSession, w.session))
	lifted, err = w.ResumeBudget(t.Context(), w.tenant, w.session, nil)
	require.NoError(t, err)
	require.False(t, lifted, "a person paused it")
}

// A person may pause a session that waits for a budget: then only a person lets it go on.
func TestPause_TakesThePlaceOfAPauseThatABudgetMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reservation(w.session, "turn 1", claim(60, 50))
	require.NoError(t, w.RefuseBudget(t.Context(), budget.Refusal{Reservation: r, Call: []byte(`{}`), Reason: "limit all is exhausted"}))
	require.True(t, w.pause(t, jig.PauseSession, w.session))
	lifted, err := w.ResumeBudget(t.Context(), w.tenant, w.session, []budget.Claim{claim(60, 70)})
	require.NoError(t, err)
	require.False(t, lifted)
	list, err := w.Pauses(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NotEqual(t, budget.Actor, list[0].By)
}

func TestPauses_OfBudgetsEndWithTheirSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reservation(w.session, "turn 1", claim(60, 50))
	require.NoError(t, w.RefuseBudget(t.Context(), budget.Refusal{Reservation: r, Call: []byte(`{}`), Reason: "limit all is exhausted"}))
	listed := func() int {
		list, err := w.Pauses(t.Context(), w.tenant)
		require.NoError(t, err)
		return len(list)
	}
	require.Equal(t, 1, listed())
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Status: jig.StatusCanceled}))
	require.Zero(t, listed())
}

// 1,000 sessions share a budget that is enough for a part of them.
func TestReserveBudget_ConcurrentSessionsNeverOverspend(t *testing.T) {
	t.Parallel()
	const sessions, limit, most = 1000, 4000, 10
	w := newWorld(t)
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = storetest.Session(t, w.DB, w.tenant).ID
	}
	var spent, refused atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			own := claim(most, 100)
			own.Scope = id
			r := w.reservation(id, "turn 1", claim(most, limit), own)
			exhausted, err := w.ReserveBudget(t.Context(), budget.Request{Reservation: r, Seconds: 3600})
			if err != nil {
				t.Error(err)
				return
			}
			if len(exhausted) > 0 {
				refused.Add(1)
				return
			}
			used, err := w.BudgetCounters(t.Context(), w.tenant, []string{""}, "")
			for _, u := range used {
				if u.Scope == "" && u.Spent.Tokens+u.Held.Tokens > limit {
					over.Store(true)
				}
			}
			n := random.Int64N(most + 1)
			spent.Add(n)
			if err == nil {
				amount := budget.Amount{Tokens: n}
				err = w.SettleBudget(t.Context(), budget.Settlement{Reservation: r, Spent: []budget.Amount{amount, amount}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.False(t, over.Load(), "spent and reserved together never exceed the limit")
	require.Positive(t, refused.Load())
	used, err := w.BudgetCounters(t.Context(), w.tenant, []string{""}, "")
	require.NoError(t, err)
	for _, u := range used {
		require.Zero(t, u.Held, "everything is settled")
		if u.Scope == "" {
			require.Equal(t, spent.Load(), u.Spent.Tokens)
			require.LessOrEqual(t, u.Spent.Tokens, int64(limit))
		}
	}
}

// Random reservations, settlements, deaths and retries agree with a simple model.
func TestReserveBudget_AgreesWithAModel(t *testing.T) {
	t.Parallel()
	const limit = 100
	for seed := range uint64(8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			random := rand.New(rand.NewPCG(seed, 1))
			open := map[string]budget.Reservation{}
			var spent int64
			held := func(but string) (n int64) {
				for key, r := range open {
					if key != but {
						n += r.Claims[0].Reserved.Tokens
					}
				}
				return n
			}
			for range 60 {
				key := "turn " + strconv.Itoa(random.IntN(5))
				r, running := open[key]
				if running && random.IntN(2) == 0 {
					n := random.Int64N(r.Claims[0].Reserved.Tokens + 1)
					w.settle(t, r, n)
					delete(open, key)
					spent += n
				} else { // the first attempt, or the retry after its worker died
					next := w.reservation(w.session, key, claim(1+random.Int64N(40), limit))
					fits := spent+held(key)+next.Claims[0].Reserved.Tokens <= limit
					require.Equal(t, fits, w.book(t, next), "%s after %d", key, spent)
					if fits {
						open[key] = next
					}
				}
				require.LessOrEqual(t, spent+held(""), int64(limit))
				if s, h := w.tokens(t); s+h > 0 || len(open) > 0 {
					require.Equal(t, []int64{spent, held("")}, []int64{s, h})
				}
			}
		})
	}
}

// The usage of an answer that broke off belongs to a session, and to no call.
func TestUsage_OfABrokenAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := clock(t)
	for _, call := range []string{"", "9.9"} {
		require.NoError(t, w.SettleBudget(t.Context(), budget.Settlement{
			Reservation: budget.Reservation{Tenant: w.tenant, SessionID: w.session},
			Record:      &budget.Record{Pass: 1, CallID: call, Model: "openai/b", Usage: chat.Usage{InputTokens: 3, OutputTokens: 5}},
		}))
	}
	rows, err := w.Usage(t.Context(), protocol.UsageRequest{Tenant: w.tenant, Since: began.Add(-time.Hour), By: []string{"model", "tool"}})
	require.NoError(t, err)
	require.Equal(t, []protocol.UsageRow{{Model: "openai/b", Requests: 1, InputTokens: 3, OutputTokens: 5, Cost: "0.00"}}, rows)
}

func TestUsage_IsGroupedAndFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := clock(t)
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{
		Asked: "anthropic/a", Usage: chat.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 900, Cost: 1_500_000},
	})
	require.NoError(t, err)
	w.begin(t, 2)
	_, err = w.SaveTurn(t.Context(), w.tenant, w.session, 2, chat.Turn{Asked: "openai/b", Usage: chat.Usage{InputTokens: 7, CacheCreateTokens: 3}})
	require.NoError(t, err)
	c := w.running(t, nil)
	w.complete(t, c, w.reserve(t, c).Fence, jig.CallSucceeded)
	require.NoError(t, w.SettleBudget(t.Context(), budget.Settlement{
		Reservation: budget.Reservation{Tenant: w.tenant, SessionID: w.session},
		Record:      &budget.Record{Pass: 1, CallID: c.ID, Model: "openai/b", Usage: chat.Usage{OutputTokens: 5, Cost: 1_000_000_000}},
	}))
	request := protocol.UsageRequest{Tenant: w.tenant, Since: began.Add(-time.Hour)}
	rows, err := w.Usage(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []protocol.UsageRow{{
		Requests: 3, Calls: 1, InputTokens: 107, OutputTokens: 25, CacheReadTokens: 900, CacheCreateTokens: 3, Cost: "1.0015",
	}}, rows)

	request.By = []string{"model"}
	rows, err = w.Usage(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []protocol.UsageRow{
		{Model: "openai/b", Requests: 2, InputTokens: 7, OutputTokens: 5, CacheCreateTokens: 3, Cost: "1.00"},
		{Model: "anthropic/a", Requests: 1, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 900, Cost: "0.0015"},
		{Calls: 1, Cost: "0.00"},
	}, rows)

	request.By = []string{"tool", "day"}
	request.Tool = c.Tool
	rows, err = w.Usage(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, c.Tool, rows[0].Tool)
	require.Equal(t, []int64{1, 1}, []int64{rows[0].Requests, rows[0].Calls}, "a request of a tool counts for the tool")
	require.NotEmpty(t, rows[0].Day)

	request = protocol.UsageRequest{Tenant: w.tenant, Since: began.Add(-time.Hour), SessionID: "another"}
	rows, err = w.Usage(t.Context(), request)
	require.NoError(t, err)
	require.Empty(t, rows)
	request = protocol.UsageRequest{Tenant: storetest.Tenant(t), Since: began.Add(-time.Hour)}
	rows, err = w.Usage(t.Context(), request)
	require.NoError(t, err)
	require.Empty(t, rows)
}
