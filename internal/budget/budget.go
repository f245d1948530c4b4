// Package budget holds the rules of budgets: prices, limits, and how much of them a call of a model or tool reserves.
//
// Before a call, the most that it may use is reserved in each account that a limit counts. If it does not fit, the limit's rule applies: use
// a cheaper model, ask a person, or stop. After the call, what it really used is charged. A reservation that nobody settles expires.
//
// The package does no I/O: the store keeps the counters, and package meter reads the documents.
package budget

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// Level says what a limit counts together.
type Level string

// The levels. A session counts with all sessions below it.
const (
	LevelTenant  Level = "tenant"
	LevelAgent   Level = "agent"
	LevelSession Level = "session"
	LevelPass    Level = "pass"
)

// Window is the time that a limit covers.
type Window string

// The windows. Days are those of UTC.
const (
	WindowDay   Window = "day"
	WindowTotal Window = "total"
)

// Action says how a limit treats a call for which no room is left.
type Action string

// The actions, from the mildest to the strictest.
const (
	ActionDegrade Action = "degrade"
	ActionAsk     Action = "ask"
	ActionStop    Action = "stop"
)

// Strictness orders the actions; 0 for anything else.
func (a Action) Strictness() int {
	switch a {
	case ActionDegrade:
		return 1
	case ActionAsk:
		return 2
	case ActionStop:
		return 3
	}
	return 0
}

// Money is an amount of a tenant's currency in billionths, so that the price of a single token is a whole number.
type Money int64

const unit = 1_000_000_000

// MoneyOf converts an amount to the nearest billionth.
func MoneyOf(amount float64) Money { return Money(math.Round(amount * unit)) }

// String returns the amount with at least two and at most nine decimals, e.g. 12.50 or 0.000125.
func (m Money) String() string {
	whole, part := int64(m)/unit, int64(m)%unit
	sign := ""
	if m < 0 {
		sign, whole, part = "-", -whole, -part
	}
	decimals := strings.TrimRight(strconv.FormatInt(unit+part, 10)[1:], "0")
	for len(decimals) < 2 {
		decimals += "0"
	}
	return sign + strconv.FormatInt(whole, 10) + "." + decimals
}

// Float returns the amount in whole units of the currency.
func (m Money) Float() float64 { return float64(m) / unit }

// Amount is a quantity of tokens and money.
type Amount struct {
	Tokens int64 `json:"tokens,omitempty"`
	Cost   Money `json:"cost,omitempty"`
}

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Cost + b.Cost} }

// Price is the price of a model or a tool. Tokens are priced per million.
type Price struct {
	Input, Output, CachedInput, CacheWrite Money
	// Call is the price of one request or call, whatever it returns.
	Call Money
}

// maxTokens is the most tokens that count of one kind. No request uses as many.
const maxTokens = 1_000_000_000

// Counted returns a usage as it counts: what a provider reports is neither less than nothing nor more than any request uses.
func Counted(u chat.Usage) chat.Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheCreateTokens} {
		*n = min(max(*n, 0), maxTokens)
	}
	return u
}

// Of returns what a call with the given usage costs. A fraction of a billionth is rounded up.
func (p Price) Of(u chat.Usage) Money {
	const million = 1_000_000
	var high, low uint64 // of the sum, which may need more than 64 bits
	for _, part := range []struct {
		tokens int64
		price  Money
	}{
		{u.InputTokens, p.Input}, {u.OutputTokens, p.Output}, {u.CacheReadTokens, p.CachedInput}, {u.CacheCreateTokens, p.CacheWrite}, {million - 1, 1},
	} {
		h, l := bits.Mul64(uint64(part.tokens), uint64(part.price)) //nolint:gosec // neither is negative
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	cost, _ := bits.Div64(high, low, million)
	return p.Call + Money(cost) //nolint:gosec // at most 4 billion tokens, for at most a million each
}

// Most returns what a call costs at most: the input may be neither cached nor, if writing to the cache costs more, be free of that.
func (p Price) Most(input, output int64) Money {
	p.Input = max(p.Input, p.CacheWrite, p.CachedInput)
	return p.Of(chat.Usage{InputTokens: input, OutputTokens: output})
}

// TokensOf returns how many tokens of a usage count: all of them, those read from the cache too.
func TokensOf(u chat.Usage) int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheCreateTokens
}

