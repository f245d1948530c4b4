package modeltest

func (r Reply) openaiFinish() string {
	switch {
	case r.CutOff:
		return "length"
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r Reply) openaiUsage() object {
	prompt := r.Usage.Input + r.Usage.CacheRead
	return object{
		"prompt_tokens": prompt, "completion_tokens": r.Usage.Output, "total_tokens": prompt + r.Usage.Output,
		"prompt_tokens_details": object{"cached_tokens": r.Usage.CacheRead},
	}
}

func (r Reply) openaiCall(i int, args string, first bool) object {
	index := i
	if r.ZeroIndex {
		index = 0
	}
	out := object{"index": index, "function": object{"arguments": args}}
	if first {
		out["type"] = "function"
		out["function"] = object{"name": r.Calls[i].Name, "arguments": args}
	}
	// Ollama sends a call in one piece. Servers that send several pieces give the id with the first, or with every piece if the index does
	// not distinguish the calls.
	if id := r.Calls[i].ID; id != "" && (first || r.ZeroIndex) {
		out["id"] = id
	}
	return out
}

func (r Reply) openaiDocument(request Request) any {
	message := object{"role": "assistant", "content": r.Text}
	if r.Refusal != "" {
		message["refusal"] = r.Refusal
	}
	var calls []object
	for i, c := range r.Calls {
		call := r.openaiCall(i, c.Args, true)
		delete(call, "index")
		calls = append(calls, call)
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request.Model, "usage": r.openaiUsage(),
		"choices": []object{{"index": 0, "message": message, "finish_reason": r.openaiFinish()}},
	}
}

func (r Reply) openaiEvents(request Request) []event {
	var events []event
	chunk := func(choices []object, usage any) {
		events = append(events, event{"", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request.Model, "choices": choices, "usage": usage,
		}})
	}
	delta := func(d object) { chunk([]object{{"index": 0, "delta": d, "finish_reason": nil}}, nil) }
	delta(object{"role": "assistant", "content": ""})
	if r.Text != "" {
		for _, p := range pieces(r.Text, r.Piece) {
			delta(object{"content": p})
		}
	}
	if r.Refusal != "" {
		for _, p := range pieces(r.Refusal, r.Piece) {
			delta(object{"refusal": p})
		}
	}
	for i, c := range r.Calls {
		for n, p := range pieces(c.Args, r.Piece) {
			delta(object{"tool_calls": []object{r.openaiCall(i, p, n == 0)}})
		}
	}
	chunk([]object{{"index": 0, "delta": object{}, "finish_reason": r.openaiFinish()}}, nil)
	chunk([]object{}, r.openaiUsage())
	return append(events, event{"", "[DONE]"})
}
