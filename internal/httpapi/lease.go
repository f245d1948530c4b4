package httpapi

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
)

// leases are the requests that take long, so that they end when their credential does.
type leases struct {
	mu   sync.Mutex
	held map[*lease]struct{}
}

// longest is how long a request may take in any case. A stream that ends then continues with another request.
const longest = 24 * time.Hour

// lease is one request that takes long.
type lease struct {
	caller caller
	end    context.CancelFunc
}

// hold returns a context that ends with the validity of the caller's credential, and a function that must be called when the request is over.
func (l *leases) hold(ctx context.Context, c caller) (context.Context, func()) {
	ends := time.Now().Add(longest)
	if c.expires != nil && c.expires.Before(ends) {
		ends = *c.expires
	}
	ctx, cancel := context.WithDeadline(ctx, ends)
	one := &lease{caller: c, end: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[one] = struct{}{}
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, one)
	}
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

// end ends the leases that do not keep their validity.
func (l *leases) end(valid func(c caller) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.held {
		if !valid(one.caller) {
			one.end()
		}
	}
}

// checkEvery is how often the credentials of requests that take long are checked.
const checkEvery = 500 * time.Millisecond

// Run ends requests whose credential loses its validity, until ctx ends.
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

// checkLeases ends the requests whose credentials are no longer valid.
func (a *API) checkLeases(ctx context.Context) error {
	var keys, logins []string
	disabled := map[string]func(id string) bool{}
	callers := a.leases.callers()
	for _, c := range callers {
		if c.kind == kindAPIKey && !slices.Contains(keys, c.id) {
			keys = append(keys, c.id)
		}
		if c.cookied() && !slices.Contains(logins, c.id) {
			logins = append(logins, c.id)
		}
		if disabled[c.tenant] != nil {
			continue
		}
		settings, err := a.options.Tenants.Settings(ctx, c.tenant)
		if err != nil && jig.CodeOf(err) != jig.CodeUnavailable {
			return err
		}
		disabled[c.tenant] = settings.IsDisabled
	}
	if len(callers) == 0 {
		return nil
	}
	valid, err := a.valid(ctx, keys, logins)
	if err != nil {
		return err
	}
	a.leases.end(func(c caller) bool {
		gone := disabled[c.tenant]
		if gone == nil { // it came meanwhile, and is checked the next time
			return true
		}
		asked := c.kind == kindAPIKey && slices.Contains(keys, c.id) || c.cookied() && slices.Contains(logins, c.id)
		return !gone(c.principal.ID) && (!asked || slices.Contains(valid, c.id))
	})
	return nil
}

// valid returns those of the given API keys and logins that are valid now. Their ids are random, so none is the id of two.
func (a *API) valid(ctx context.Context, keys, logins []string) (valid []string, err error) {
	if len(keys) > 0 {
		if valid, err = a.options.Keys.ValidAPIKeys(ctx, keys); err != nil {
			return nil, err
		}
	}
	if len(logins) == 0 {
		return valid, nil
	}
	more, err := a.options.Logins.ValidLogins(ctx, logins)
	return append(valid, more...), err
}

// patiently returns a context for work that waits: it ends after a time, when the credential loses its validity, and when the server stops.
func (a *API) patiently(ctx context.Context, wait time.Duration) (context.Context, func()) {
	x, began := exchangeOf(ctx), time.Now()
	ctx, over := a.leases.hold(ctx, x.caller)
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
