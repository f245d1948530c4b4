package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
)

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

// callers returns the callers of the requests that wait or stream.
func (p *pool) callers() []caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []caller
	for one := range p.held {
		if one.end != nil {
			all = append(all, one.caller)
		}
	}
	return all
}

// endInvalid ends the requests that wait or stream with a credential that is not valid.
func (p *pool) endInvalid(valid func(one *lease) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.held {
		if one.end != nil && !valid(one) {
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
	callers := append(a.requests.callers(), a.streams.callers()...)
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
	for _, p := range []*pool{a.requests, a.streams} {
		p.endInvalid(func(l *lease) bool {
			if settings, known := tenants[l.caller.tenant]; known && !l.allowed(settings) {
				return false
			}
			return !issued[l.caller.id] || valid[l.caller.id] // a request that began since is checked next time
		})
	}
	return errors.Join(failed...)
}

// patiently returns a context for work that waits. It ends after the given time, when the credential is no longer valid, when somebody else needs
// the request's place, and when the server stops.
func (a *API) patiently(ctx context.Context, wait time.Duration) (context.Context, func()) {
	x, began := exchangeOf(ctx), time.Now()
	ctx, over := a.requests.hold(ctx, x.place)
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
