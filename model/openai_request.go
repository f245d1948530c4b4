package model

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

func openaiParams(name string, r chat.Request, own bool) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model:    name,
		Messages: openaiMessages(r.System, conversation(r.Exchanges)),
	}
	if own {
		params.MaxCompletionTokens = openai.Int(int64(maxTokens(r)))
	} else {
		params.MaxTokens = openai.Int(int64(maxTokens(r)))
	}
	for _, t := range r.Tools {
		function := shared.FunctionDefinitionParam{Name: wireName(t.Name), Parameters: parameters(t)}
		if t.Description != "" {
			function.Description = openai.String(t.Description)
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(function))
	}
	if len(params.Tools) > 0 {
		params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("auto")}
	}
	return params
}

func parameters(t jig.Tool) shared.FunctionParameters {
	var schema shared.FunctionParameters
	if err := json.Unmarshal(schemaOf(t), &schema); err != nil { // registration refuses a schema that is not an object
		return shared.FunctionParameters{"type": "object"}
	}
	return schema
}

func openaiMessages(system string, steps []said) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	if system != "" {
		out = append(out, openai.SystemMessage(system))
	}
	var pending []string
	flush := func() {
		if len(pending) > 0 {
			out = append(out, openai.UserMessage(strings.Join(pending, "\n\n")))
			pending = nil
		}
	}
	for _, s := range steps {
		pending = append(pending, s.user...)
		if s.turn == nil {
			continue
		}
		flush()
		out = append(out, openaiTurn(s.turn))
		for _, r := range s.results {
			out = append(out, openai.ToolMessage(r.text, r.id))
		}
	}
	flush()
	return out
}

func openaiTurn(t *chat.Turn) openai.ChatCompletionMessageParamUnion {
	var m openai.ChatCompletionAssistantMessageParam
	if t.Text != "" {
		m.Content.OfString = openai.String(t.Text)
	}
	for i, c := range t.Calls {
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: callID(c, i),
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: wireName(c.Name), Arguments: string(inputObject(c)),
				},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &m}
}
