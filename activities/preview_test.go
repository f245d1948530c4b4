package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools"
)

// order is a record that a tool changes. versioned tools check the version together with the effect.
type order struct {
	mu      sync.Mutex
	version int
	amount  int
	// effects are the amounts that were replaced, with the precondition that the tool got.
	effects []string
	// late, unless nil, changes the record immediately before the effect.
	late func()
}

func (r *order) set(amount int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	r.amount = amount
}

const amendTool = "shop.amend"

// amending returns a tool that changes the amount of the record.
func (r *order) amending(versioned bool) tools.Tool {
	contract := jig.Tool{Name: amendTool, Description: "Amends an order.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}}
	return tools.New(contract, func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.late != nil {
			r.late()
		}
		if now := fmt.Sprint("version ", r.version); versioned && inv.Precondition != "" && inv.Precondition != now {
			return in, jig.Errorf(jig.CodeConflict, "the order is at %s", now)
		}
		r.effects = append(r.effects, fmt.Sprintf("%d → %d", r.amount, in.Amount))
		r.version++
		r.amount = in.Amount
		return in, nil
	}, tools.WithPreview(func(_ context.Context, inv jig.Invocation, in refund) (jig.Preview, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		p := jig.Preview{Title: "Amends " + in.Order, Changes: []string{fmt.Sprintf("%d → %d", r.amount, in.Amount)}}
		if inv.IdempotencyKey != "" || inv.Precondition != "" || inv.Principal.ID != "ana" {
			return p, errors.New("a preview is no attempt, and has the caller's rights")
		}
		if versioned {
			p.Precondition = fmt.Sprint("version ", r.version)
		}
		return p, nil
	}))
}

// amends asks for a call of the tool and computes its preview.
func (o *office) amends(t *testing.T, amount int) jig.Call {
	t.Helper()
	c := o.asks(t, 1, amendTool, fmt.Sprintf(`{"order":"a","amount":%d}`, amount))
	require.Equal(t, jig.CallReserved, c.Status, "nobody is asked before there is a preview")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	return o.call(t, c.ID)
}

func (o *office) approves(t *testing.T, id string) {
	t.Helper()
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: id, By: "fay", Digest: o.pending(t, id).Digest}).Outcome)
}

// approvesAsShown approves a call that may have changed since it was shown: then it is approved as it is shown now. It returns what was
// shown with the approval.
func (o *office) approvesAsShown(t *testing.T, id string) *jig.Preview {
	t.Helper()
	for range 5 {
		asked := o.pending(t, id)
		ruled := o.hear(t, "approve", jig.Decision{Call: id, By: "fay", Digest: asked.Digest})
		if ruled.Outcome == jig.DecisionAccepted {
			return asked.Preview
		}
		require.Contains(t, ruled.Reason, "not approved yet")
		if ruled.Status != jig.CallWaiting { // it cannot run any more
			return o.call(t, id).Preview
		}
	}
	require.Fail(t, "the call changes with every look")
	return nil
}

// carriesOut approves and runs a call, and checks what all calls have changed so far.
func (o *office) carriesOut(t *testing.T, id string, r *order, effects ...string) {
	t.Helper()
	o.approves(t, id)
	require.Equal(t, jig.CallSucceeded, o.runs(t, id))
	require.Equal(t, effects, r.effects)
}

// approvesAllLike approves a call together with the next ones of its tool.
func (o *office) approvesAllLike(t *testing.T, id string) {
	t.Helper()
	o.hear(t, "approve", jig.Decision{Call: id, By: "fay", Grant: &jig.GrantRequest{MaxUses: 5}})
}

func amended(t *testing.T, versioned bool) (*office, *order) {
	t.Helper()
	r := &order{version: 1, amount: 5}
	return newOffice(t, func(o *office) { o.extra = []tools.Tool{r.amending(versioned)} }), r
}

