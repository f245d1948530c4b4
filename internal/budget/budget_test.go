package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
)

func TestMoney_HasTwoToNineDecimals(t *testing.T) {
	t.Parallel()
	for amount, text := range map[float64]string{0: "0.00", 12.5: "12.50", 0.000125: "0.000125", 3: "3.00", -1.005: "-1.005", 0.1 + 0.2: "0.30"} {
		require.Equal(t, text, budget.MoneyOf(amount).String())
	}
	require.Equal(t, "0.000000001", budget.Money(1).String())
	require.InDelta(t, 2.5, budget.MoneyOf(2.5).Float(), 0)
}

func TestPrice_CountsEveryKindOfToken(t *testing.T) {
	t.Parallel()
	p := budget.Price{Input: budget.MoneyOf(3), Output: budget.MoneyOf(15), CachedInput: budget.MoneyOf(0.3), CacheWrite: budget.MoneyOf(3.75)}
	require.Equal(t, "3.00", p.Of(chat.Usage{InputTokens: 1_000_000}).String())
	require.Equal(t, "22.05", p.Of(chat.Usage{InputTokens: 1e6, OutputTokens: 1e6, CacheReadTokens: 1e6, CacheCreateTokens: 1e6}).String())
	require.Equal(t, "18.75", p.Most(1_000_000, 1_000_000).String(), "the input may have to be written to the cache")
	p = budget.Price{Input: 1, Call: 7}
	require.Equal(t, budget.Money(8), p.Of(chat.Usage{InputTokens: 1}), "fractions of a billionth are rounded up")
	p = budget.Price{Input: budget.MoneyOf(1_000_000)}
	require.Equal(t, "1000000.00", p.Most(1_000_000, 0).String(), "in a currency with small units")
	all := budget.Price{Input: p.Input, Output: p.Input, CachedInput: p.Input, CacheWrite: p.Input, Call: p.Input}
	require.Equal(t, "4001000000.00", all.Of(budget.Counted(chat.Usage{
		InputTokens: 1 << 62, OutputTokens: 1 << 62, CacheReadTokens: 1 << 62, CacheCreateTokens: 1 << 62,
	})).String())
	require.Zero(t, p.Of(budget.Counted(chat.Usage{InputTokens: -5})))
}

func TestDecide_ReturnsClaimsThatDoNotFit(t *testing.T) {
	t.Parallel()
	account := budget.Account{Budget: "b", Limit: "l", Period: "2026-01-01"}
	of := func(tokens int64, cost budget.Money) budget.Amount { return budget.Amount{Tokens: tokens, Cost: cost} }
	for name, row := range map[string]struct {
		reserved, limits, spent, held budget.Amount
		allowed                       []budget.Account
		fits                          bool
	}{
		"empty account":        {reserved: of(10, 0), limits: of(10, 0), fits: true},
		"spent":                {reserved: of(10, 0), limits: of(10, 0), spent: of(1, 0)},
		"held":                 {reserved: of(10, 0), limits: of(10, 0), held: of(1, 0)},
		"exactly":              {reserved: of(8, 0), limits: of(10, 0), spent: of(1, 0), held: of(1, 0), fits: true},
		"cost":                 {reserved: of(1, 5), limits: of(10, 4)},
		"no limit on cost":     {reserved: of(1, 5), limits: of(10, 0), fits: true},
		"free in an overdraft": {reserved: of(0, 0), limits: of(10, 4), spent: of(99, 99), fits: true},
		"allowed":              {reserved: of(20, 0), limits: of(10, 0), allowed: []budget.Account{{Budget: "b", Limit: "l", Period: "2025-12-31"}}, fits: true},
		"another is allowed":   {reserved: of(20, 0), limits: of(10, 0), allowed: []budget.Account{{Budget: "b", Limit: "m"}}},
	} {
		c := budget.Claim{Account: account, Reserved: row.reserved, Limits: row.limits}
		exhausted := budget.Decide([]budget.Claim{c}, []budget.Used{{Account: account, Spent: row.spent, Held: row.held}}, row.allowed)
		require.Equal(t, row.fits, len(exhausted) == 0, name)
	}
}

func TestHeld_Waits(t *testing.T) {
	t.Parallel()
	err := budget.Held("limit l is exhausted")
	require.True(t, budget.Waits(err))
	require.True(t, err.NoEffect(), "the call may run again")
	require.True(t, jig.CodeOf(err).Retryable())
	require.False(t, budget.Waits(nil))
	require.False(t, budget.Waits(jig.Errorf(jig.CodeUnavailable, "x")))
}
