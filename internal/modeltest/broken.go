package modeltest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Broken is an answer of a provider that breaks its own format.
type Broken struct {
	Reply Reply
	// Asked holds, for each call that the answer has an entry for, its tool and arguments as "name arguments". The arguments of each call
	// are different.
	Asked map[string]bool
	// Noise reports that bytes of the answer were changed, so that its calls may be other ones.
	Noise bool
}

// NewBroken returns the answer for a seed in a wire format, with calls of a tool as the model writes its name. n tells the calls of answers
// apart that are part of one conversation.
func NewBroken(seed uint64, wire Wire, tool string, n int) Broken {
	b := &breaker{Rand: rand.New(rand.NewPCG(seed, 1)), tool: tool, n: n, asked: map[string]bool{}}
	var body string
	switch {
	case wire == Anthropic && b.one(4):
		body = b.anthropicDocument()
	case wire == Anthropic:
		body = b.stream(b.anthropic(), "")
	case b.one(4):
		body = b.openaiDocument()
	default:
		body = b.stream(b.openai(), "[DONE]")
	}
	out := Broken{Asked: b.asked}
	if b.one(5) {
		body = body[:b.IntN(len(body)+1)]
	}
	if b.one(8) {
		raw := []byte(body)
		for range 1 + b.IntN(3) {
			if len(raw) > 0 {
				raw[b.IntN(len(raw))] = byte(b.IntN(256))
			}
		}
		body, out.Noise = string(raw), true
	}
	out.Reply = Reply{Body: body, Empty: body == "", ContentType: pick(b, "text/event-stream", "application/json", "text/plain", "")}
	return out
}

// breaker makes the parts of a broken answer.
type breaker struct {
	*rand.Rand

	tool  string
	n     int
	asked map[string]bool
}

// one reports true once in n times.
func (b *breaker) one(n int) bool { return b.IntN(n) == 0 }

func pick[T any](b *breaker, list ...T) T { return list[b.IntN(len(list))] }

// call returns new arguments.
func (b *breaker) call() string {
	key := fmt.Sprintf("%d.%d", b.n, len(b.asked)+1)
	args := fmt.Sprintf(`{"value":"%s %s"}`, key, pick(b, "a", "é", "🙂", `\ud83d\ude42`, `\n`, "{}"))
	b.asked[b.tool+" "+args] = true
	switch b.IntN(20) {
	case 0:
		return fmt.Sprintf(`{"value":"%s","value":2}`, key)
	case 1:
		return fmt.Sprintf(`{"value":"%s \ud83d"}`, key)
	case 2:
		return fmt.Sprintf(`{"value":1e400,"n":"%s"}`, key)
	case 3:
		return args[:len(args)-1]
	}
	return args
}

// text returns a text, or "".
func (b *breaker) text() string {
	return pick(b, "", "", " ", "Hello.", "Grüße, 你好 🙂", strings.Repeat("long 🙂 ", 20))
}

// stop returns why the answer ended, as JSON.
func (b *breaker) stop(usual ...string) string {
	if b.one(2) {
		return strconv.Quote(pick(b, usual...))
	}
	return pick(b, `"error"`, `"xyz"`, `"function_call_filter: MALFORMED_FUNCTION_CALL"`, `"network_error"`, `"length"`, `"max_tokens"`, "null", "7", `""`)
}

// id returns the id of a call, as JSON.
func (b *breaker) id() string {
	return pick(b, `"call_1"`, `"call_1"`, `"call_2"`, `"toolu_1"`, `"a:b/c"`, `"a_b_c"`, `""`, "null", "7", strconv.Quote(fmt.Sprint("id_", b.Uint32())))
}

func (b *breaker) usage() string {
	return pick(b, `{}`, `null`, `{"prompt_tokens":10.0,"completion_tokens":"5"}`, `{"input_tokens":-1,"output_tokens":1e300}`, `"none"`, `[1]`)
}

// failure returns an error as JSON.
func (b *breaker) failure() string {
	return pick(b, `{"message":"upstream"}`, `"upstream"`, `{"type":"overloaded_error","message":"busy"}`, `{"code":502}`)
}

// split returns the pieces of a text as JSON strings. A cut may be within a character: between the halves of its surrogate pair, or between
// its bytes.
func (b *breaker) split(text string) []string {
	var list []string
	add := func(s string) { list = append(list, quoted(s)) }
	for len(text) > 0 {
		at := min(len(text), 1+b.IntN(20))
		if r, size := utf8.DecodeRuneInString(text); r > 0xFFFF && b.one(2) {
			high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			list = append(list, fmt.Sprintf(`"\u%x"`, high), fmt.Sprintf(`"\u%x"`, low))
			text = text[size:]
			continue
		}
		add(text[:at])
		text = text[at:]
	}
	return list
}