func TestPreview_IsShownAndBound(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	want := &jig.Preview{Title: "Amends a", Changes: []string{"5 → 7"}, Precondition: "version 1"}
	p := o.pending(t, c.ID)
	require.Equal(t, want, p.Preview)
	require.Equal(t, want, c.Preview)
	bound, err := activities.Digest(o.db.Installation(), c)
	require.NoError(t, err)
	require.Equal(t, bound, p.Digest)
	unseen := c
	unseen.Preview = nil
	other, err := activities.Digest(o.db.Installation(), unseen)
	require.NoError(t, err)
	require.NotEqual(t, bound, other)
	var shown jig.Pending
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventToolNeedsApproval), &shown))
	require.Equal(t, want, shown.Preview)
	o.carriesOut(t, c.ID, r, "5 → 7")
}

func TestPreview_ThatChangesAsksAgain(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	for n, amount := range []int{20, 30} {
		o.approves(t, c.ID)
		before := o.call(t, c.ID).Digest
		r.set(amount)
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
		p := o.pending(t, c.ID)
		require.Equal(t, []string{fmt.Sprintf("%d → 7", amount)}, p.Preview.Changes)
		require.NotEqual(t, before, p.Digest)
		require.Contains(t, strings.Join(p.Reasons, "\n"), "not what was approved before")
		require.Equal(t, n+1, o.call(t, c.ID).Previews)
	}
	o.approves(t, c.ID)
	r.set(40)
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID), "the third different one ends the call")
	ended := o.call(t, c.ID)
	require.Equal(t, jig.CodeConflict, ended.Result.Error.Code)
	require.Empty(t, r.effects)
}

func TestPreview_ThatIsTheSameAgainDoesNotAskAgain(t *testing.T) {
	t.Parallel()
	o, r := amended(t, false)
	c := o.amends(t, 7)
	o.approves(t, c.ID)
	r.set(9)
	r.set(5)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"5 → 7"}, r.effects)
}

// A person who approves changed arguments has not seen what they change.
func TestPreview_OfChangedArgumentsAsksAgain(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	ruled := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo", Input: json.RawMessage(`{"order":"a","amount":8}`)})
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Empty(t, r.effects)
	require.Equal(t, []string{"5 → 8"}, o.pending(t, c.ID).Preview.Changes)
	require.Zero(t, o.call(t, c.ID).Previews, "the record did not change")
	o.carriesOut(t, c.ID, r, "5 → 8")
}

func TestPreview_IsNotNeededUnderAGrant(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	o.approvesAllLike(t, c.ID)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	next := o.asks(t, 2, amendTool, `{"order":"a","amount":8}`)
	require.Equal(t, jig.CallSucceeded, o.runs(t, next.ID))
	require.Nil(t, o.call(t, next.ID).Preview)
	require.Equal(t, []string{"5 → 7", "7 → 8"}, r.effects)
}

// A call that only people can approve, here because a rule cannot be evaluated, has a preview like any other, and no grant covers it.
func TestPreview_OfACallThatOnlyPeopleApprove(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	o.approvesAllLike(t, c.ID)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	o.govern(t, "  - {name: odd, when: '1000 / (input.amount - 8) > 0', verdict: ask}\n")
	next := o.asks(t, 2, amendTool, `{"order":"a","amount":8}`)
	require.Equal(t, jig.CallReserved, next.Status, "nobody is asked before there is a preview")
	require.Equal(t, jig.CallWaiting, o.runs(t, next.ID))
	require.Equal(t, []string{"7 → 8"}, o.pending(t, next.ID).Preview.Changes)
	o.approves(t, next.ID)
	r.set(9)
	require.Equal(t, jig.CallWaiting, o.runs(t, next.ID), "the record has changed since")
	require.Equal(t, []string{"9 → 8"}, o.pending(t, next.ID).Preview.Changes)
	o.carriesOut(t, next.ID, r, "5 → 7", "9 → 8")
}

// A call whose preview has changed would ask again, but a grant that somebody gave in the meantime covers it.
func TestPreview_GivesWayToAGrant(t *testing.T) {
	t.Parallel()
	o, r := amended(t, true)
	c := o.amends(t, 7)
	next := o.asks(t, 2, amendTool, `{"order":"b","amount":8}`)
	require.Equal(t, jig.CallWaiting, o.runs(t, next.ID))
	o.approves(t, next.ID)
	o.approvesAllLike(t, c.ID)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, jig.CallSucceeded, o.runs(t, next.ID))
	require.Equal(t, []string{"5 → 7", "7 → 8"}, r.effects)
}

