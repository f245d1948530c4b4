package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
)

// maxLimited bounds for how many credentials and for how many addresses the server remembers how much they ask. If there are more, it forgets
// who has asked for nothing the longest.
const maxLimited = 20_000

// reasonRate is the reason of the problem with which rate limits refuse requests.
const reasonRate = "rate"

// limiter limits how many requests a second each key may make. Twice as many may come at once.
type limiter struct {
	perSecond int
	seen      *cache.Cache[string, *rate.Limiter]
}

// newLimiter returns a limiter; 0 means no limit.
func newLimiter(perSecond int) *limiter {
	return &limiter{perSecond: perSecond, seen: cache.New[string, *rate.Limiter](0, maxLimited)}
}

// take counts a request. It returns 0, or how long the client must wait before a request is accepted.
func (l *limiter) take(key string, now time.Time) time.Duration {
	if l.perSecond == 0 {
		return 0
	}
	bucket, err := l.seen.Get(key, func(*rate.Limiter, bool) (*rate.Limiter, error) {
		return rate.NewLimiter(rate.Limit(l.perSecond), 2*l.perSecond), nil
	})
	if err != nil || bucket.AllowN(now, 1) { // the function above never fails
		return 0
	}
	return time.Duration(float64(time.Second) * (1 - bucket.TokensAt(now)) / float64(l.perSecond))
}

// tooMany returns the problem for a client that must wait.
func tooMany(what string, wait time.Duration) *problem {
	e := jig.Errorf(jig.CodeRateLimited, "too many requests %s", jig.Known(what)).WithReason(reasonRate).WithHint("wait for the time in the header Retry-After")
	e.RetryAfter = wait
	return failed(http.StatusTooManyRequests, e)
}

// mayStart counts a session or a call that a tenant is about to start. It returns an error if the tenant must wait.
func (a *API) mayStart(tenant string) error {
	if wait := a.starts.take(tenant, a.options.Now()); wait > 0 {
		a.options.Observer.Refused(refusedStarts)
		return tooMany("to start something in this tenant", wait)
	}
	return nil
}

// addressOf returns the address of a client, for the limits: that of the connection, or if it is a proxy of the settings, the last address in
// X-Forwarded-For that is no proxy. Clients choose freely among the addresses of their IPv6 network, so these count as one.
func (a *API) addressOf(r *http.Request) string {
	ip, known := addressIn(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, by := range slices.Backward(forwarded) {
		proxied := known && slices.ContainsFunc(a.options.Proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
		if by = strings.TrimSpace(by); by == "" || !proxied {
			break
		}
		ip, known = addressIn(by)
	}
	if !known {
		return "other"
	}
	return Network(ip)
}

// Network returns the network of a client's address, whose addresses count as one: all of an IPv6 network, and a single IPv4 address.
func Network(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil { // cannot happen: an IPv6 address has 128 bits
		return ip.String()
	}
	return network.String()
}

// addressIn returns the address in a text that may have a port, as some proxies write it.
func addressIn(text string) (ip netip.Addr, known bool) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		ported, err := netip.ParseAddrPort(text)
		return ported.Addr().Unmap().WithZone(""), err == nil
	}
	return ip.Unmap().WithZone(""), true
}

// Headers of pages of other origins that have an embed token: what they may send, and what they may read.
var (
	sharedRequest = strings.Join([]string{"Authorization", "Content-Type", headerKey, headerLastEvent, "Prefer"}, ", ")
	sharedAnswer  = strings.Join([]string{headerRequestID, "Idempotent-Replayed", "Location", "Preference-Applied", "Retry-After"}, ", ")
)

// preflightLasts is how many seconds a browser may remember the answer to a preflight request.
const preflightLasts = "600"

// shareWith lets pages of an origin read an answer.
func shareWith(h http.Header, origin string) {
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", sharedAnswer)
}

// preflight tells a browser whether a page of another origin may make a request. It may if the operation takes embed tokens, whatever its origin:
// otherwise anybody could find out for which origins tenants have tokens. Browsers send no credential with the question, and the request itself
// is refused without a token for its origin.
func (a *API) preflight(w http.ResponseWriter, r *http.Request) {
	origins, method := r.Header.Values("Origin"), r.Header.Get("Access-Control-Request-Method")
	if len(origins) != 1 || method == "" {
		a.unknown(w, r)
		return
	}
	asked := r.Clone(r.Context())
	asked.Method = method
	_, pattern := a.mux.Handler(asked)
	h := w.Header()
	if !a.embeddable[pattern] {
		h.Add("Vary", "Origin")
		a.options.Observer.Refused(reasonOrigin)
		a.refuse(w, r, failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "pages of other origins need an embed token").WithReason(reasonOrigin)))
		return
	}
	shareWith(h, origins[0])
	h.Set("Access-Control-Allow-Methods", method)
	h.Set("Access-Control-Allow-Headers", sharedRequest)
	h.Set("Access-Control-Max-Age", preflightLasts)
	w.WriteHeader(http.StatusNoContent)
}
