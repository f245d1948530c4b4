package model

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/jig-run/jig/internal/chat"
)

const anthropicURL = "https://api.anthropic.com/"

// anthropicVersion is the version of the Messages API.
const anthropicVersion = "2023-06-01"

// anthropicProvider uses the Messages API.
type anthropicProvider struct {
	settings Provider
	// line returns how to ask a model.
	line func(name string) line
}

func (p *anthropicProvider) check(string) error { return needKey(p.settings, EnvAnthropicKey) }

func (p *anthropicProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	line := p.line(name)
	header := http.Header{"Anthropic-Version": {anthropicVersion}}
	if p.settings.APIKey != "" {
		header.Set("X-Api-Key", p.settings.APIKey)
	}
	return line.ask(ctx, request, service{
		base: p.settings.BaseURL, usual: anthropicURL, path: "v1/messages", header: header,
		body: newAnthropicRequest(name, request, line.stream),
		env:  EnvAnthropicKey, key: p.settings.APIKey, reader: newAnthropicReader(progress, p.settings.APIKey),
	})
}

// anthropicOpaque is stored with a turn that has reasoning. It holds the turn's whole content, because the blocks are signed and must be
// sent back unchanged and in order.
type anthropicOpaque struct {
	Provider string            `json:"provider"`
	Content  []json.RawMessage `json:"content"`
}
