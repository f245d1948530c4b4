package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jig-run/jig"
)

// Limits of the requests that a server serves at the same time.
const (
	// maxStreams is the default of [Options].MaxStreams. A stream takes about 44 KB.
	maxStreams = 5_000
	// maxRequests is the default of [Options].MaxRequests. A frontend of Temporal takes 1,200 requests that wait, so two servers may share one.
	maxRequests = 500
	// maxContent is the maximum size of the content of all requests and responses, in bytes.
	maxContent = 192 << 20
	// decodedTimes is how many times its size the body of a request counts, because it is decoded and encoded again.
	decodedTimes = 4
	// largeContent is the size from which a response counts, in bytes.
	largeContent = 64 << 10
	// maxDownloads is the maximum number of artifacts that are read at a time, before their size is known.
	maxDownloads = 4
	// maxAudits is the maximum number of concurrent exports and verifications of a tenant's audit.
	maxAudits = 4
)

// longest is the maximum duration of a request. A client continues a stream that ends then with another request.
const longest = 24 * time.Hour

// crowded is how long a client should wait before it repeats a request for which there was no room.
const crowded = 5 * time.Second

// pool holds the requests of a kind that are being served: streams, or all others. If it is full, a request of a tenant that has less in it than
// another one takes a place of that tenant. So a tenant may use what is free, and always gets its own share. The places of a tenant are shared
// in the same way among those who pay for them, see [caller.payer].
type pool struct {
	// most is the maximum number of requests, and mostBytes that of the bytes of their content; 0 means no limit.
	most, mostBytes int64

	mu   sync.Mutex
	held map[*lease]struct{}
	// count and bytes add up what is held.
	count, bytes int64
	entered      int64
}

func newPool(most int, bytes int64) *pool {
	return &pool{most: int64(most), mostBytes: bytes, held: map[*lease]struct{}{}}
}

// lease is the place of a request in a pool.
type lease struct {
	caller caller
	payer  string
	// scope is the scope that the operation needs, and audits reports whether it reads the whole audit.
	scope  string
	audits bool

	// The pool's lock guards the rest. bytes is the size of the content, and nth orders the leases of a pool by age.
	bytes, nth int64
	// end ends the request because its credential is no longer valid, and yield because somebody else needs the place; nil if it cannot be ended.
	end, yield func()
	// abort is the yield of a request that does not wait.
	abort func()
}

// Causes of contexts of requests that are ended early.
var (
	// errEnded is for requests whose credential was revoked or no longer allows them. A request whose credential expires ends without it, as if its
	// waiting time were over: the client may have renewed the credential, and repeats the request.
	errEnded = errors.New("the credential of the request is no longer valid")
	// errYielded is for requests whose place somebody else needed. One that waits ends as if its waiting time were over; others fail with 503.
	errYielded = errors.New("another tenant or credential needs the place of the request")
)

// enter adds a request. If the pool is full, it ends the oldest request of whoever has the largest share; if that is the caller, it returns an error.
func (p *pool) enter(one *lease) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.most > 0 && p.count >= p.most {
		if !p.takeFrom(one, 1, func(*lease) int64 { return 1 }) {
			return p.full(one)
		}
	}
	if !p.fits(one, one.bytes) {
		return p.full(one)
	}
	p.entered++
	one.nth = p.entered
	p.held[one] = struct{}{}
	p.count++
	p.bytes += one.bytes
	return nil
}

// fits makes room for more bytes of a request's content, and reports whether there is. A request that is alone always has room.
func (p *pool) fits(one *lease, more int64) bool {
	for p.mostBytes > 0 && more > 0 && p.bytes > 0 && p.bytes+more > p.mostBytes {
		if !p.takeFrom(one, more, func(l *lease) int64 { return l.bytes }) {
			return false
		}
	}
	return true
}

// resize changes the size of a request's content by some bytes. It reports whether there is room, which there is none for a request that gave way.
func (p *pool) resize(one *lease, by int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, held := p.held[one]; !held || !p.fits(one, by) {
		return false
	}
	one.bytes += by
	p.bytes += by
	return true
}

// full returns the problem of a request for which there is no room: 429 if its tenant has places, else 503.
func (p *pool) full(one *lease) error {
	for other := range p.held {
		if other.caller.tenant == one.caller.tenant {
			return tooMany("of this tenant at the same time", crowded)
		}
	}
	e := jig.Errorf(jig.CodeUnavailable, "the server has no room for another request").WithReason(reasonRoom).WithHint("wait for the time in the header Retry-After")
	e.RetryAfter = crowded
	return failed(http.StatusServiceUnavailable, e)
}

// takeFrom ends a request of the tenant with the largest share, or else of the payer with the largest share of the same tenant, if that share stays
// at least as large as that of the request with what it wants more. It reports whether it did.
func (p *pool) takeFrom(one *lease, more int64, weight func(*lease) int64) bool {
	byTenant := func(l *lease) string { return l.caller.tenant }
	byPayer := func(l *lease) string { return l.payer }
	largest, _ := p.largest(one, more, byTenant, weight, func(*lease) bool { return true })
	if largest != "" {
		_, victim := p.largest(nil, 0, byPayer, weight, func(l *lease) bool { return byTenant(l) == largest })
		if p.end(victim) {
			return true
		}
	}
	largest, victim := p.largest(one, more, byPayer, weight, func(l *lease) bool { return byTenant(l) == byTenant(one) })
	return largest != "" && p.end(victim)
}

