package openid

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// fetchTimeout bounds a request to an issuer.
	fetchTimeout = 10 * time.Second
	// patience is how long requests wait for what an issuer has not told yet: about itself, and its keys.
	patience = 2 * time.Second
	// fetchEvery is how often an issuer's documents are fetched at most, whatever tokens arrive.
	fetchEvery = 5 * time.Second
	// keysFor is how long keys count before the server fetches them again, and keysAtMost is how long they count if the issuer does not answer.
	keysFor    = 10 * time.Minute
	keysAtMost = time.Hour
	// maxFetched bounds a document of an issuer, in bytes, and maxRedirects how often it may be elsewhere.
	maxFetched   = 1 << 20
	maxRedirects = 5
)

// issuer is an identity provider. Its documents are fetched when they are first needed, so that a server starts while the provider is away.
type issuer struct {
	url    string
	client *http.Client

	mu    sync.Mutex
	known *known
	// pending is the discovery that has not ended; nil if there is none.
	pending *discovery
}

// discovery is a request for what an issuer says about itself. found and err are set once done is closed.
type discovery struct {
	began time.Time
	done  chan struct{}
	found *known
	err   error
}

// known holds what an issuer has said about itself.
type known struct {
	provider *oidc.Provider
	keys     oidc.KeySet
	at       time.Time
}

func newIssuer(url string, transport http.RoundTripper) *issuer {
	return &issuer{url: url, client: &http.Client{
		Transport: &sparing{next: transport, answers: map[string]*answered{}}, Timeout: fetchTimeout, CheckRedirect: documentsAlone,
	}}
}

// documentsAlone lets a client follow the redirects of documents, within https. A code and the client's secret travel to no other address.
func documentsAlone(r *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || !secure(r.URL.Scheme+"://"+r.URL.Host) || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// discover returns the provider and its keys. Once they are known, nobody waits while they are fetched again. Until then, all requests wait for the
// same discovery, for patience after it has begun at most.
func (i *issuer) discover(ctx context.Context) (*oidc.Provider, oidc.KeySet, error) {
	found, pending := i.look(ctx)
	if found != nil {
		return found.provider, found.keys, nil
	}
	waited := time.NewTimer(patience - time.Since(pending.began))
	defer waited.Stop()
	select {
	case <-pending.done:
	case <-waited.C:
		return nil, nil, fmt.Errorf("the issuer %s has not answered yet", i.url)
	case <-ctx.Done():
		return nil, nil, ctx.Err() //nolint:wrapcheck // nobody waits anymore
	}
	if pending.err != nil {
		return nil, nil, pending.err
	}
	return pending.found.provider, pending.found.keys, nil
}

// look returns what is known, if it still counts, and begins a discovery if it is time for one.
func (i *issuer) look(ctx context.Context) (*known, *discovery) {
	i.mu.Lock()
	defer i.mu.Unlock()
	age := keysAtMost
	if i.known != nil {
		age = time.Since(i.known.at)
	}
	if age >= keysFor && i.pending == nil {
		i.pending = &discovery{began: time.Now(), done: make(chan struct{})}
		go i.run(oidc.ClientContext(context.WithoutCancel(ctx), i.client), i.pending, age < keysAtMost)
	}
	if age < keysAtMost {
		return i.known, nil
	}
	return nil, i.pending
}

// run fetches what the issuer says, and its keys if the known ones still count. If that fails, the next token leads to another attempt.
func (i *issuer) run(ctx context.Context, d *discovery, keys bool) {
	d.found, d.err = i.fetch(ctx)
	if keys && d.err == nil {
		d.err = d.found.fetchKeys(ctx)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending = nil; d.err == nil {
		i.known = d.found
	}
	close(d.done)
}

func (i *issuer) fetch(ctx context.Context) (*known, error) {
	provider, err := oidc.NewProvider(ctx, i.url)
	if err != nil {
		return nil, fmt.Errorf("the issuer %s cannot be reached: %w", i.url, err)
	}
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return nil, fmt.Errorf("the issuer %s cannot be reached: %w", i.url, err)
	}
	return &known{provider: provider, keys: oidc.NewRemoteKeySet(ctx, metadata.Keys), at: time.Now()}, nil
}

// fetchKeys fetches the keys, which otherwise happens with the first token. Only the check of a signature does so: here one that no key fits.
func (k *known) fetchKeys(ctx context.Context) error {
	const unsigned = "eyJhbGciOiJSUzI1NiJ9.e30.AA" // {"alg":"RS256"}, {} and one byte
	if _, err := k.keys.VerifySignature(ctx, unsigned); isUnfetched(err) {
		return fmt.Errorf("the issuer's keys cannot be fetched: %w", err)
	}
	return nil
}

// isUnfetched reports whether an error of [oidc.RemoteKeySet] says that the keys could not be fetched.
func isUnfetched(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "fetching keys")
}

// sparing answers repeated GET requests from memory for a moment, failed ones too, so that tokens with unknown keys cannot make the server
// send a request each.
type sparing struct {
	next http.RoundTripper

	mu      sync.Mutex
	answers map[string]*answered
}

// answered holds the issuer's answer to a request.
type answered struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip implements [http.RoundTripper].
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return s.next.RoundTrip(r) //nolint:wrapcheck // it is the transport's error
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.answers[r.URL.String()]
	if known == nil || time.Since(known.at) >= fetchEvery {
		known = s.fetch(r)
		s.answers[r.URL.String()] = known
	}
	if known.err != nil {
		return nil, known.err
	}
	return &http.Response{
		StatusCode: known.status, Status: http.StatusText(known.status), Header: known.header.Clone(), Body: io.NopCloser(bytes.NewReader(known.body)),
		ContentLength: int64(len(known.body)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (s *sparing) fetch(r *http.Request) *answered {
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return &answered{at: time.Now(), err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxFetched))
	return &answered{at: time.Now(), status: response.StatusCode, header: response.Header, body: body, err: err}
}
