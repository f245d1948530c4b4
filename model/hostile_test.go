package model_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/modeltest"
)

// hostile is an answer as no provider should send it, and what becomes of it.
type hostile struct {
	name string
	// file is in testdata/hostile; otherwise body is sent.
	file, body string

	text, warning string
	// calls are "name input", or "name !malformed".
	calls  []string
	code   jig.Code
	reason string
}

// stream returns events as OpenAI sends them. [DONE] is added.
func stream(chunks ...string) string {
	return "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func stop(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func piece(members string) string { return delta(`{"tool_calls":[{` + members + `}]}`) }

func document(message, more string) string { return `{"choices":[{"message":` + message + more + `}]}` }

// events returns events as Anthropic sends them, from message_start to message_stop.
func events(list ...string) string {
	list = append([]string{`{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":1}}}`}, list...)
	var b strings.Builder
	for _, data := range append(list, `{"type":"message_stop"}`) {
		b.WriteString("data: " + data + "\n\n")
	}
	return b.String()
}

func block(index, members string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{` + members + `}}`
}

func blockDelta(index, kind, members string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"` + kind + `",` + members + `}}`
}

func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}`
}

func hostileOpenAI() []hostile {
	const read = `"function":{"name":"file__read","arguments":`
	return []hostile{
		{name: "an id for two calls, stream", file: "01a-same-call-id-stream.sse", calls: []string{
			`file.write {"path":"out/one.txt","content":"one"}`, `file.write {"path":"out/two.txt","content":"two"}`,
		}},
		{name: "an id for two calls, document", file: "01b-same-call-id-document.json", calls: []string{
			`file.write {"path":"out/three.txt","content":"three"}`, `file.write {"path":"out/four.txt","content":"four"}`,
		}},
		{
			name: "an id and an index for two whole calls", body: stream(
				piece(`"index":0,"id":"a",`+read+`"{\"n\":1}"}`), piece(`"index":0,"id":"a",`+read+`"{\"n\":2}"}`), stop("tool_calls")),
			calls: []string{`file.read {"n":1}`, `file.read {"n":2}`},
		},
		{
			name: "an id for calls of two tools", body: stream(
				piece(`"index":0,"id":"a",`+read+`"{\"n\":1}"}`), piece(`"index":0,"id":"a","function":{"name":"b__c","arguments":"{}"}`), stop("tool_calls")),
			calls: []string{`file.read {"n":1}`, `b.c {}`},
		},
		{name: "another id in every piece", file: "14-new-id-in-every-piece.sse", calls: []string{`file.read {"path":"a.txt"}`}},
		{
			name: "an id that the pieces of two calls share", body: stream(
				piece(`"index":0,"id":"b",`+read+`"{\"n\":1}"}`), piece(`"index":0,"id":"a",`+read+`"{\"n\":\"2"}`),
				piece(`"index":0,"id":"b","function":{"arguments":"3"}`), piece(`"index":0,"id":"c","function":{"arguments":"4\"}"}`), stop("tool_calls")),
			calls: []string{`file.read {"n":1}`, `file.read {"n":"234"}`},
		},
		{name: "name in every piece", body: stream(
			piece(`"index":0,"id":"a",`+read+`""}`), piece(`"index":0,"id":"a",`+read+`"{\"n\""}`), piece(`"index":0,"id":"a",`+read+`":1}"}`),
			piece(`"index":0,"id":"a",`+read+`""}`), stop("tool_calls")), calls: []string{`file.read {"n":1}`}},
		{
			name: "index only in the first piece", body: stream(
				piece(`"index":0,"id":"a",`+read+`"{}"}`), piece(`"index":1,"id":"b",`+read+`"{\"n\""}`), piece(`"function":{"arguments":":1}"}`), stop("tool_calls")),
			calls: []string{`file.read {}`, `file.read {"n":1}`},
		},
		{
			name: "an index that changes", body: stream(
				piece(`"index":0,"id":"a",`+read+`"{\"n\""}`), piece(`"index":1,"id":"a","function":{"arguments":":1}"}`), stop("tool_calls")),
			calls: []string{`file.read {"n":1}`},
		},
		{name: "id and index of other types", body: stream(piece(`"index":"0","id":7,`+read+`{"n":1}}`), stop("tool_calls")), calls: []string{`file.read {"n":1}`}},
		{
			name: "a call without a name", body: stream(piece(`"index":0,"id":"a","function":{"arguments":"{}"}`), stop("tool_calls")),
			code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer,
		},
		{
			name: "a name twice in the arguments", body: stream(piece(`"index":0,"id":"a",`+read+`"{\"n\":1,\"n\":2}"}`), stop("tool_calls")),
			calls: []string{`file.read {"n":1,"n":2}`},
		},

		{name: "finish_reason error after a text", file: "02a-finish-error-stream.sse", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "error in a choice", file: "02b-finish-error-document.json", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "native network_error", file: "02c-network-error.sse", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "malformed function call", file: "03-malformed-function-call.sse", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "error at the top", body: stream(delta(`{"content":"Hal"}`), `{"error":{"message":"upstream"}}`), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{
			name: "error in a choice of a stream", body: stream(delta(`{"content":"Hal"}`), `{"choices":[{"index":0,"delta":{},"error":{"code":502,"message":"x"}}]}`),
			code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer,
		},
		{name: "event error", body: "data: " + delta(`{"content":"Hal"}`) + "\n\nevent: error\ndata: gateway timeout\n\n", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "event error without data", body: "data: " + delta(`{"content":"Hal"}`) + "\n\nevent: error\n\n", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "error with a status of its own", body: `{"error":{"code":429,"message":"slow down"}}`, code: jig.CodeRateLimited},
		{name: "error with a word", body: `{"error":{"code":"insufficient_quota","message":"pay"}}`, code: jig.CodeBudgetExhausted, reason: jig.ReasonProviderQuota},

		{name: "unknown end after a text", body: stream(delta(`{"content":"Hello."}`), stop("xyz")), text: "Hello.", warning: "xyz"},
		{name: "unknown end after a call", body: stream(piece(`"index":0,"id":"a",`+read+`"{}"}`), stop("xyz")), calls: []string{`file.read {}`}, warning: "xyz"},
		{name: "no end after the text of a document", body: document(`{"content":"Hello."}`, ""), text: "Hello.", warning: `""`},
		{name: "unknown end and nothing else", body: stream(stop("xyz")), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "nothing", body: stream(stop("stop")), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},
		{name: "calls that are missing", body: stream(stop("tool_calls")), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},
		{name: "white space", body: document(`{"content":" \n"}`, `,"finish_reason":"stop"`), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},
		{name: "reasoning only", body: stream(delta(`{"reasoning_content":"Hm."}`), stop("stop")), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},

		{name: "parts, stream", file: "04a-content-parts-stream.sse", text: "Good morning, Ana."},
		{name: "parts, document", file: "04b-content-parts-document.json", text: "Good morning, Ana."},
		{name: "content is a number", body: document(`{"content":7}`, `,"finish_reason":"stop"`), code: jig.CodeInvalidOutput},
		{name: "choices are an object", body: `{"choices":{"0":{}}}`, code: jig.CodeInvalidOutput},
		{name: "no choices", body: `{"answer":"Hello."}`, code: jig.CodeInvalidOutput},
		{name: "a page", body: "<html>Sign in</html>", code: jig.CodeInvalidOutput},
		{name: "a list", body: `[{"choices":[]}]`, code: jig.CodeInvalidOutput},
		{name: "no body", body: "", code: jig.CodeUnavailable},
		{name: "half a document", body: `{"choices":[{"mess`, code: jig.CodeUnavailable},

		{name: "an emoji in two pieces", file: "15-emoji-split-between-pieces.sse", text: "Hi 🙂!", calls: []string{`file.write {"path":"out/emoji.txt","content":"🙂"}`}},
		{name: "the bytes of an emoji in two pieces", body: stream(delta("{\"content\":\"Hi \xF0\x9F\"}"), delta("{\"content\":\"\x99\x82!\"}"), stop("stop")), text: "Hi 🙂!"},
		{name: "half an emoji in a text", body: stream(delta(`{"content":"Hi \ud83d"}`), delta(`{"content":"!"}`), stop("stop")), text: "Hi �!"},
		{name: "half an emoji at the end", body: stream(delta(`{"content":"Hi \ud83d"}`), stop("stop")), text: "Hi �"},
		{name: "half an emoji in arguments", body: stream(piece(`"index":0,"id":"a",`+read+`"{\"n\":\"\ud83d\"}"}`), stop("tool_calls")), calls: []string{`file.read {"n":"\ud83d"}`}},
		{
			name: "bytes that are no text in arguments", body: stream(piece("\"index\":0,\"id\":\"a\","+read+"\"{\\\"n\\\":\\\"\xff\\\"}\"}"), stop("tool_calls")),
			calls: []string{`file.read !{"n":"�"}`},
		},

		{name: "counts as floats", file: "18-token-counts-as-floats.sse", text: "Hello."},
		{name: "counts that are no counts", body: stream(delta(`{"content":"Hello."}`), stop("stop"), `{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":[1]}}`), text: "Hello."},
		{name: "usage that is a text", body: document(`{"content":"Hello."}`, `,"finish_reason":"stop"}],"usage":"none","x":[{`), text: "Hello."},
	}
}

func hostileAnthropic() []hostile {
	text := block("0", `"type":"text","text":""`)
	call := func(index, id string) string {
		return block(index, `"type":"tool_use","id":"`+id+`","name":"file__read","input":{}`)
	}
	args := func(index, json string) string {
		return blockDelta(index, "input_json_delta", `"partial_json":"`+json+`"`)
	}
	return []hostile{
		{name: "half a surrogate pair", file: "05-half-surrogate-in-input.sse", text: "I ask first.", calls: []string{`person.ask {"question":"Which list \ud99c do you mean?"}`}},
		{name: "an id that is used in every turn", file: "06-call-id-used-again.sse", calls: []string{`file.list {"path":"."}`}},
		{
			name: "an id for two calls", body: events(call("0", "a"), args("0", `{\"n\":1}`), call("1", "a"), args("1", `{\"n\":2}`), stopped("tool_use")),
			calls: []string{`file.read {"n":1}`, `file.read {"n":2}`},
		},
		{
			name: "an index for two calls", body: events(call("0", "a"), args("0", `{\"n\":1}`), call("0", "b"), args("0", `{\"n\":2}`), stopped("tool_use")),
			calls: []string{`file.read {"n":1}`, `file.read {"n":2}`},
		},
		{
			name: "an index of another block", body: events(text, blockDelta("0", "text_delta", `"text":"Hm."`), call("1", "a"), args("0", `{\"n\":1}`), stopped("tool_use")),
			text: "Hm.", calls: []string{`file.read {"n":1}`},
		},
		{name: "arguments without a call", body: events(args("0", `{}`), stopped("tool_use")), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "a call without a name", body: events(block("0", `"type":"tool_use","id":"a","input":{}`), stopped("tool_use")), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "an emoji in two pieces", body: events(text, blockDelta("0", "text_delta", `"text":"Hi \ud83d"`), blockDelta("0", "text_delta", `"text":"\ude42!"`), stopped("end_turn")), text: "Hi 🙂!"},
		{name: "stop_reason error", body: events(text, blockDelta("0", "text_delta", `"text":"Hal"`), stopped("error")), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "overload as an event", body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n", code: jig.CodeUnavailable, reason: jig.ReasonProviderFailed},
		{name: "error as a document", body: `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, code: jig.CodeRateLimited},
		{name: "error in the message", body: `data: {"type":"message_start","message":{"error":{"message":"x"}}}` + "\n\n", code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "nothing", body: events(stopped("end_turn")), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},
		{name: "reasoning only", body: events(block("0", `"type":"thinking","thinking":"Hm.","signature":"x"`), stopped("end_turn")), code: jig.CodeUnavailable, reason: jig.ReasonNoAnswer},
		{name: "unknown end after a text", body: events(text, blockDelta("0", "text_delta", `"text":"Hello."`), stopped("xyz")), text: "Hello.", warning: "xyz"},
		{name: "no end after a text", body: events(text, blockDelta("0", "text_delta", `"text":"Hello."`)), text: "Hello.", warning: `""`},
		{name: "unknown end and nothing else", body: events(stopped("xyz")), code: jig.CodeUnavailable, reason: jig.ReasonBrokenAnswer},
		{name: "counts as floats", body: events(text, blockDelta("0", "text_delta", `"text":"Hello."`), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2.0}}`), text: "Hello."},
		{name: "content is a text", body: `{"type":"message","content":"Hello.","stop_reason":"end_turn"}`, code: jig.CodeInvalidOutput},
		{name: "neither message nor error", body: `{"answer":"Hello."}`, code: jig.CodeInvalidOutput},
		{name: "a page", body: "<html>Sign in</html>", code: jig.CodeInvalidOutput},
		{name: "no body", body: "", code: jig.CodeUnavailable},
	}
}

// Every hostile answer has the outcome that docs/models.md promises, whatever media type it comes with.
func TestHostileAnswers_HaveTheirOutcome(t *testing.T) {
	t.Parallel()
	for provider, rows := range map[string][]hostile{"openai": hostileOpenAI(), "anthropic": hostileAnthropic()} {
		for _, row := range rows {
			if row.file != "" {
				raw, err := os.ReadFile(filepath.Join("testdata", "hostile", row.file))
				require.NoError(t, err)
				row.body = string(raw)
			}
			for _, media := range []string{"text/event-stream", "application/json", "text/plain", ""} {
				t.Run(provider+"/"+row.name+"/"+media, func(t *testing.T) {
					t.Parallel()
					s := modeltest.New(t, modeltest.Reply{Body: row.body, ContentType: media, Empty: row.body == ""})
					shown := ""
					turn, err := router(s).Answer(t.Context(), request(provider), func(p string) { shown += p })
					require.Equal(t, row.code, jig.CodeOf(err), "%v", err)
					if row.code != "" {
						if row.reason != "" {
							require.Equal(t, row.reason, jig.AsError(err).Reason)
						}
						return
					}
					require.Equal(t, row.text, turn.Text)
					require.Equal(t, strings.TrimSuffix(row.text, "�"), strings.TrimSuffix(shown, "�"))
					require.Equal(t, row.calls, written(turn))
					require.Equal(t, row.warning != "", turn.Warning != "", turn.Warning)
					require.Contains(t, turn.Warning, row.warning)
				})
			}
		}
	}
}

// written returns the calls of a turn as "name input".
func written(turn chat.Turn) (list []string) {
	for _, c := range turn.Calls {
		if c.Malformed != "" {
			c.Malformed = "!" + c.Malformed
		}
		list = append(list, c.Name+" "+string(c.Input)+c.Malformed)
	}
	return list
}

// answering makes the results of a turn's calls, so that the turn can be sent back.
func answering(turn chat.Turn) chat.Exchange {
	x := chat.Exchange{Messages: user("hello"), Turn: &turn}
	for i, c := range turn.Calls {
		x.Calls = append(x.Calls, jig.Call{ID: jig.CallID(1, i+1), ProviderID: c.ProviderID, Result: &jig.ToolResult{Success: true, Summary: c.ProviderID}})
	}
	return x
}

// Whatever a provider answered, the next request is one that it accepts: ids are unique, and nothing that cannot be read goes back.
func TestHostileAnswers_AreSentBackCleaned(t *testing.T) {
	t.Parallel()
	for provider, rows := range map[string][]hostile{"openai": hostileOpenAI(), "anthropic": hostileAnthropic()} {
		for _, row := range rows {
			if row.code != "" {
				continue
			}
			if row.file != "" {
				raw, err := os.ReadFile(filepath.Join("testdata", "hostile", row.file))
				require.NoError(t, err)
				row.body = string(raw)
			}
			for _, next := range []string{"openai", "anthropic"} {
				t.Run(provider+"/"+row.name+"/"+next, func(t *testing.T) {
					t.Parallel()
					s := modeltest.New(t, modeltest.Reply{Body: row.body}, modeltest.Reply{Body: row.body}, modeltest.Text("ok"))
					r := router(s)
					var said []chat.Exchange
					for range 2 { // the same ids come twice
						turn, err := r.Answer(t.Context(), request(provider, append(said, chat.Exchange{Messages: user("go")})...), nil)
						require.NoError(t, err)
						said = append(said, answering(turn))
					}
					_, err := r.Answer(t.Context(), request(next, append(said, chat.Exchange{Messages: user("go")})...), nil)
					require.NoError(t, err, "the stand-in refuses what the providers refuse")
					for _, turn := range s.Requests()[2].Turns {
						if turn.Role == "tool" {
							require.Equal(t, turn.CallID, turn.Text, "each result names its own call")
						}
					}
				})
			}
		}
	}
}

// A stream that ends anywhere is either an error or the whole answer.
func TestDisconnect_AtEveryByte(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"openai": stream(delta(`{"content":"Hi 🙂"}`), piece(`"index":0,"id":"a","function":{"name":"file__read","arguments":"{\"n\":1}"}`), stop("tool_calls"),
			`{"choices":[],"usage":{"prompt_tokens":1}}`),
		"anthropic": events(block("0", `"type":"text","text":""`), blockDelta("0", "text_delta", `"text":"Hi 🙂"`),
			block("1", `"type":"tool_use","id":"a","name":"file__read","input":{}`), blockDelta("1", "input_json_delta", `"partial_json":"{\"n\":1}"`), stopped("tool_use")),
	}
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		body := whole[provider]
		s := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Body: body[:r.Number-1], Empty: r.Number == 1}
		})
		r, complete := router(s), 0
		for range len(body) + 1 {
			turn, err := r.Answer(t.Context(), request(provider), nil)
			if err != nil {
				require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err), "%v", err)
				continue
			}
			complete++
			require.Equal(t, "Hi 🙂", turn.Text)
			require.Equal(t, []string{`file.read {"n":1}`}, written(turn))
		}
		require.Positive(t, complete)
	})
}

