package jig_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// hidden returns a template's message with its values left out, and its numbers marked.
func hidden(template string) string {
	return jig.Fill(template, func(_ string, isNumber bool) string {
		if isNumber {
			return "#"
		}
		return "…"
	})
}

// The operands of a message are values, unless somebody says otherwise.
func TestTemplatef_KeepsValuesApart(t *testing.T) {
	t.Parallel()
	inner := jig.Errorf(jig.CodeConflict, "%s is taken", "x").WithField("id").WithHint("choose another")
	cause := errors.New("secret")
	for want, template := range map[string]string{
		`there is no "…"`:                                   jig.Templatef("there is no %q", "a\"b"),
		"… and … and …":                                     jig.Templatef("%s and %v and %+v", []string{"a"}, map[string]int{"a": 1}, struct{ A int }{1}),
		"7 of # in #, # true":                               jig.Templatef("%d of %d in %s, %.3f %t", 7, 12345, time.Minute, 1.5, true),
		"EXPIRED executing ended":                           jig.Templatef("%s %s %s", jig.CodeExpired, jig.CallExecuting, jig.Known("ended")),
		"failed: CONFLICT: … is taken (id); choose another": jig.Templatef("failed: %w", inner),
		"failed: …":                                         jig.Templatef("failed: %w", cause),
		"again: … is x":                                     jig.Templatef("again: %s", jig.Words(jig.Templatef("%s is x", "y"))),
		"…":                                                 jig.Templatef("%s", "a\x0fb\x0ec\x1cd"),
	} {
		require.Equal(t, want, hidden(template))
	}
	e := jig.Errorf(jig.CodeConflict, "%d of %q: %w", 12345, "x", cause).WithHint(jig.Templatef("run %s", "x"))
	require.Equal(t, `12345 of "x": secret`, e.Message)
	require.Equal(t, e.Message, jig.Text(e.Template))
	require.Equal(t, []string{"run x", "run …"}, []string{e.Hint, hidden(e.HintTemplate)})
	require.ErrorIs(t, e, cause)
	again := e.Reworded("%s: %s", jig.Known("tool"), e.Words())
	require.Equal(t, `tool: # of "…": …`, hidden(again.Template))
	require.Equal(t, `tool: 12345 of "x": secret`, again.Message)
	require.Empty(t, e.WithHint("wait").HintTemplate)
	unknown := &jig.Error{Message: "secret"}
	require.Equal(t, "…", hidden(jig.Templatef("%s", unknown.Words())))
}
