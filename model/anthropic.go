package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/jig-run/jig/internal/chat"
)

const anthropicURL = "https://api.anthropic.com/"

// anthropicProvider uses the Messages API.
type anthropicProvider struct {
	settings Provider
	// line returns how to ask a model.
	line func(name string) line
}

func (p *anthropicProvider) check(string) error { return needKey(p.settings, EnvAnthropicKey) }

func (p *anthropicProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	params, line := anthropicParams(name, request), p.line(name)
	return line.ask(ctx, request, service{
		send:    func(ctx context.Context) (*http.Response, error) { return p.send(ctx, line, params) },
		refusal: p.refusal,
		reader:  &anthropicReader{progress: progress, key: p.settings.APIKey, texts: map[int64]*strings.Builder{}},
	})
}

// send makes the request with the SDK's client, built only from explicit options. The SDK's own constructor would also read keys,
// addresses, headers and profiles from the environment.
func (p *anthropicProvider) send(ctx context.Context, line line, params anthropic.MessageNewParams) (*http.Response, error) {
	base := p.settings.BaseURL
	if base == "" {
		base = anthropicURL
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
	client := anthropic.Client{Options: options}
	var res *http.Response
	if err := client.Post(ctx, "v1/messages", params, &res); err != nil {
		return nil, err //nolint:wrapcheck // line.ask translates it
	}
	return res, nil
}

// refusal returns the HTTP error response that the SDK reported as err, or nil if err has another cause.
func (p *anthropicProvider) refusal(err error) *refused {
	var status *anthropic.Error
	if !errors.As(err, &status) || status.Response == nil {
		return nil
	}
	return &refused{
		status: status.StatusCode, header: status.Response.Header, body: status.RawJSON(), env: EnvAnthropicKey, key: p.settings.APIKey,
	}
}

// anthropicOpaque is stored with a turn that has reasoning. It holds the turn's whole content, because the blocks are signed and must be
// sent back unchanged and in order.
type anthropicOpaque struct {
	Provider string            `json:"provider"`
	Content  []json.RawMessage `json:"content"`
}
