package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
)

// crowd enters requests of a tenant and a payer, and returns those that entered.
func crowd(p *pool, n int, tenant, payer string, bytes int64) (entered []*lease) {
	for range n {
		one := &lease{caller: caller{tenant: tenant}, payer: tenant + payer, bytes: bytes, yield: func() {}}
		if p.enter(one) == nil {
			entered = append(entered, one)
		}
	}
	return entered
}

// held counts the requests in a pool by payer.
func (p *pool) shares() map[string]int {
	held := map[string]int{}
	for one := range p.held {
		held[one.payer]++
	}
	return held
}

// A tenant uses what is free, and gives it back to others until all have the same. The same holds among the payers of a tenant.
func TestPool_IsSharedFairly(t *testing.T) {
	t.Parallel()
	p := newPool(12, 0)
	require.Len(t, crowd(p, 20, "a", "1", 0), 12, "nobody else wants a place")
	require.Len(t, crowd(p, 20, "b", "1", 0), 6)
	require.Equal(t, map[string]int{"a1": 6, "b1": 6}, p.shares())
	require.Len(t, crowd(p, 20, "c", "1", 0), 4)
	require.Empty(t, crowd(p, 20, "a", "1", 0), "it gets back nothing of what others hold")
	require.Equal(t, map[string]int{"a1": 4, "b1": 4, "c1": 4}, p.shares())
	require.Len(t, crowd(p, 20, "a", "2", 0), 2)
	require.Equal(t, map[string]int{"a1": 2, "a2": 2, "b1": 4, "c1": 4}, p.shares())
	require.EqualValues(t, 12, p.count)
}

// What must not be ended is never ended, and the oldest request of the largest share gives way.
func TestPool_EndsTheOldest(t *testing.T) {
	t.Parallel()
	p := newPool(3, 0)
	var ended []int
	for i := range 3 {
		one := &lease{caller: caller{tenant: "a"}, payer: "a"}
		if i > 0 {
			one.yield = func() { ended = append(ended, i) }
		}
		require.NoError(t, p.enter(one))
	}
	require.Len(t, crowd(p, 1, "b", "", 0), 1)
	require.Equal(t, []int{1}, ended)
	require.Empty(t, crowd(p, 1, "b", "", 0))
	for _, of := range []struct {
		tenant string
		status int
	}{{"b", http.StatusTooManyRequests}, {"a", http.StatusTooManyRequests}} {
		err := p.enter(&lease{caller: caller{tenant: of.tenant}, payer: of.tenant})
		var refused *problem
		require.ErrorAs(t, err, &refused)
		require.Equal(t, of.status, refused.Status)
		require.NotEmpty(t, refused.Headers.Get("Retry-After"))
	}
	full := newPool(1, 0)
	crowd(full, 1, "a", "", 0)
	var refused *problem
	require.ErrorAs(t, full.enter(&lease{caller: caller{tenant: "b"}}), &refused)
	require.Equal(t, http.StatusServiceUnavailable, refused.Status, "the tenant has no place, so it has not asked for too much")
}

// The content of requests and responses shares a bound of its own. A request that is alone is never too large.
func TestPool_BoundsContent(t *testing.T) {
	t.Parallel()
	p := newPool(100, 10)
	require.Len(t, crowd(p, 20, "a", "1", 3), 3)
	require.Len(t, crowd(p, 20, "a", "1", 0), 20, "a request without a body needs no room for one")
	require.Len(t, crowd(p, 20, "b", "1", 3), 1)
	require.EqualValues(t, 9, p.bytes)
	var last *lease
	for one := range p.held {
		require.False(t, p.resize(one, 8), "nobody has a larger share")
		last = one
		break
	}
	for one := range p.held {
		if one != last {
			p.leave(one)
			p.leave(one)
		}
	}
	require.True(t, p.resize(last, -last.bytes))
	require.True(t, p.resize(last, 50))
	require.False(t, p.resize(&lease{}, 1), "it gave way")
	require.EqualValues(t, 50, p.bytes)
	p.leave(last)
	require.Zero(t, p.bytes)
	require.Zero(t, p.count)
}

// A request that waits ends as if its time were over when it gives way, also if that happened just before.
func TestPool_HoldEndsWithThePlace(t *testing.T) {
	t.Parallel()
	p := newPool(2, 0)
	first := crowd(p, 2, "a", "1", 0)
	waiting, over := p.hold(context.WithoutCancel(t.Context()), first[0])
	defer over()
	crowd(p, 1, "b", "", 0)
	require.ErrorIs(t, context.Cause(waiting), errYielded)
	late, over := p.hold(context.WithoutCancel(t.Context()), first[0])
	defer over()
	require.ErrorIs(t, context.Cause(late), errYielded)
}

// slow is a client that reads nothing until it is closed.
type slow struct {
	http.ResponseWriter
	written, reads chan struct{}
}

func (s slow) Write(b []byte) (int, error) {
	s.written <- struct{}{}
	<-s.reads
	return len(b), nil
}

// Responses that nobody reads count for their tenant. Whoever has the largest share gives way to another tenant, and gets no further response.
func TestResponses_ThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := newPool(10, 2*largeContent)
	answer := func(one *lease, w http.ResponseWriter) {
		_, _ = (&recorder{ResponseWriter: w, exchange: &exchange{place: one}, pool: p}).Write(make([]byte, largeContent)) //nolint:errcheck // slow never fails
	}
	unread := slow{written: make(chan struct{}), reads: make(chan struct{})}
	first := crowd(p, 3, "a", "1", 0)
	for _, one := range first[:2] {
		go answer(one, unread)
		<-unread.written
	}
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { answer(first[2], httptest.NewRecorder()) })
	other := crowd(p, 1, "b", "1", 0)[0]
	answer(other, httptest.NewRecorder())
	require.Len(t, p.held, 3, "one of the first has given way")
	require.EqualValues(t, largeContent, p.bytes)
	close(unread.reads)
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.bytes == 0
	}, time.Minute, time.Millisecond)
}

// All credentials that come from one, or that one person has, have the same payer.
func TestPayer_IsWhereCredentialsComeFrom(t *testing.T) {
	t.Parallel()
	root := identity.Link{ID: "root", Principal: "ci"}
	child := identity.Link{ID: "child", Principal: "ci", CreatedBy: "ci"}
	byAna := identity.Link{ID: "k", Principal: "bot", CreatedBy: "ana"}
	for want, list := range map[string][]caller{
		"acme key root": {
			{lineage: identity.Lineage{root}},
			{lineage: identity.Lineage{child, root}},
			{lineage: identity.Lineage{child, root}, embed: &credential.Credential{CreatedBy: "ci"}},
		},
		"acme person ana": {
			{principal: jig.Principal{ID: "ana"}},
			{lineage: identity.Lineage{byAna}, principal: jig.Principal{ID: "bot"}},
			{lineage: identity.Lineage{child, byAna}},
			{embed: &credential.Credential{CreatedBy: "ana"}},
		},
	} {
		for i, c := range list {
			c.tenant = "acme"
			require.Equal(t, want, c.payer(), fmt.Sprint(i))
		}
	}
}