// tamper changes rows of the session behind the engine's back.
func (o *office) tamper(t *testing.T, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", o.tenant)
	require.NoError(t, err)
	done, err := conn.Exec(t.Context(), statement, o.session)
	require.NoError(t, err)
	require.Positive(t, done.RowsAffected())
}

func TestPreview_OfARowThatWasChangedIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"removed":  "update calls set preview = null where session_id = $1",
		"replaced": `update calls set preview = '{"title":"Amends a","changes":["5 → 7"],"precondition":"version 2"}' where session_id = $1`,
	} {
		o, r := amended(t, true)
		c := o.amends(t, 7)
		o.approves(t, c.ID)
		r.set(6)
		o.tamper(t, statement)
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), name)
		require.Empty(t, r.effects, name)
	}
}

func TestPreview_ThatFailsIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, row := range map[string]struct {
		preview func(ctx context.Context, inv jig.Invocation, in refund) (jig.Preview, error)
		why     string
	}{
		"error": {func(context.Context, jig.Invocation, refund) (jig.Preview, error) {
			return jig.Preview{}, errors.New("no order a")
		}, "no order a"},
		"panic": {func(context.Context, jig.Invocation, refund) (jig.Preview, error) { panic("no") }, "internal error"},
		"no title": {func(context.Context, jig.Invocation, refund) (jig.Preview, error) {
			return jig.Preview{Markdown: "x"}, nil
		}, "title is empty"},
		"never": {func(context.Context, jig.Invocation, refund) (jig.Preview, error) { <-hang; return jig.Preview{}, nil }, "not finished after 5s"},
		"cancelled": {func(context.Context, jig.Invocation, refund) (jig.Preview, error) {
			return jig.Preview{}, context.Canceled
		}, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			contract := jig.Tool{Name: amendTool, Description: "Amends.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}}
			tool := tools.New(contract, func(_ context.Context, _ jig.Invocation, in refund) (refund, error) {
				ran.Add(1)
				return in, nil
			}, tools.WithPreview(row.preview))
			o := newOffice(t, func(o *office) { o.extra = []tools.Tool{tool} })
			c := o.amends(t, 7)
			p := o.pending(t, c.ID)
			require.Contains(t, p.Preview.Missing, row.why)
			require.Contains(t, p.Preview.Binding(), "no preview")
			require.Zero(t, ran.Load())
			o.approves(t, c.ID)
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "a person let it run without a preview")
		})
	}
}

// A call that an attempt has begun is not previewed again: the attempt may have changed what the preview is computed from.
func TestPreview_IsNotRepeatedAfterAnAttempt(t *testing.T) {
	t.Parallel()
	r := &order{version: 1, amount: 5}
	var seen []string
	contract := jig.Tool{Name: amendTool, Description: "Amends.", Permission: jig.PermissionWrite, Idempotent: true, Labels: &jig.Labels{}}
	tool := tools.New(contract, func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
		seen = append(seen, inv.Precondition)
		return in, nil
	}, tools.WithPreview(func(context.Context, jig.Invocation, refund) (jig.Preview, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return jig.Preview{Title: "Amends", Precondition: fmt.Sprint("version ", r.version)}, nil
	}))
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{tool} })
	c := o.amends(t, 7)
	o.approves(t, c.ID)
	o.abandoned(t, o.call(t, c.ID))
	r.set(7)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"version 1"}, seen)
}

// A preview can neither write through the store nor, if its tool sends, connect through jig.
func TestPreview_IsConfined(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: outbound.Confined(outbound.Transport(outbound.Options{AllowLoopback: true}))}
	get := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	for _, sends := range []bool{true, false} {
		reached.Store(0)
		require.NoError(t, get(t.Context()), "leaves a connection open")
		var o *office
		var wrote, connected error
		tool := tools.New(jig.Tool{Name: amendTool, Description: "Amends.", Permission: jig.PermissionWrite, Labels: &jig.Labels{Sends: sends}},
			func(_ context.Context, _ jig.Invocation, in refund) (refund, error) { return in, nil },
			tools.WithPreview(func(ctx context.Context, inv jig.Invocation, _ refund) (jig.Preview, error) {
				wrote = o.db.AppendEvents(ctx, inv.Tenant, inv.SessionID, jig.Event{Type: jig.EventToolOutput, Data: json.RawMessage(`{}`)})
				connected = get(ctx)
				return jig.Preview{Title: "Amends"}, nil
			}))
		o = newOffice(t, func(o *office) { o.extra = []tools.Tool{tool} })
		c := o.amends(t, 7)
		require.ErrorContains(t, wrote, "read-only transaction")
		require.Equal(t, "Amends", o.pending(t, c.ID).Preview.Title)
		if sends {
			require.ErrorContains(t, connected, "network must not be reached")
			require.EqualValues(t, 1, reached.Load())
		} else {
			require.NoError(t, connected)
		}
	}
}

