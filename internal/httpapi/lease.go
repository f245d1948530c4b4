package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
)

// leases holds the long-running requests, so that they can be canceled when their credential is no longer valid.
type leases struct {
	mu   sync.Mutex
	held map[*lease]struct{}
}

// longest is the maximum duration of a request. A client continues a stream that ends then with another request.
const longest = 24 * time.Hour

// Limits of long-running requests, on each server.
const (
	// maxStreams is the default of [Options].MaxStreams.
	maxStreams = 5_000
	// maxAudits is the maximum number of concurrent exports and verifications of a tenant's audit.
	maxAudits = 4
)

// lease is one long-running request.
type lease struct {
	caller caller
	// scope is the scope that the operation needs, and audits reports whether it reads the whole audit.
	scope  string
	audits bool
	end    func()
}

// errEnded cancels requests whose credential was revoked or no longer allows them. A request whose credential expires ends without it, as if its
// waiting time were over: the client may have renewed the credential, and repeats the request.
var errEnded = errors.New("the credential of the request is no longer valid")

// outlived returns an error if the credential of a request became invalid while the request waited.
func (a *API) outlived(waiting context.Context) error {
	if !errors.Is(context.Cause(waiting), errEnded) {
		return nil
	}
	a.options.Observer.Refused(reasonCredential)
	p := failed(http.StatusUnauthorized, jig.Errorf(jig.CodeNotPermitted, "the credential became invalid while the request waited").WithReason(reasonCredential))
	p.Headers.Set("WWW-Authenticate", `Bearer realm="jig"`)
	return p
}

// hold returns a context that is canceled when the request's credential is no longer valid. The returned function ends the lease.
func (l *leases) hold(ctx context.Context, x *exchange) (context.Context, func()) {
	ends := time.Now().Add(longest)
	if expires := x.caller.expires; expires != nil && expires.Before(ends) {
		ends = *expires
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithDeadline(ctx, ends)
	one := &lease{caller: x.caller, scope: x.scope, audits: x.audits, end: func() { cancel(errEnded) }}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[one] = struct{}{}
	return ctx, func() {
		stop()
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, one)
	}
}

// room returns an error if most leases of a kind are held already.
func (l *leases) room(most int, where string, kind func(one *lease) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := 0
	for one := range l.held {
		if kind(one) {
			held++
		}
	}
	if held < most {
		return nil
	}
	return tooMany("that run long "+where, retryAfter)
}

// roomForStream returns an error if the credential of a request has too many streams open.
func (a *API) roomForStream(ctx context.Context) error {
	c := exchangeOf(ctx).caller
	return a.leases.room(a.options.MaxStreams, "with this credential", func(one *lease) bool {
		return one.caller.id == c.id && one.caller.kind == c.kind && one.caller.tenant == c.tenant
	})
}

// roomForAudit returns an error if too many requests are reading the whole audit of the tenant.
func (a *API) roomForAudit(ctx context.Context) error {
	tenant, _ := callerOf(ctx)
	return a.leases.room(maxAudits, "of this tenant", func(one *lease) bool { return one.audits && one.caller.tenant == tenant })
}

// callers returns the callers of all leases.
func (l *leases) callers() []caller {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []caller
	for one := range l.held {
		all = append(all, one.caller)
	}
	return all
}

// end cancels the requests whose leases are not valid.
func (l *leases) end(valid func(one *lease) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.held {
		if !valid(one) {
			one.end()
		}
	}
}

// allowed reports whether the tenant's current settings still allow the request, as the same principal.
func (l *lease) allowed(settings tenancy.Settings) bool {
	now := l.caller
	now.apply(settings)
	return now.principal.ID == l.caller.principal.ID && !settings.IsDisabled(now.principal.ID) && settings.Ended(now.lineage) == "" && now.allows(l.scope)
}

// checkEvery is how often the credentials of long-running requests are checked.
const checkEvery = 500 * time.Millisecond

// Run cancels requests whose credentials are no longer valid or no longer allow them, until ctx ends.
func (a *API) Run(ctx context.Context) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.checkLeases(ctx); err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "the credentials of open streams cannot be checked", slog.Any("error", err))
		}
	}
}

// checkLeases cancels the requests whose credentials are no longer valid or no longer allow them.
func (a *API) checkLeases(ctx context.Context) error {
	issued := map[string]bool{} // the server issues no access tokens
	var failed []error
	asked, tenants := map[string]bool{}, map[string]tenancy.Settings{}
	callers := a.leases.callers()
	for _, c := range callers {
		if c.kind != identity.KindAccessToken {
			issued[c.id] = true
		}
		if asked[c.tenant] {
			continue
		}
		asked[c.tenant] = true
		settings, err := a.options.Tenants.Settings(ctx, c.tenant)
		switch {
		case err == nil:
			tenants[c.tenant] = settings
		case jig.CodeOf(err) != jig.CodeUnavailable:
			failed = append(failed, err)
		}
	}
	if len(callers) == 0 {
		return nil
	}
	var list []string
	if len(issued) > 0 {
		var err error
		if list, err = a.options.Credentials.ValidCredentials(ctx, slices.Collect(maps.Keys(issued))); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	valid := map[string]bool{}
	for _, id := range list {
		valid[id] = true
	}
	a.leases.end(func(l *lease) bool {
		if settings, known := tenants[l.caller.tenant]; known && !l.allowed(settings) {
			return false
		}
		return !issued[l.caller.id] || valid[l.caller.id] // a request that began since is checked next time
	})
	return errors.Join(failed...)
}

// patiently returns a context for work that waits. It ends after the given time, when the credential is no longer valid, and when the server stops.
func (a *API) patiently(ctx context.Context, wait time.Duration) (context.Context, func()) {
	x, began := exchangeOf(ctx), time.Now()
	ctx, over := a.leases.hold(ctx, x)
	ctx, cancel := context.WithTimeout(ctx, wait)
	stop := make(chan struct{})
	go func() {
		select {
		case <-a.drained:
			cancel()
		case <-stop:
		}
	}()
	return ctx, func() {
		close(stop)
		x.waited += time.Since(began)
		cancel()
		over()
	}
}
