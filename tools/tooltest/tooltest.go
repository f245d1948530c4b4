// Package tooltest helps authors test their tools. It runs a tool as the engine would, through the registry, with an invocation that
// records progress reports. As in a session, a call that lacks a required confirmation flag does nothing. The kit also shows what an error
// means for the ledger: see [Kit.Fail] and [Kit.Unknown]. It must not need a server, a database or a clock.
package tooltest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/confine"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/tools"
)

// Kit is a registry together with the invocation that it passes to each run.
type Kit struct {
	// Registry holds the tools under test.
	Registry *tools.Registry
	// Invocation is passed to every run; change it before a run.
	Invocation jig.Invocation

	tb       testing.TB
	mu       sync.Mutex
	progress []string
}

// New returns a kit for the tools. It fails the test if a tool cannot be registered.
func New(tb testing.TB, list ...tools.Tool) *Kit {
	tb.Helper()
	registry, err := tools.NewRegistry(list...)
	if err != nil {
		tb.Fatalf("register: %v", err)
	}
	k := &Kit{tb: tb, Registry: registry}
	k.Invocation = jig.Invocation{
		Tenant: "default", Principal: jig.Principal{ID: "ana"}, SessionID: "ses_test", CallID: "1.1", Agent: "test",
		IdempotencyKey: "ses_test/1.1", Attempt: 1, Logger: slog.New(slog.DiscardHandler),
		Progress: func(text string) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.progress = append(k.progress, text)
		},
	}
	return k
}

// Progress returns the progress reports so far.
func (k *Kit) Progress() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.progress)
}

// encoded returns an input as JSON.
func (k *Kit) encoded(name string, input any) json.RawMessage {
	k.tb.Helper()
	switch raw := input.(type) {
	case json.RawMessage:
		return raw
	case []byte:
		return raw
	}
	raw, err := json.Marshal(input)
	if err != nil {
		k.tb.Fatalf("%s: input: %v", name, err)
	}
	return raw
}

// Run runs a tool once. input is JSON (json.RawMessage or []byte), or a value to encode as JSON.
func (k *Kit) Run(ctx context.Context, name string, input any) jig.ToolResult {
	k.tb.Helper()
	raw := k.encoded(name, input)
	if contract, ok := k.Registry.Tool(name); ok && k.Registry.Validate(name, raw) == nil {
		if nothing, err := contract.Unconfirmed(raw); err != nil || nothing != nil {
			if err != nil {
				k.tb.Fatalf("%s: %v", name, err)
			}
			return *nothing
		}
	}
	return k.Registry.Run(ctx, name, raw, k.Invocation)
}

// Preview returns what people would see of a call before they approve it: like the engine, it refuses writes to the store and, for a tool that
// sends, connections through jig. Set Precondition of the Invocation to that of the preview to test that a run checks it.
func (k *Kit) Preview(name string, input any) jig.Preview {
	k.tb.Helper()
	ctx := confine.ReadOnly(k.tb.Context())
	if contract, ok := k.Registry.Tool(name); ok && contract.Sends() {
		ctx = confine.Offline(ctx)
	}
	inv := k.Invocation
	inv.Attempt, inv.IdempotencyKey, inv.Precondition = 0, "", ""
	p, err := k.Registry.Preview(ctx, name, k.encoded(name, input), inv)
	if err == nil {
		p, err = preview.Clean(p)
	}
	if err != nil {
		return preview.Missing(jig.AsError(err).Message)
	}
	return p
}

// Succeed runs a tool and fails the test unless the tool succeeds. If data is not nil, the result's data is decoded into it.
func (k *Kit) Succeed(name string, input, data any) jig.ToolResult {
	k.tb.Helper()
	result := k.Run(k.tb.Context(), name, input)
	if !result.Success {
		k.tb.Fatalf("%s: %v", name, result.Error)
	}
	if data != nil {
		if err := json.Unmarshal(result.Data, data); err != nil {
			k.tb.Fatalf("%s: data: %v", name, err)
		}
	}
	return result
}

