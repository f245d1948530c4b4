package model

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/jig-run/jig"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiProvider speaks Chat Completions.
type openaiProvider struct {
	settings Provider
	line     line
}

func (p *openaiProvider) check(string) error { return needKey(p.settings, EnvOpenAIKey) }

func (p *openaiProvider) answer(parent context.Context, name string, request jig.ModelRequest, progress func(string)) (jig.Turn, error) {
	ctx, w := p.line.watch(parent)
	defer w.stop()
	res, err := p.send(ctx, openaiParams(name, request, p.own()))
	if err != nil {
		return jig.Turn{}, p.failure(parent, ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	w.listen(res)
	reader := &openaiReader{progress: progress, key: p.settings.APIKey}
	if streams(res) {
		err = reader.stream(res)
	} else {
		err = reader.document(res)
	}
	if err != nil {
		return jig.Turn{}, p.failure(parent, ctx, err)
	}
	return reader.turn(namesOf(request.Tools), askedCalls(request.Exchanges)), nil
}

// own reports whether the service is OpenAI's, which has left max_tokens behind; others know no other name for it.
func (p *openaiProvider) own() bool {
	return p.settings.BaseURL == "" || strings.Contains(p.settings.BaseURL, "://api.openai.com")
}

// send makes the request with the SDK's client, built from explicit options alone: the SDK's own constructor would read
// keys, addresses and organisations from the environment.
func (p *openaiProvider) send(ctx context.Context, params openai.ChatCompletionNewParams) (*http.Response, error) {
	base := p.settings.BaseURL
	if base == "" {
		base = openaiURL
	}
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(p.line.http), option.WithMaxRetries(0), option.WithJSONSet("stream", true),
	}
	if p.settings.APIKey != "" {
		options = append(options, option.WithAPIKey(p.settings.APIKey))
	}
	client := openai.Client{Options: options}
	var res *http.Response
	if err := client.Post(ctx, "chat/completions", params, &res); err != nil {
		return nil, err //nolint:wrapcheck // failure translates it
	}
	return res, nil
}

func (p *openaiProvider) failure(parent, ctx context.Context, err error) error {
	var known *jig.Error
	if errors.As(err, &known) {
		return known
	}
	var status *openai.Error
	if errors.As(err, &status) && status.Response != nil {
		body := status.RawJSON()
		if body == "" {
			body = status.Message
		}
		return refused{
			status: status.StatusCode, header: status.Response.Header, body: body,
			env: EnvOpenAIKey, key: p.settings.APIKey,
		}.jig(time.Now())
	}
	return broken(parent, ctx, err)
}
