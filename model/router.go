package model

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Provider is where one kind of model is reached.
type Provider struct {
	// APIKey is sent with each request; none is sent when it is empty.
	APIKey string
	// BaseURL is the address of the API; default: the provider's own. With an address of one's own the key may be empty.
	BaseURL string
}

// Settings are the providers' keys and addresses.
type Settings struct {
	Anthropic Provider
	OpenAI    Provider
	// HTTPClient makes the requests; default: one of its own, without a time-out over all, since answers stream.
	HTTPClient *http.Client
	// IdleTimeout ends a request of which nothing was heard for so long; default 90 seconds.
	IdleTimeout time.Duration
	// MaxAnswer is the longest answer taken, in bytes on the wire; default 64 MiB.
	MaxAnswer int64
}

// The environment variables that hold keys, for the hints of errors; the package reads no environment.
const (
	EnvAnthropicKey = "ANTHROPIC_API_KEY"
	EnvOpenAIKey    = "OPENAI_API_KEY"
)

// provider answers requests for the models of one prefix; name is the model without it.
type provider interface {
	answer(ctx context.Context, name string, request jig.ModelRequest, progress func(string)) (jig.Turn, error)
	check(name string) error
}

// Router sends a request to the provider that its model's prefix names. It is safe for concurrent use.
type Router struct{ providers map[string]provider }

// NewRouter makes a router over anthropic/…, openai/… and script/….
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
		"anthropic": &anthropicProvider{settings: s.Anthropic, line: line{http: s.HTTPClient, idle: s.IdleTimeout, max: s.MaxAnswer}},
		"openai":    &openaiProvider{settings: s.OpenAI, line: line{http: s.HTTPClient, idle: s.IdleTimeout, max: s.MaxAnswer}},
		"script":    newScriptProvider(),
	}}
}

// Answer asks the model once. progress, when not nil, is called as text streams in.
func (r *Router) Answer(ctx context.Context, request jig.ModelRequest, progress func(text string)) (jig.Turn, error) {
	p, name, err := r.find(request.Model)
	if err != nil {
		return jig.Turn{}, err
	}
	if err := p.check(name); err != nil {
		return jig.Turn{}, err
	}
	if progress == nil {
		progress = func(string) {}
	}
	return p.answer(ctx, name, request, progress)
}

// Check refuses a model that no provider serves or that lacks its settings.
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

// needKey refuses the provider's own service without a key.
func needKey(p Provider, env string) error {
	if p.APIKey != "" || p.BaseURL != "" {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "there is no key for this model's provider").WithField("model").
		WithHint("set " + env + " in the worker's environment")
}
