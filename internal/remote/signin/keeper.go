package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/jig-run/jig"
)

// early is how long before its expiry an access token is renewed.
const early = 30 * time.Second

// Login is a login at a server, as it is stored.
type Login struct {
	Server   string `json:"server"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	TokenURL string `json:"token_url"`
	// RevocationURL is the provider's revocation endpoint; empty if it has none.
	RevocationURL     string `json:"revocation_url,omitempty"`
	Audience          string `json:"audience"`
	AudienceParameter string `json:"audience_parameter,omitempty"`
	AccessToken       string `json:"access_token"`
	RefreshToken      string `json:"refresh_token,omitempty"`
	// ExpiresAt is when the access token expires; zero if the provider does not say.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// valid reports whether the access token stays valid for a while.
func (l Login) valid() bool { return l.ExpiresAt.IsZero() || time.Until(l.ExpiresAt) > early }

// Keeper returns access tokens of stored logins, and renews them. It is safe for concurrent use, also across processes.
type Keeper struct {
	store *Store
	mu    sync.Mutex
	known map[string]Login
}

// NewKeeper returns a keeper of the logins in a store.
func NewKeeper(s *Store) *Keeper { return &Keeper{store: s, known: map[string]Login{}} }

// Token returns the access token for a server, and renews it if needed. It returns "" if there is no login.
func (k *Keeper) Token(ctx context.Context, server string) (string, error) {
	server, err := ServerAddress(server)
	if err != nil {
		return "", nil // nobody can have logged in at such an address
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l, ok := k.known[server]
	if !ok {
		if l, ok, err = k.store.Load(server); err != nil || !ok {
			return "", err
		}
	}
	if !l.valid() {
		if l, err = k.renewed(ctx, server); err != nil {
			return "", err
		}
	}
	k.known[server] = l
	return l.AccessToken, nil
}

// renewed returns a login with a new access token. Only one process renews at a time, because providers accept a refresh token once, and revoke
// the login if it is used again.
func (k *Keeper) renewed(ctx context.Context, server string) (Login, error) {
	unlock, err := k.store.lock(ctx)
	if err != nil {
		return Login{}, err
	}
	defer unlock()
	l, ok, err := k.store.Load(server)
	if err != nil || ok && l.valid() {
		return l, err
	}
	if !ok || l.RefreshToken == "" {
		return l, ended(server)
	}
	if l, err = l.renew(ctx); err != nil {
		if jig.CodeOf(err) == jig.CodeNotPermitted {
			err = ended(server)
		}
		return l, err
	}
	_, err = k.store.save(l)
	return l, err
}

func ended(server string) error {
	return jig.Errorf(jig.CodeNotPermitted, "the login at %s has ended", server).WithReason("login").WithHint("run `jig login` again")
}

// renew asks the provider for a new access token.
func (l Login) renew(ctx context.Context) (Login, error) {
	config := oauth2.Config{ClientID: l.ClientID, Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}
	// A token source of the library cannot send the audience.
	options := []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", l.RefreshToken)}
	if l.AudienceParameter != "" {
		options = append(options, oauth2.SetAuthURLParam(l.AudienceParameter, l.Audience))
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, newHTTP()), "", options...)
	if err != nil {
		return l, refusal(ctx, l.Issuer, err)
	}
	if l.AccessToken, l.ExpiresAt = token.AccessToken, token.Expiry.UTC(); token.RefreshToken != "" {
		l.RefreshToken = token.RefreshToken
	}
	return l, nil
}

// Revoke tells the provider that the login has ended (RFC 7009). It does nothing if the provider has no endpoint for that.
func (l Login) Revoke(ctx context.Context) error {
	if l.RevocationURL == "" || l.RefreshToken == "" {
		return nil
	}
	form := url.Values{"token": {l.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {l.ClientID}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("revoke the login: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := newHTTP().Do(request)
	if err != nil {
		return jig.Errorf(jig.CodeUnavailable, "the identity provider %s cannot be reached: %w", l.Issuer, inner(err))
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxFetched)) //nolint:errcheck // only the status matters
	if answer.StatusCode != http.StatusOK {
		return jig.Errorf(jig.CodeUnavailable, "the identity provider %s answered %s", l.Issuer, answer.Status)
	}
	return nil
}
