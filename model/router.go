package model

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/chat"
)

// Provider says how to reach one provider.
type Provider struct {
	// APIKey is sent with each request; no key is sent if it is empty.
	APIKey string
	// BaseURL is the address of the API; default: the provider's own. With any other address, the key may be empty.
	BaseURL string
}

// Settings are the keys and addresses of the providers, and the limits on requests.
type Settings struct {
	Anthropic Provider
	OpenAI    Provider
	// HTTPClient makes the requests; default: a new client without an overall timeout, because answers are streamed.
	HTTPClient *http.Client
	// IdleTimeout cancels a request if nothing is received for this long; default 90 seconds.
	IdleTimeout time.Duration
	// MaxAnswer is the maximum size of an answer, in bytes on the wire; default 64 MiB.
	MaxAnswer int64
	// Unstreamed lists models that are asked for the whole answer at once, because they or their provider cannot stream it: as provider/name,
	// or with a * at the end. Default none.
	Unstreamed []string
}

// unstreamedTimeout cancels a request to a model that does not stream if nothing is received for this long.
const unstreamedTimeout = 14 * time.Minute

// streams reports whether a model is asked to stream its answer.
func (s Settings) streams(model string) bool {
	return !slices.ContainsFunc(s.Unstreamed, func(pattern string) bool {
		prefix, many := strings.CutSuffix(pattern, "*")
		return pattern == model || many && strings.HasPrefix(model, prefix)
	})
}

// endpoint returns the limits on the answer of a model, and the way to ask for it.
func (s Settings) endpoint(model string) endpoint {
	l := endpoint{http: s.HTTPClient, idle: s.IdleTimeout, max: s.MaxAnswer, stream: s.streams(model)}
	if !l.stream {
		l.idle = max(l.idle, unstreamedTimeout)
	}
	return l
}

// The environment variables that hold keys. They are named in error hints, like [EnvUnstreamed]; this package does not read the environment.
const (
	EnvAnthropicKey = "ANTHROPIC_API_KEY"
	EnvOpenAIKey    = "OPENAI_API_KEY"
)

// EnvUnstreamed is the environment variable that lists [Settings.Unstreamed].
const EnvUnstreamed = "JIG_MODELS_UNSTREAMED"

// provider answers requests for the models with one prefix; name is the model without the prefix.
type provider interface {
	answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error)
	check(name string) error
}

// Router sends each request to the provider that the prefix of its model names. It is safe for concurrent use.
type Router struct{ providers map[string]provider }

// NewRouter returns a router for the models anthropic/…, openai/… and script/….
func NewRouter(s Settings) *Router {
	if s.HTTPClient == nil {
		s.HTTPClient = &http.Client{}
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = 90 * time.Second
	}
	if s.MaxAnswer == 0 {
		s.MaxAnswer = 64 << 20
	}
	return &Router{providers: map[string]provider{
		"anthropic": &anthropicProvider{settings: s.Anthropic, endpoint: func(name string) endpoint { return s.endpoint("anthropic/" + name) }},
		"openai":    &openaiProvider{settings: s.OpenAI, endpoint: func(name string) endpoint { return s.endpoint("openai/" + name) }},
		"script":    &scriptProvider{compiled: cache.New[[sha256.Size]byte, *plan](0, maxScripts)},
	}}
}

// Answer asks the model once. If progress is not nil, it is called as text arrives.
func (r *Router) Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error) {
	p, name, err := r.find(request.Model)
	if err != nil {
		return chat.Turn{}, err
	}
	if err := p.check(name); err != nil {
		return chat.Turn{}, err
	}
	if progress == nil {
		progress = func(string) {}
	}
	turn, err := p.answer(ctx, name, request, progress)
	if e := jig.AsError(err); err != nil && e.Code.Retryable() && e.Reason == "" {
		return turn, e.WithReason(jig.ReasonProviderFailed)
	}
	return turn, err
}

// Check returns an error for a model that no provider serves or whose provider lacks a key.
func (r *Router) Check(model string) error {
	p, name, err := r.find(model)
	if err != nil {
		return err
	}
	return p.check(name)
}

func (r *Router) find(model string) (provider, string, error) {
	prefix, name, ok := strings.Cut(model, "/")
	p := r.providers[prefix]
	if !ok || name == "" || p == nil {
		return nil, "", jig.Errorf(jig.CodeInvalidInput, "no provider serves the model %q", model).WithField("model").
			WithHint("use anthropic/<model>, openai/<model> or script/<name>")
	}
	return p, name, nil
}

// needKey returns an error if the provider's own service would be used without a key.
func needKey(p Provider, env string) error {
	if p.APIKey != "" || p.BaseURL != "" {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "there is no key for this model's provider").WithField("model").
		WithHint("set " + env + " in the worker's environment")
}
