package httpapi

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/apikey"
)

// Reasons of refused credentials.
const (
	reasonCredential = "unauthenticated"
	reasonScope      = "scope"
)

// Further reasons for which requests are refused, for the observer.
const (
	refusedHost    = "host"
	refusedAddress = "rate_of_address"
	refusedKey     = "rate_of_key"
)

// authenticate returns the middleware that lets only keys with a scope pass. What it finds is the only source of tenant and principal.
func (a *API) authenticate(scope string) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		exchangeOf(ctx.Context()).operation = ctx.Operation().OperationID
		key, err := a.credential(ctx.Context(), r.Header.Values("Authorization"))
		if err != nil {
			p := a.problemOf(ctx.Context(), err)
			if p.Status == http.StatusUnauthorized {
				a.options.Observer.Refused(reasonCredential)
			}
			a.refuse(w, r, p)
			return
		}
		exchangeOf(ctx.Context()).key = key
		if wait := a.byKey.take(key.ID, a.options.Now()); wait > 0 {
			a.options.Observer.Refused(refusedKey)
			a.refuse(w, r, tooMany("with this API key", wait))
			return
		}
		if !key.Allows(scope) {
			a.options.Observer.Refused(reasonScope)
			a.refuse(w, r, failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "the API key does not have the scope %s", scope).
				WithReason(reasonScope).WithHint("`jig api-key create --scope` makes a key with other scopes")))
			return
		}
		next(ctx)
	}
}

// credential returns the key of a request. All keys that do not count are refused in the same way, whatever is wrong with them.
func (a *API) credential(ctx context.Context, headers []string) (apikey.Key, error) {
	refused := failed(http.StatusUnauthorized, jig.Errorf(jig.CodeNotPermitted, "the request has no valid credential").WithReason(reasonCredential).
		WithHint("send Authorization: Bearer and an API key; `jig api-key create` makes one"))
	refused.headers.Set("WWW-Authenticate", `Bearer realm="jig"`)
	if len(headers) != 1 {
		return apikey.Key{}, refused
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	id, hash, ok := apikey.Parse(text)
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return apikey.Key{}, refused
	}
	key, err := a.options.Keys.APIKey(ctx, id, hash)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return apikey.Key{}, refused
	}
	return key, err
}

// Caller returns the tenant and the principal for whom a request acts; "" if the request has no credential.
func Caller(ctx context.Context) (tenant string, who jig.Principal) { return callerOf(ctx) }

// callerOf returns the tenant and the principal for whom a request acts. Without a signing key, the server's word is a claim to workers.
func callerOf(ctx context.Context) (tenant string, who jig.Principal) {
	key := exchangeOf(ctx).key
	return key.Tenant, jig.Principal{ID: key.Principal, Claimed: true}
}

// leases are the requests that take long, by the id of the key that they use, so that they end when the key does.
type leases struct {
	mu   sync.Mutex
	held map[string]map[*lease]struct{}
}

// lease is one request that takes long.
type lease struct{ end context.CancelFunc }

// hold returns a context that ends with the validity of the key, and a function that must be called when the request is over.
func (l *leases) hold(ctx context.Context, key string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	one := &lease{end: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] == nil {
		l.held[key] = map[*lease]struct{}{}
	}
	l.held[key][one] = struct{}{}
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.held[key], one); len(l.held[key]) == 0 {
			delete(l.held, key)
		}
	}
}

// checkEvery is how often the keys of requests that take long are checked.
const checkEvery = 500 * time.Millisecond

// run checks the keys of all leases until ctx ends.
func (l *leases) run(ctx context.Context, keys Keys, logger *slog.Logger) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := l.check(ctx, keys); err != nil && ctx.Err() == nil {
			logger.WarnContext(ctx, "the API keys of open streams cannot be checked", slog.Any("error", err))
		}
	}
}

// check ends the leases whose keys are no longer valid.
func (l *leases) check(ctx context.Context, keys Keys) error {
	l.mu.Lock()
	ids := slices.Sorted(maps.Keys(l.held))
	l.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	valid, err := keys.ValidAPIKeys(ctx, ids)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if slices.Contains(valid, id) {
			continue
		}
		for one := range l.held[id] {
			one.end()
		}
	}
	return nil
}

// patiently returns a context for work that waits: it ends after a time, when the key loses its validity, and when the server stops.
func (a *API) patiently(ctx context.Context, wait time.Duration) (context.Context, func()) {
	x, began := exchangeOf(ctx), time.Now()
	ctx, over := a.leases.hold(ctx, x.key.ID)
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