func TestProviderThatWantsALongWait_IsFinal(t *testing.T) {
	t.Parallel()
	long := func(status int, header, value string) modeltest.Reply {
		return modeltest.Reply{Status: status, Message: "later", Header: map[string]string{header: value}}
	}
	quota := `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`
	for name, row := range map[string]struct {
		reply  modeltest.Reply
		reason string
	}{
		"a day":        {long(429, "Retry-After", "86400"), jig.ReasonProviderWait},
		"a year":       {long(429, "Retry-After", "31536000"), jig.ReasonProviderWait},
		"a day, in ms": {long(503, "Retry-After-Ms", "86400000"), jig.ReasonProviderWait},
		"a date":       {long(529, "Retry-After", time.Now().Add(48*time.Hour).UTC().Format(http.TimeFormat)), jig.ReasonProviderWait},
		"a quota":      {modeltest.Reply{Status: 429, Body: quota}, jig.ReasonProviderQuota},
		"unpaid":       {modeltest.Fail(402, "pay"), jig.ReasonProviderQuota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWires(t, func(t *testing.T, provider string) {
				t.Helper()
				_, err := router(modeltest.New(t, row.reply)).Answer(t.Context(), request(provider), nil)
				require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err))
				require.Equal(t, row.reason, jig.AsError(err).Reason)
				require.NotEmpty(t, jig.AsError(err).Hint)
			})
		})
	}
}