// quoted returns a text as a JSON string, its bytes as they are.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// stream returns events with an error among them now and then, and with an end unless it is lost.
func (b *breaker) stream(list []string, end string) string {
	if b.one(8) {
		at := b.IntN(len(list) + 1)
		list = append(list[:at:at], append([]string{`{"type":"error","error":` + b.failure() + `}`}, list[at:]...)...)
	}
	var s strings.Builder
	for _, data := range list {
		if b.one(20) {
			s.WriteString(": a comment\n\n")
		}
		fmt.Fprintf(&s, "data: %s\n\n", data)
	}
	if b.one(20) {
		s.WriteString("event: error\ndata: gateway timeout\n\n")
	}
	if end != "" && !b.one(5) {
		fmt.Fprintf(&s, "data: %s\n\n", end)
	}
	return s.String()
}

func (b *breaker) openai() []string {
	var list []string
	choice := func(members string) { list = append(list, `{"choices":[{`+pick(b, `"index":0,`, "")+members+`}]}`) }
	parts := b.one(4)
	for _, p := range b.split(b.text()) {
		if parts {
			p = `[{"type":"thinking","thinking":"hm"},{"type":"text","text":` + p + `}]`
		}
		choice(`"delta":{"content":` + p + `}`)
	}
	changing, index := b.one(4), pick(b, "same", "right", "right", "missing", "text")
	for i := range b.IntN(4) {
		at := map[string]string{"same": `"index":0,`, "right": fmt.Sprintf(`"index":%d,`, i), "text": fmt.Sprintf(`"index":"%d",`, i)}[index]
		id := b.id()
		args := b.call()
		pieces := b.split(args)
		if b.one(8) && json.Valid([]byte(args)) {
			pieces = []string{args}
		}
		for j, p := range pieces {
			name := ""
			if j == 0 {
				name = `"name":"` + b.tool + `",`
			}
			if changing {
				id = b.id()
			}
			choice(`"delta":{"tool_calls":[{` + at + `"id":` + id + `,"function":{` + name + `"arguments":` + p + `}}]}`)
		}
	}
	if !b.one(8) {
		choice(`"delta":{},"finish_reason":` + b.stop("stop", "tool_calls") + pick(b, "", "", `,"native_finish_reason":"network_error"`))
	}
	return append(list, `{"choices":[],"usage":`+b.usage()+`}`)
}

func (b *breaker) openaiDocument() string {
	var calls []string
	for range b.IntN(4) {
		calls = append(calls, `{"id":`+b.id()+`,"function":{"name":"`+b.tool+`","arguments":`+quoted(b.call())+`}}`)
	}
	content := quoted(b.text())
	content = pick(b, content, content, `[{"type":"text","text":`+content+`}]`, "null", "7")
	failure := pick(b, "", "", "", `,"error":`+b.failure())
	return `{"choices":[{"message":{"content":` + content + `,"tool_calls":[` + strings.Join(calls, ",") + `]},"finish_reason":` +
		b.stop("stop", "tool_calls") + failure + `}],"usage":` + b.usage() + `}`
}

func (b *breaker) anthropic() []string {
	list := []string{`{"type":"message_start","message":{"model":"m","content":[],"usage":` + b.usage() + `}}`}
	index, zero := 0, b.one(4)
	block := func(start, kind, member string, pieces []string) {
		at := strconv.Itoa(index)
		if index++; zero {
			at = "0"
		}
		list = append(list, `{"type":"content_block_start","index":`+at+`,"content_block":`+start+`}`)
		for _, p := range pieces {
			list = append(list, `{"type":"content_block_delta","index":`+at+`,"delta":{"type":"`+kind+`","`+member+`":`+p+`}}`)
		}
		if !b.one(8) {
			list = append(list, `{"type":"content_block_stop","index":`+at+`}`)
		}
	}
	if text := b.text(); text != "" {
		block(`{"type":"text","text":""}`, "text_delta", "text", b.split(text))
	}
	for range b.IntN(4) {
		block(`{"type":"tool_use","id":`+b.id()+`,"name":"`+b.tool+`","input":{}}`, "input_json_delta", "partial_json", b.split(b.call()))
	}
	list = append(list, `{"type":"message_delta","delta":{"stop_reason":`+b.stop("end_turn", "tool_use")+`},"usage":`+b.usage()+`}`)
	if !b.one(8) {
		list = append(list, `{"type":"message_stop"}`)
	}
	return list
}

func (b *breaker) anthropicDocument() string {
	var blocks []string
	if text := b.text(); text != "" {
		blocks = append(blocks, `{"type":"text","text":`+quoted(text)+`}`)
	}
	for range b.IntN(4) {
		args := b.call()
		if !json.Valid([]byte(args)) {
			args = "{}"
		}
		blocks = append(blocks, `{"type":"tool_use","id":`+b.id()+`,"name":"`+b.tool+`","input":`+args+`}`)
	}
	return `{"type":"message","content":[` + strings.Join(blocks, ",") + `],"stop_reason":` + b.stop("end_turn", "tool_use") + `,"usage":` + b.usage() + `}`
}
