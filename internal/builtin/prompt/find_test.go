package prompt_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/tools/tooltest"
)

// parrot gives the same answer to every request.
type parrot string

func (p parrot) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{Text: string(p), Stop: chat.StopEnd}, nil
}

// FuzzAnswer checks that, for any answer, the extracted value fits the schema and is contained in the answer, and that an answer that fits
// as a whole is accepted.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"title":"a"}`, "```json\n{\"title\":\"a\"}\n```", `so {"title":"a"} or {"title":"b"}`, "````\n```\n{}\n```\n````", `{"a":{"title":"x"}`,
		`[{"title":"a"},]`, "{[(", "\ufeff{}", `{name} [1] {"title":"\ud800"}`, "```", `{"title":"a"}{"title":"a"}`, `"a"`,
	} {
		f.Add(text)
	}
	fits, err := schema.NewCompiler(schema.Options{}).Compile([]byte(titled))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		kit := tooltest.New(t, prompt.Tools(prompt.Options{Model: parrot(text), Skills: skills{}})...)
		result := kit.Run(t.Context(), "prompt.direct", ask("openai/m"))
		if !result.Success {
			require.Equal(t, jig.CodeInvalidOutput, result.Error.Code, result.Error)
			require.Equal(t, "schema_mismatch", result.Error.Reason)
			require.Error(t, fits.Validate([]byte(text)))
			return
		}
		var got answer
		require.NoError(t, json.Unmarshal(result.Data, &got))
		require.NoError(t, fits.Validate(got.Output))
	})
}

// An answer that consists only of brackets is rejected quickly; find does not try every one of them.
func TestFind_BoundsAHostileAnswer(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"[1,", "{name}", "[", "{\"a\":", "```\n", "{ ", "[x](y)", "{}"} {
		kit := tooltest.New(t, prompt.Tools(prompt.Options{Model: parrot(strings.Repeat(piece, 200_000)), Skills: skills{}})...)
		e := kit.Fail("prompt.direct", ask("openai/m"))
		require.Equal(t, jig.CodeInvalidOutput, e.Code, piece)
	}
}
