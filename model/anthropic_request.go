package model

import (
	"encoding/json"
	"regexp"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/jig-run/jig/internal/chat"
)

const defaultMaxTokens = 8192

func anthropicParams(name string, r chat.Request) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{
		Model:     name,
		MaxTokens: int64(maxTokens(r)),
		Messages:  anthropicMessages(conversation(r.Exchanges)),
	}
	if r.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for _, t := range r.Tools {
		tool := anthropic.ToolParam{Name: wireName(t.Name), InputSchema: param.Override[anthropic.ToolInputSchemaParam](schemaOf(t))}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if n := len(params.Tools); n > 0 {
		params.Tools[n-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
		params.ToolChoice = anthropic.ToolChoiceUnionParam{OfAuto: &anthropic.ToolChoiceAutoParam{}}
	}
	return params
}

func maxTokens(r chat.Request) int {
	if r.MaxTokens > 0 {
		return r.MaxTokens
	}
	return defaultMaxTokens
}

// anthropicMessages returns messages with alternating roles. Results and the user texts after them share one user message, results first.
func anthropicMessages(steps []said) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	user := func(blocks ...anthropic.ContentBlockParamUnion) {
		if n := len(out); n > 0 && out[n-1].Role == anthropic.MessageParamRoleUser {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, anthropic.NewUserMessage(blocks...))
	}
	for _, s := range steps {
		for _, text := range s.user {
			user(anthropic.NewTextBlock(text))
		}
		if s.turn == nil {
			continue
		}
		blocks := anthropicTurn(s.turn)
		if n := len(out); out[n-1].Role == anthropic.MessageParamRoleAssistant {
			out[n-1].Content = append(out[n-1].Content, blocks...)
		} else {
			out = append(out, anthropic.NewAssistantMessage(blocks...))
		}
		for _, r := range s.results {
			user(anthropic.NewToolResultBlock(anthropicID(r.id), r.text, r.failed))
		}
	}
	markCache(out)
	return out
}

// markCache marks two positions for the prompt cache: the end of the conversation, which the next request will repeat, and the end of the
// previous one, which the last request marked. Together with tools and system, these are the four marks that the API allows.
func markCache(messages []anthropic.MessageParam) {
	marks := 2
	for i := len(messages) - 1; i >= 0 && marks > 0; i-- {
		m := messages[i]
		if m.Role != anthropic.MessageParamRoleUser || len(m.Content) == 0 {
			continue
		}
		if control := m.Content[len(m.Content)-1].GetCacheControl(); control != nil {
			*control = anthropic.NewCacheControlEphemeralParam()
			marks--
		}
	}
}

func anthropicTurn(t *chat.Turn) []anthropic.ContentBlockParamUnion {
	var opaque anthropicOpaque
	if len(t.Opaque) > 0 && json.Unmarshal(t.Opaque, &opaque) == nil && opaque.Provider == "anthropic" {
		var blocks []anthropic.ContentBlockParamUnion
		for _, raw := range opaque.Content {
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](raw))
		}
		return blocks
	}
	var blocks []anthropic.ContentBlockParamUnion
	if t.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(t.Text))
	}
	for i, c := range t.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(anthropicID(callID(c, i)), inputObject(c), wireName(c.Name)))
	}
	return blocks
}

var notIDs = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// anthropicID replaces the characters that Anthropic does not accept in an id from another provider.
func anthropicID(id string) string { return notIDs.ReplaceAllString(id, "_") }
