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
	var stored credentials
	disabled := map[string]func(id string) bool{}
	callers := a.leases.callers()
	for _, c := range callers {
		if ids := stored.of(c); ids != nil && !slices.Contains(*ids, c.id) {
			*ids = append(*ids, c.id)
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
	valid, err := a.valid(ctx, stored)
	if err != nil {
		return err
	}
	a.leases.end(func(c caller) bool {
		gone := disabled[c.tenant]
		if gone == nil { // it came meanwhile, and is checked the next time
			return true
		}
		ids := stored.of(c)
		asked := ids != nil && slices.Contains(*ids, c.id)
		return !gone(c.principal.ID) && (!asked || slices.Contains(valid, c.id))
	})
	return nil
}

// credentials are the ids of stored credentials. They are random, so none is the id of two.
type credentials struct{ keys, logins, embeds []string }

// of returns the ids that those of a caller's credential belong to; nil if the credential is not stored.
func (s *credentials) of(c caller) *[]string {
	switch {
	case c.kind == kindAPIKey:
		return &s.keys
	case c.kind == kindEmbed:
		return &s.embeds
	case c.cookied():
		return &s.logins
	}
	return nil
}

// valid returns the ids of the given credentials that are valid now.
func (a *API) valid(ctx context.Context, stored credentials) (valid []string, err error) {
	if len(stored.keys) > 0 {
		if valid, err = a.options.Keys.ValidAPIKeys(ctx, stored.keys); err != nil {
			return nil, err
		}
	}
	if len(stored.logins) > 0 {
		logins, err := a.options.Logins.ValidLogins(ctx, stored.logins)
		if err != nil {
			return nil, err
		}
		valid = append(valid, logins...)
	}
	if len(stored.embeds) > 0 {
		embeds, err := a.options.Embeds.ValidEmbedTokens(ctx, stored.embeds)
		if err != nil {
			return nil, err
		}
		valid = append(valid, embeds...)
	}
	return valid, nil
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
