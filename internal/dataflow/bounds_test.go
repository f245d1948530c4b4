package dataflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/dataflow"
)

// Whatever the texts and the input are, tracing ends, gives the same answer again, and finds a value that is a whole untrusted text.
func FuzzTrace(f *testing.F) {
	f.Add("Book a room", "to 2024-05-05T10:00:00Z", "May 5th 10am", `{"v":{"type":"string"}}`)
	f.Add("", "www.evil.test/\u200b", "https://a@b/%2f", `{"$ref":"#"}`)
	f.Add("12:00 one hour", "ß ﬃ 東京 half an hour", "1. 2. 3.", `{"allOf":[{"$ref":"#/allOf/0"}]}`)
	f.Fuzz(func(t *testing.T, typed, read, value, schema string) {
		k := dataflow.Knowledge{Typed: []string{typed}, Untrusted: []dataflow.Result{{Call: "1", Text: read}}}
		tracer := dataflow.NewTracer(k)
		for _, v := range []any{value, read, map[string]any{value: []any{read}}} {
			input, err := json.Marshal(map[string]any{"v": v})
			require.NoError(t, err)
			require.Equal(t, tracer.Trace(input, json.RawMessage(schema), nil), dataflow.NewTracer(k).Trace(input, json.RawMessage(schema), nil))
		}
		tracer.Trace(json.RawMessage(value), json.RawMessage(read), nil)
		if found := dataflow.NewTracer(dataflow.Knowledge{Untrusted: k.Untrusted}); judge(found, quoted(t, read), `{"x-destination":true}`) == computed {
			t.Fatalf("%q is taken for a value of the model", read)
		}
	})
}

// quoted returns a text as JSON.
func quoted(t *testing.T, text string) string {
	t.Helper()
	body, err := json.Marshal(text)
	require.NoError(t, err)
	return string(body)
}

// Hostile sizes end in findings, not in a process without memory: the lists are bounded, and what takes too much work counts as untrusted.
func TestTrace_IsBounded(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("a ", 1<<20)
	many := strings.Builder{}
	for i := range 200_000 {
		fmt.Fprintf(&many, "w%d ", i)
	}
	tracer := dataflow.NewTracer(dataflow.Knowledge{
		Typed:     []string{same[:1000] + "b"},
		Trusted:   []dataflow.Result{{Call: "1.1", Text: many.String()}, {Call: "1.2", Text: same}},
		Untrusted: []dataflow.Result{{Call: "2.1", Text: same + "c"}, {Call: "2.2", Text: strings.Repeat("[", 100_000)}},
	})
	for name, value := range map[string]any{
		"one long value":      strings.Repeat("a ", 50_000) + "b",
		"many values":         strings.Split(strings.Repeat("c a,", 20_000), ","),
		"a long word":         strings.Repeat("x", 1<<20),
		"a long URL":          "https://" + strings.Repeat("x.", 1<<19),
		"only punctuation":    strings.Repeat("@.:/-", 1<<18) + "c",
		"quotes in quotes":    strings.Repeat(`\"`, 1<<18) + "c",
		"times and durations": strings.Repeat("12:00 one hour ", 1<<15) + "c",
	} {
		input, err := json.Marshal(map[string]any{"v": value})
		require.NoError(t, err)
		got := tracer.Trace(input, json.RawMessage(`{"properties":{"v":{"x-destination":true}}}`), nil)
		require.NotEmpty(t, got.Untrusted, name)
		require.LessOrEqual(t, len(got.Untrusted), 100, name)
		for _, a := range got.Untrusted {
			require.LessOrEqual(t, len([]rune(a.Value)), 120, name)
			require.LessOrEqual(t, len(a.Calls), 10, name)
		}
	}
	properties := json.RawMessage(`{"properties":{"v":{}}}`)
	deep := `{"v":` + strings.Repeat(`[`, 5000) + `"a"` + strings.Repeat(`]`, 5000) + `}`
	require.Len(t, tracer.Trace(json.RawMessage(deep), properties, nil).Untrusted, 1, "what is nested too deeply is untrusted")
	require.NotEmpty(t, tracer.Trace(json.RawMessage(`{"v":"c"}`), json.RawMessage(`{"properties":{"v":{"$ref":"#/properties/v"}}}`), nil).Untrusted)
}

// A session may read more than is compared. Then nothing counts as the model's own, and trusted texts that were left out trace nothing.
func TestTrace_TextsThatDoNotFit(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("word ", 1<<20)
	require.Equal(t, untrusted, judge(dataflow.NewTracer(dataflow.Knowledge{
		Typed: []string{"pay Bob"}, Untrusted: []dataflow.Result{{Call: "1.1", Text: large}},
	}), `4242`, `{"type":"number"}`))
	require.Equal(t, untrusted, judge(dataflow.NewTracer(dataflow.Knowledge{
		Typed: []string{"pay Bob"}, Trusted: []dataflow.Result{{Call: "1.1", Text: large + "alice"}},
	}), `"alice"`, `{}`))
}

// BenchmarkTrace measures one admission in a session with 100 results of 10 KB, half of them untrusted: preparing the texts, and judging one
// call.
func BenchmarkTrace(b *testing.B) {
	var k dataflow.Knowledge
	k.Typed = []string{"Send the summary of invoice INV-77 to bob@example.org on May 15th, 2024 at 10:00 for one hour."}
	for i := range 100 {
		var text strings.Builder
		for line := 0; text.Len() < 10_000; line++ {
			fmt.Fprintf(&text, `{"id":%d,"date":"2024-05-%02d","text":"Line %d of report %d says that user%d@example.org paid %d.50 euros."},`,
				line, 1+line%28, line, i, line*i, line*7)
		}
		r := dataflow.Result{Call: fmt.Sprint("1.", i), Tool: "web.read", Text: "[" + strings.TrimSuffix(text.String(), ",") + "]"}
		if i%2 == 0 {
			k.Untrusted = append(k.Untrusted, r)
		} else {
			k.Trusted = append(k.Trusted, r)
		}
	}
	input := json.RawMessage(`{"to":["bob@example.org","user7@example.org"],"subject":"Summary of INV-77","at":"2024-05-15 11:00",
		"body":"Line 3 of report 9 says that the invoice was paid, so here is a summary of what the reports say about it.","amount":12.5}`)
	schema := json.RawMessage(`{"properties":{"to":{"x-destination":true},"amount":{"type":"number"}}}`)
	b.Run("prepare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dataflow.NewTracer(k)
		}
	})
	tracer := dataflow.NewTracer(k)
	b.Run("judge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tracer.Trace(input, schema, nil)
		}
	})
}