func TestPreview_IsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	tool := tools.New(jig.Tool{Name: amendTool, Description: "Amends.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}},
		func(_ context.Context, _ jig.Invocation, in refund) (refund, error) { return in, nil },
		tools.WithPreview(func(context.Context, jig.Invocation, refund) (jig.Preview, error) {
			p := jig.Preview{Title: long, Markdown: long}
			for range 5000 {
				p.Changes = append(p.Changes, long[:4000])
			}
			return p, nil
		}))
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{tool} })
	c := o.amends(t, 7)
	stored, err := json.Marshal(o.call(t, c.ID).Preview)
	require.NoError(t, err)
	require.Less(t, len(stored), preview.MaxBytes+2048)
}

// The record changes at random moments between the preview, the approval, the second preview and the effect. A tool with a precondition does
// what was shown with the last approval, or nothing.
func TestPreview_RacesWithTheRecord(t *testing.T) {
	t.Parallel()
	const races, perSession = 300, 20
	o, r := amended(t, true)
	random := rand.New(rand.NewPCG(13, 29))
	ends := map[jig.CallStatus]int{}
	for n := range races {
		if n%perSession == 0 {
			o.session = o.open(t)
		}
		status, shown := o.race(t, r, random, n%perSession+1)
		if ends[status]++; status == jig.CallSucceeded {
			require.Equal(t, shown.Changes, r.effects)
		} else {
			require.Equal(t, jig.CallFailed, status)
			require.Empty(t, r.effects)
		}
	}
	require.Greater(t, ends[jig.CallSucceeded], races/10, "%v", ends)
	require.Greater(t, ends[jig.CallFailed], races/10, "%v", ends)
}

// race runs one call while the record changes. It returns how the call ended and what people were shown before they approved it last.
func (o *office) race(t *testing.T, r *order, random *rand.Rand, pass int) (status jig.CallStatus, shown *jig.Preview) {
	t.Helper()
	r.effects = nil
	disturb := func(chance int) {
		if random.IntN(chance) == 0 {
			r.set(random.IntN(1000))
		}
	}
	c := o.asks(t, pass, amendTool, fmt.Sprintf(`{"order":"o%d","amount":7}`, pass))
	status = o.runs(t, c.ID)
	for status == jig.CallWaiting {
		disturb(4)
		shown = o.approvesAsShown(t, c.ID)
		disturb(4)
		r.late = nil
		if random.IntN(4) == 0 { // between the second preview and the effect
			r.late = func() { r.version, r.amount = r.version+1, random.IntN(1000) }
		}
		var racing sync.WaitGroup
		if amount := random.IntN(1000); amount < 250 {
			racing.Go(func() { r.set(amount) })
		}
		status = o.runs(t, c.ID)
		racing.Wait()
	}
	return status, shown
}

// Without a precondition, the record can change after the second preview, and the card says so.
func TestPreview_WithoutPreconditionPromisesNothing(t *testing.T) {
	t.Parallel()
	o, r := amended(t, false)
	c := o.amends(t, 7)
	shown := o.pending(t, c.ID).Preview
	require.Contains(t, shown.Binding(), "does not promise")
	o.approves(t, c.ID)
	r.late = func() { r.amount = 99 }
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"99 → 7"}, r.effects)

	o, r = amended(t, true)
	c = o.amends(t, 7)
	require.NotContains(t, o.pending(t, c.ID).Preview.Binding(), "does not promise")
	o.approves(t, c.ID)
	r.late = func() { r.version, r.amount = 2, 99 }
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID))
	require.Empty(t, r.effects)
}
