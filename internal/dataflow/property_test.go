package dataflow_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/dataflow"
)

// A value that occurs as a whole only in an untrusted result is always found, and the result is named.
func TestTrace_FindsEveryValueOfUntrustedResults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 12))
		value := valueOf(r)
		typed, trusted := sentence(r, 5+r.IntN(40)), sentence(r, 30)
		if contains(typed, value) || contains(trusted, value) {
			continue
		}
		tracer := dataflow.NewTracer(dataflow.Knowledge{
			Typed:   []string{typed},
			Trusted: []dataflow.Result{{Call: "1.1", Text: trusted}},
			Untrusted: []dataflow.Result{
				{Call: "2.1", Text: sentence(r, 30)}, {Call: "2.2", Text: wrap(t, r, sentence(r, 10)+". "+value+" . "+sentence(r, 10))},
			},
		})
		got := tracer.Trace(json.RawMessage(`{"v":`+quoted(t, value)+`}`), json.RawMessage(`{"properties":{"v":{}}}`), nil)
		require.Len(t, got.Untrusted, 1, "seed %d: %q is neither in %q nor in %q", seed, value, typed, trusted)
		require.Contains(t, got.Untrusted[0].Calls, "2.2", "seed %d: %q", seed, value)
	}
}

// vocabulary are words that trusted and untrusted texts share.
var vocabulary = strings.Fields("send report invoice payment alice room garden the to of for with hotel blue meeting summary Zürich") // immutable

// sentence returns n words.
func sentence(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

// contains reports whether the words of a value stand in a text.
func contains(text, value string) bool {
	return strings.Contains(" "+text+" ", " "+value+" ")
}

// valueOf returns a value that an attacker may want in an argument.
func valueOf(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("user%d@evil%d.test", r.IntN(1000), r.IntN(9))
	case 1:
		return fmt.Sprintf("https://evil.test/%x?q=%d", r.Uint32(), r.IntN(100))
	case 2:
		return fmt.Sprintf("US%022d", r.Uint64())
	case 3:
		return fmt.Sprintf("%c%d", 'A'+rune(r.IntN(26)), 10+r.IntN(90))
	case 4:
		return fmt.Sprint(10 + r.IntN(100000))
	case 5:
		return fmt.Sprintf("20%02d-%02d-%02d", 10+r.IntN(80), 1+r.IntN(12), 1+r.IntN(28))
	case 6:
		return []string{"Мальлори", "東京都", "naïve", "mallory"}[r.IntN(4)]
	default:
		return sentence(r, 2+r.IntN(12))
	}
}

// wrap writes a result as tools do: as plain text, as JSON, or as the text of another program.
func wrap(t *testing.T, r *rand.Rand, text string) string {
	t.Helper()
	switch r.IntN(4) {
	case 0:
		return `{"items":[1,{"text":` + quoted(t, text) + `}]}`
	case 1:
		return fmt.Sprintf("{'text': %q, 'n': 1}", text)
	case 2:
		return "- text: '" + text + "'\n  n: 1\n"
	}
	return text
}

// A value of the typed text or of a trusted result is never reported, and the order and the wrapping of texts do not matter.
func TestTrace_NeverReportsWholeTrustedValues(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		value := valueOf(r)
		text := wrap(t, r, sentence(r, 10)+" "+value+" "+sentence(r, 10))
		k := dataflow.Knowledge{
			Typed:     []string{sentence(r, 10)},
			Trusted:   []dataflow.Result{{Call: "1.1", Text: text}},
			Untrusted: []dataflow.Result{{Call: "1.2", Text: value + " " + sentence(r, 10)}},
		}
		if seed%2 == 0 {
			k.Typed, k.Trusted = append(k.Typed, text), nil
		}
		require.Empty(t, dataflow.NewTracer(k).Trace(json.RawMessage(`{"v":`+quoted(t, value)+`}`), json.RawMessage(`{"properties":{"v":{}}}`), nil), "seed %d: %q", seed, value)
	}
}
