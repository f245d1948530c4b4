package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/protocol"
)

// scripted returns an agent that makes a call once for each message of a person, and then says how often it asked.
func scripted(name, call string) string {
	return "---\nname: " + name + "\ndescription: Makes the same call for each message of the user.\nmodel: script/" + name + "\ntools: [file.read, file.write]\n" + `script:
  rules:
    - when: size(calls) < size(messages)
      calls: [` + call + `]
    - answer: "asked ${size(calls)} times; the last call is ${calls[size(calls) - 1].status}"
---
Follow the script.
`
}

// What people say on the command line takes effect: an event that is sent as soon as the run began, and messages that ask for a call again which was
// denied or failed. A run that waits for a person says so, also if another call waits behind it.
func TestCommandLine_MessagesAndEventsTakeEffect(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	tag := strings.ToLower(d.name[:8])
	says := func(id, text string) {
		require.True(t, eventually(t.Context(), patience, func() bool { return strings.Contains(d.jig("result", id).out, text) }), text)
	}

	d.file("payment.yaml", `kind: composition
name: t.onePayment
description: Waits for one payment and says what it was.
steps:
  - id: paid
    wait_for: {event: paid, timeout: 60s}
    on_error: continue
output: {got: "${steps.paid.success ? string(steps.paid.data.n) : steps.paid.error.code}"}
`)
	require.Zero(t, d.jig("run", "payment.yaml", "--id", "early-"+tag, "--detach").code)
	d.signal("default.early-"+tag, protocol.SignalEvent, map[string]any{"name": "paid", "data": map[string]any{"n": 1}})
	says("early-"+tag, `"got": "1"`)

	d.file("asks.md", scripted("asks-again", `{tool: file.write, input: {path: notices/today.txt, content: "open until six"}}`))
	asks := "asks-" + tag
	require.Equal(t, 3, d.jig("run", "asks.md", "--task", "Put up the notice", "--id", asks, "--no-wait").code)
	require.Zero(t, d.jig("deny", asks, "1.1", "--reason", "not before ten").code)
	says(asks, "asked 1 times; the last call is denied")
	require.Zero(t, d.jig("message", asks, "It is ten. Put it up now.", "--as", "ana").code)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return strings.Contains(d.jig("approvals", "--session", "default."+asks, "--output", "json").out, `"3.1"`)
	}))

	d.file("reads.md", scripted("reads-again", `{tool: file.read, input: {path: notices/later.txt}}`))
	reads := "reads-" + tag
	require.Zero(t, d.jig("run", "reads.md", "--task", "Read it", "--id", reads).code)
	d.put("notices/later.txt", "here")
	require.Zero(t, d.jig("message", reads, "It is there now. Read it again.", "--as", "ana").code)
	says(reads, "asked 2 times; the last call is succeeded")

	d.file("twice.md", strings.Replace(scripted("ordtwo", `{tool: file.write, input: {path: out/ord2.md, content: "first"}}, {tool: file.write, input: {path: out/ord2.md, content: "second"}}`),
		"size(calls) < size(messages)", "pass == 1", 1))
	require.Equal(t, 3, d.jig("run", "twice.md", "--id", "twice-"+tag, "--no-wait").code)
	require.Contains(t, d.jig("sessions", "--status", "input_required", "--newer", "1h", "--output", "json").out, "default.twice-"+tag)
}
