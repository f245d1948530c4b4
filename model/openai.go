package model

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/jig-run/jig/internal/chat"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiProvider uses Chat Completions.
type openaiProvider struct {
	settings Provider
	// line returns how to ask a model.
	line func(name string) line
}

func (p *openaiProvider) check(string) error { return needKey(p.settings, EnvOpenAIKey) }

func (p *openaiProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	params, line := openaiParams(name, request, p.own()), p.line(name)
	if line.stream {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	return line.ask(ctx, request, service{
		send:    func(ctx context.Context) (*http.Response, error) { return p.send(ctx, line, params) },
		refusal: p.refusal,
		reader:  &openaiReader{progress: progress, key: p.settings.APIKey},
	})
}

// own reports whether the service is OpenAI's own, which has replaced max_tokens. Other servers know only max_tokens.
func (p *openaiProvider) own() bool {
	return p.settings.BaseURL == "" || strings.Contains(p.settings.BaseURL, "://api.openai.com")
}

// send makes the request with the SDK's client, built only from explicit options. The SDK's own constructor would also read keys, addresses
// and organizations from the environment.
func (p *openaiProvider) send(ctx context.Context, line line, params openai.ChatCompletionNewParams) (*http.Response, error) {
	base := p.settings.BaseURL
	if base == "" {
		base = openaiURL
	}
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(line.http), option.WithMaxRetries(0),
	}
	if line.stream {
		options = append(options, option.WithJSONSet("stream", true))
	}
	if p.settings.APIKey != "" {
		options = append(options, option.WithAPIKey(p.settings.APIKey))
	}
	client := openai.Client{Options: options}
	var res *http.Response
	if err := client.Post(ctx, "chat/completions", params, &res); err != nil {
		return nil, err //nolint:wrapcheck // line.ask translates it
	}
	return res, nil
}

// refusal returns the HTTP error response that the SDK reported as err, or nil if err has another cause.
func (p *openaiProvider) refusal(err error) *refused {
	var status *openai.Error
	if !errors.As(err, &status) || status.Response == nil {
		return nil
	}
	return &refused{
		status: status.StatusCode, header: status.Response.Header, body: cmp.Or(status.RawJSON(), status.Message),
		env: EnvOpenAIKey, key: p.settings.APIKey,
	}
}