// Account identifies a counter: what a limit counts together.
type Account struct {
	// Budget is the name of the document, Limit that of the limit in it.
	Budget string `json:"budget"`
	Limit  string `json:"limit"`
	// Scope is empty for a tenant, an agent's name, the id of a tree's first session, or <session>/<pass>.
	Scope string `json:"scope"`
	// Period is empty for the window total, and the date of a day otherwise, e.g. 2026-03-31.
	Period string `json:"period"`
}

// Claim is the part of a reservation that one limit counts.
type Claim struct {
	Account
	// Reserved is the most that the call may use.
	Reserved Amount `json:"reserved"`
	// Limits bounds the account. A zero member is no bound.
	Limits Amount `json:"limits"`
}

// Used is the state of an account: what has been spent, and what is reserved for calls that have not been settled.
type Used struct {
	Account
	Spent, Held Amount
}

// Bound returns the limits that apply to a claim: those that are set, for what it reserves, unless a person allowed the call to exceed them. A zero
// member is no bound.
func (c Claim) Bound(allowed []Account) Amount {
	bound := c.Limits
	if c.Reserved.Tokens == 0 {
		bound.Tokens = 0
	}
	if c.Reserved.Cost == 0 {
		bound.Cost = 0
	}
	if covers(allowed, c.Account) {
		bound = Amount{}
	}
	return bound
}

// Exhausted is a claim that does not fit, with the state of its account.
type Exhausted struct {
	Claim
	Used Used
}

// Decide returns the claims that do not fit. used holds the state of the claims' accounts, in the order of the claims. Limits in allowed are
// not enforced, because a person let the call exceed them.
func Decide(claims []Claim, used []Used, allowed []Account) []Exhausted {
	var list []Exhausted
	for i, c := range claims {
		bound, total := c.Bound(allowed), used[i].Spent.Plus(used[i].Held).Plus(c.Reserved)
		if bound.Tokens > 0 && total.Tokens > bound.Tokens || bound.Cost > 0 && total.Cost > bound.Cost {
			list = append(list, Exhausted{c, used[i]})
		}
	}
	return list
}

// covers reports whether a person allowed a limit to be exceeded. The day does not matter, because the person may answer on the next one.
func covers(allowed []Account, a Account) bool {
	for _, one := range allowed {
		if one.Budget == a.Budget && one.Limit == a.Limit {
			return true
		}
	}
	return false
}

// Reservation identifies what is reserved for one call of a model or tool.
type Reservation struct {
	Tenant    string
	SessionID string
	// Key names the call within its session. The retry of a call replaces its reservation.
	Key string
	// Attempt is different for each attempt, so that a late attempt does not release what a newer one reserved.
	Attempt string
	Claims  []Claim
}

// Request asks for a reservation.
type Request struct {
	Reservation
	// Seconds is how long the reservation lasts if it is not settled.
	Seconds int
	// Events are recorded if the reservation is made.
	Events []jig.Event
}

// Refusal records that a call does not fit.
type Refusal struct {
	Reservation
	// Exhausted lists the limits that a person may allow the call to exceed. Call holds what [Waiting] returns.
	Exhausted []Account
	Call      []byte
	// Reason pauses the session, and tells people why; empty if the call is refused for good.
	Reason string
	// Events are recorded unless the same refusal is already stored.
	Events []jig.Event
}

// Waiting is a call that waits for room in a budget, or for a person who allows it.
type Waiting struct {
	Key  string
	Call []byte
}

// Actor is the name under which budgets pause and resume sessions.
const Actor = "jig:budget"

// Settlement says what a call really used.
type Settlement struct {
	Reservation
	// Spent holds the amount that each claim is charged, in the order of the claims.
	Spent []Amount
	// Record is kept for statistics; nil if the usage is recorded elsewhere.
	Record *Record
}

// Record is the usage of a call of a model inside a tool, of a priced tool, or of an answer that broke off.
type Record struct {
	Pass int
	// CallID is the call of the tool; empty for an answer to the session itself.
	CallID string
	// Model is the model that the call's tool asked; empty if the price of the tool itself is recorded.
	Model string
	Usage chat.Usage
}

// reasonHeld is the reason of the error of a call that waits until a person allows it.
const reasonHeld = "budget_held"

// Held returns the error of a call that waits until there is room in a budget or a person allows it.
func Held(message string) *jig.Error {
	e := jig.Errorf(jig.CodeUnavailable, "%s", jig.Known(message)).WithReason(reasonHeld).
		WithHint("`jig resume --session` lets the session go on once; or raise the limit and register the document again")
	e.NotExecuted = true
	return e
}

// Waits reports whether an error says that a call waits for a budget.
func Waits(err error) bool { return err != nil && jig.AsError(err).Reason == reasonHeld }