// Fail runs a tool, fails the test unless the call ends as failed, and returns the error. A call of a tool that writes ends as failed only
// if the error says that nothing happened: see [jig.Error.NoEffect].
func (k *Kit) Fail(name string, input any) *jig.Error {
	k.tb.Helper()
	e, unknown := k.fail(name, input)
	if unknown {
		k.tb.Fatalf("%s writes, and this error leaves its call unknown, until a person says what happened: %v\n"+
			"if nothing happened, set NotExecuted or return INVALID_INPUT, NOT_FOUND, CONFLICT, NOT_PERMITTED or RATE_LIMITED; "+
			"if it may have happened, test it with Unknown", name, e)
	}
	return e
}

// Unknown runs a tool that writes, fails the test unless the error leaves open whether anything happened, and returns the error. The engine
// makes such a call wait for a person; if the tool is idempotent, it first retries the call.
func (k *Kit) Unknown(name string, input any) *jig.Error {
	k.tb.Helper()
	e, unknown := k.fail(name, input)
	if !unknown {
		k.tb.Fatalf("%s fails, and its error does not leave open whether anything happened: %v", name, e)
	}
	return e
}

// fail runs a tool that must fail. unknown reports that the error leaves open whether the effect happened.
func (k *Kit) fail(name string, input any) (e *jig.Error, unknown bool) {
	k.tb.Helper()
	result := k.Run(k.tb.Context(), name, input)
	if result.Success {
		k.tb.Fatalf("%s succeeded: %s", name, result.Data)
	}
	contract, ok := k.Registry.Tool(name)
	return result.Error, ok && contract.Permission.Writes() && !result.Error.NoEffect()
}

// Captured records the calls of a fake tool.
type Captured struct {
	mu    sync.Mutex
	calls []Call
}

// Call is one call of a fake tool.
type Call struct {
	Invocation jig.Invocation
	Input      json.RawMessage
}

// Calls returns the calls so far, in order.
func (c *Captured) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Fake returns a tool that accepts any object, returns result, and records its calls. spec needs only a name; other zero values get
// reasonable defaults. If a successful result has no data, its data is {}.
func Fake(spec jig.Tool, result jig.ToolResult) (tools.Tool, *Captured) {
	captured := &Captured{}
	if spec.Description == "" {
		spec.Description = "A fake for tests."
	}
	if spec.InputSchema == nil {
		spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if spec.OutputSchema == nil {
		spec.OutputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if result.Success && result.Data == nil {
		result.Data = json.RawMessage(`{}`)
	}
	return tools.Raw(spec, func(_ context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		captured.mu.Lock()
		defer captured.mu.Unlock()
		captured.calls = append(captured.calls, Call{Invocation: inv, Input: slices.Clone(input)})
		return result
	}), captured
}

// Model is a server that stands in for Anthropic and OpenAI. It refuses requests that they would refuse, and closes when its test ends. A
// worker asks it if its settings, or the environment variables ANTHROPIC_BASE_URL and OPENAI_BASE_URL, have its addresses.
type Model struct {
	// AnthropicURL and OpenAIURL are the base URLs for the two providers.
	AnthropicURL, OpenAIURL string

	server *modeltest.Server
}

// Answer is an answer of a [Model]: a text, calls, or both.
type Answer struct {
	Text  string
	Calls []Asked
}

// Asked is a call that an answer asks for. Input is encoded as JSON; nil is {}.
type Asked struct {
	Tool  string
	Input any
}

// FakeModel starts a model that gives the answers in this order, one for each request. A further request fails the test.
func FakeModel(tb testing.TB, answers ...Answer) *Model {
	tb.Helper()
	steps := make([]modeltest.Reply, len(answers))
	for i, a := range answers {
		steps[i].Text = a.Text
		for _, c := range a.Calls {
			input, err := json.Marshal(c.Input)
			if err != nil {
				tb.Fatalf("%s: encode the input: %v", c.Tool, err)
			}
			steps[i].Calls = append(steps[i].Calls, modeltest.Call{Name: strings.ReplaceAll(c.Tool, ".", "__"), Args: string(input)})
		}
	}
	server := modeltest.New(tb, steps...)
	return &Model{AnthropicURL: server.URL, OpenAIURL: server.OpenAIURL(), server: server}
}

// Requests returns the bodies of the requests so far, as the providers would receive them.
func (m *Model) Requests() []json.RawMessage {
	var list []json.RawMessage
	for _, r := range m.server.Requests() {
		list = append(list, r.Body)
	}
	return list
}
