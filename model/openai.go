package model

import (
	"context"
	"net/http"
	"strings"

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
	line, header := p.line(name), http.Header{}
	if p.settings.APIKey != "" {
		header.Set("Authorization", "Bearer "+p.settings.APIKey)
	}
	return line.ask(ctx, request, service{
		base: p.settings.BaseURL, usual: openaiURL, path: "chat/completions", header: header,
		body: newOpenAIRequest(name, request, p.own(), line.stream),
		env:  EnvOpenAIKey, key: p.settings.APIKey, reader: &openaiReader{progress: progress, key: p.settings.APIKey},
	})
}

// own reports whether the service is OpenAI's own, which has replaced max_tokens. Other servers know only max_tokens.
func (p *openaiProvider) own() bool {
	return p.settings.BaseURL == "" || strings.Contains(p.settings.BaseURL, "://api.openai.com")
}