// largest returns whoever has the largest share among the leases that count, with their oldest request that can be ended. If one is given, the share
// must stay at least as large as that of one with what it wants more; otherwise the name is empty.
func (p *pool) largest(
	one *lease, more int64, by func(*lease) string, weight func(*lease) int64, counts func(*lease) bool,
) (name string, oldest *lease) {
	shares, first := map[string]int64{}, map[string]*lease{}
	for l := range p.held {
		if !counts(l) {
			continue
		}
		shares[by(l)] += weight(l)
		if l.yield != nil && weight(l) > 0 && (first[by(l)] == nil || l.nth < first[by(l)].nth) {
			first[by(l)] = l
		}
	}
	for who, share := range shares {
		if first[who] != nil && (name == "" || share > shares[name]) {
			name = who
		}
	}
	if one != nil && name != "" && (name == by(one) || shares[name]-weight(first[name]) < shares[by(one)]+more) {
		return "", nil
	}
	return name, first[name]
}

// end ends a request and removes it. The pool is locked.
func (p *pool) end(victim *lease) bool {
	if victim == nil {
		return false
	}
	victim.yield()
	p.remove(victim)
	return true
}

// leave removes a request. It may be called again.
func (p *pool) leave(one *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(one)
}

func (p *pool) remove(one *lease) {
	if _, held := p.held[one]; held {
		delete(p.held, one)
		p.count--
		p.bytes -= one.bytes
	}
	one.end, one.yield = nil, nil
}

// hold returns a context that is canceled when the credential of a request is no longer valid, and when somebody else needs its place. The
// returned function must be called when the request stops waiting.
func (p *pool) hold(ctx context.Context, one *lease) (context.Context, func()) {
	ends := time.Now().Add(longest)
	if expires := one.caller.expires; expires != nil && expires.Before(ends) {
		ends = *expires
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithDeadline(ctx, ends)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, held := p.held[one]; !held { // it had to give way before
		cancel(errYielded)
	}
	one.end, one.yield = func() { cancel(errEnded) }, func() { cancel(errYielded) }
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.end, one.yield = nil, one.abort
		stop()
		cancel(nil)
	}
}

// enter takes a place for a request, until [API.leave]. The context is canceled if the request must give way before. A read loses its connection then,
// so that nobody keeps places by reading slowly.
func (a *API) enter(ctx context.Context, w http.ResponseWriter, x *exchange, payer string) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	one := &lease{caller: x.caller, payer: payer, scope: x.scope, bytes: x.request.ContentLength, abort: func() { cancel(errYielded) }}
	switch {
	case x.request.Method == http.MethodGet:
		control := http.NewResponseController(w)
		one.bytes, one.abort = 0, func() {
			cancel(errYielded)
			_ = control.SetWriteDeadline(time.Now()) //nolint:errcheck // not every writer has deadlines
		}
	case one.bytes < 0 || one.bytes > MaxBody:
		one.bytes = MaxBody
	}
	one.bytes *= decodedTimes
	one.yield = one.abort
	if err := a.requests.enter(one); err != nil {
		cancel(nil)
		a.options.Observer.Refused(reasonRoom)
		return ctx, err
	}
	x.place, x.release = one, func() { cancel(nil) }
	return ctx, nil
}

// yielded returns the problem of a request that had to give way, or nil.
func yielded(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errYielded) {
		return nil
	}
	e := jig.Errorf(jig.CodeUnavailable, "the server is full, and the request had to give way to another tenant or credential").WithReason(reasonRoom).
		WithHint("repeat it with the same id or Idempotency-Key after the time in the header Retry-After: what it asked for may have happened")
	e.RetryAfter = crowded
	return failed(http.StatusServiceUnavailable, e)
}

// enterStream takes a place for the stream with which a request will be answered.
func (a *API) enterStream(ctx context.Context) error {
	x := exchangeOf(ctx)
	one := &lease{caller: x.caller, payer: x.place.payer, scope: x.scope}
	if err := a.streams.enter(one); err != nil {
		a.options.Observer.Refused(reasonRoom)
		return err
	}
	x.stream = one
	return nil
}

// leave frees the places of a request.
func (a *API) leave(x *exchange) {
	if x.place != nil {
		a.requests.leave(x.place)
		x.release()
	}
	if x.stream != nil {
		a.streams.leave(x.stream)
	}
}

// enterAudit returns an error if too many requests are reading the whole audit of the tenant.
func (a *API) enterAudit(ctx context.Context) error {
	place := exchangeOf(ctx).place
	a.requests.mu.Lock()
	defer a.requests.mu.Unlock()
	reading := 0
	for other := range a.requests.held {
		if other.audits && other.caller.tenant == place.caller.tenant {
			reading++
		}
	}
	if reading >= maxAudits {
		return tooMany("that read the whole record of this tenant", retryAfter)
	}
	place.audits = true
	return nil
}
