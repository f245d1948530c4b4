package starter

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// hostile moves the cursor, clears the screen and changes the direction of writing.
const hostile = "a\x1b[2J\u009b1A\u202egnp.\u2066b"

// Text from a model, a tool or a person can neither move the cursor nor change the direction of writing, wherever it is shown.
func TestOutput_EscapesTerminalSequences(t *testing.T) {
	t.Parallel()
	broke := &jig.Error{
		Code: jig.CodeInvalidInput, Message: hostile, Hint: hostile,
		Violations: []jig.Violation{{Pointer: hostile, Message: hostile}, {Pointer: "/b", Message: hostile}},
	}
	data, err := json.Marshal(map[string]any{"summary": hostile})
	require.NoError(t, err)
	input, err := json.Marshal(map[string]string{"path": hostile, hostile: "x"})
	require.NoError(t, err)
	view := doneView()
	view.Status, view.Answer = jig.StatusInputRequired, hostile
	view.Calls = append(view.Calls, jig.CallView{Call: "1.2", Tool: hostile, Status: jig.CallFailed, Error: broke})
	view.Pending = []jig.Pending{{
		Kind: jig.PendingApproval, Call: "3.1", Tool: "file.write", Input: input, Summary: hostile, Reasons: []string{hostile}, RequestedBy: hostile,
	}}
	for name, row := range map[string]struct {
		engine *fake
		args   []string
	}{
		"error":   {&fake{err: broke}, []string{"approvals"}},
		"failure": {&fake{trigger: client.CallResult{Call: "1.1", Status: jig.CallFailed, Result: &jig.ToolResult{Error: broke}}}, []string{"trigger", "file.read"}},
		"status":  {&fake{view: view}, []string{"status", "ses_1"}},
		"refused": {&fake{ruled: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionRefused, Reason: hostile}}}, []string{"approve", "ses_1", "3.1"}},
		"events": {
			&fake{events: []jig.Event{{Type: jig.EventToolFailed, CallID: "1.1", Tool: hostile, Data: data}, {Type: jig.EventCustom + hostile}}},
			[]string{"events", "ses_1"},
		},
	} {
		got := jigCLI(t, row.engine, nil, row.args...)
		shown := got.stdout + got.stderr
		require.Contains(t, shown, "gnp.", name)
		for _, r := range shown {
			require.False(t, unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) && r != '\n', "%s shows %U in %q", name, r, shown)
		}
	}
}

// Invisible characters are made visible, so that two different texts never look the same. Characters that people write with stay as they
// are.
func TestOutput_ShowsInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for written, shown := range map[string]string{
		"pay\u200broll/a": "pay\ufffdroll/a", "pay\u00adroll": "pay\ufffdroll", "\ufeffrm": "\ufffdrm", "a\u2060b": "a\ufffdb",
		"a\u3164b": "a\ufffdb", "hi\U000e0061": "hi\ufffd",
		"\U0001f469\u200d\U0001f52c": "\U0001f469\u200d\U0001f52c", "\u2764\ufe0f": "\u2764\ufe0f", "\u0645\u06cc\u200c\u062e": "\u0645\u06cc\u200c\u062e",
		"\u0600\u0661": "\u0600\u0661", "naïve": "naïve",
	} {
		require.Equal(t, shown, oneLine(written, 0), "%q", written)
		require.Equal(t, shown, safeText(written), "%q", written)
	}
}
