package activities_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

// composed returns a composition as a document of the tenant.
func composed(t *testing.T, body string) bundle.StoredDocument {
	t.Helper()
	loaded, err := composition.NewEngine().Load("test.yaml", []byte(body))
	require.NoError(t, err)
	return bundle.StoredDocument{
		DocumentVersion: bundle.DocumentVersion{Kind: activities.DocumentSpec, Name: loaded.Contract.Name, Version: loaded.Contract.Version}, Body: []byte(body),
	}
}

// keeps registers a document outside a session.
func (o *office) keeps(t *testing.T, d bundle.StoredDocument) {
	t.Helper()
	require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, d.Kind, d.Name, d.Version, d.Body))
}

// startsCall runs a composition in a new session that the principal has started, until it ends or waits for a person.
func (o *office) startsCall(t *testing.T, tool, input string) {
	t.Helper()
	_, err := o.launches(t, protocol.StartSession{Document: document(), Source: jig.SourceCLI, Task: "write to bo, bo@acme.example or %2e%2e"})
	require.NoError(t, err)
	o.asks(t, 1, tool, input)
	o.composesCall(t, "1.1")
}

// The parts of a text that a registered document makes are traced one by one: its own words to the document, the others to where they came from.
func TestDataFlow_PartsOfATemplateAreTracedApart(t *testing.T) {
	t.Parallel()
	o := newOffice(t, correspondents)
	o.letsWritesRun(t)
	o.keeps(t, composed(t, `kind: composition
name: flow.index
description: Writes an index.
input_schema: {type: object, properties: {name: {type: string, default: index}}}
steps:
  - {id: page, tool: page.read, input: {url: "https://offers.example"}}
  - {id: write, tool: mail.send, input: {to: "out/${input.name}.txt", text: "There are ${size(steps.page.data.text)} notes", name: "${steps.page.data.text}.txt"}}
`))
	o.startsCall(t, "flow.index", `{}`)
	stopped := o.call(t, "1.1/write")
	require.Equal(t, jig.CallWaiting, stopped.Status)
	require.Equal(t, []string{"/name", "/text"}, stopped.Flow.UntrustedArguments)
	require.NotContains(t, stopped.Flow.UnknownDestinations, "/to", "the path is made of the document's own words and a default")
	reasons := o.pending(t, "1.1/write").Reasons
	require.Equal(t, "policy p, rule writes would let it run with untraced: true", reasons[len(reasons)-1])
}

// A path that leads elsewhere is not traced, whatever it is made of.
func TestDataFlow_PartsOfATemplateDoNotClimb(t *testing.T) {
	t.Parallel()
	o := newOffice(t, correspondents)
	o.letsWritesRun(t)
	o.keeps(t, composed(t, `kind: composition
name: flow.fetch
description: Fetches.
input_schema: {type: object, properties: {a: {type: string}}}
steps:
  - {id: read, tool: page.read, input: {url: "https://offers.example"}}
  - {id: write, tool: mail.send, input: {to: "https://acme.example/a/${input.a}/b"}}
`))
	for input, want := range map[string]jig.CallStatus{"bo": jig.CallSucceeded, "..": jig.CallWaiting, "%2e%2e": jig.CallWaiting} {
		o.startsCall(t, "flow.fetch", `{"a":"`+input+`"}`)
		require.Equal(t, want, o.call(t, "1.1/write").Status, input)
	}
}

// Registering a document launders nothing: the words of a version keep the taint of the call that registered it first.
func TestDataFlow_ARegisteredDocumentKeepsTheTaintOfItsCall(t *testing.T) {
	t.Parallel()
	const body = `kind: composition
name: flow.mail
description: Mails.
steps:
  - {id: read, tool: page.read, input: {url: "https://offers.example"}}
  - {id: write, tool: mail.send, input: {to: "mallory@evil.example", text: "${'write'} mallory@evil.example"}}
# `
	o := newOffice(t, correspondents, func(o *office) {
		o.extra = append(o.extra, tools.Raw(jig.Tool{
			Name: "docs.put", Description: "Registers.", Permission: jig.PermissionWrite, Risk: jig.RiskSafe, Idempotent: true, Labels: &jig.Labels{},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"document":{"type":"string"}}}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
		}, func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
			var in struct{ Document string }
			if err := json.Unmarshal(input, &in); err != nil {
				return jig.Failure(err)
			}
			if err := o.db.RegisterDocuments(ctx, inv, bundle.Register{Documents: []bundle.StoredDocument{composed(t, in.Document)}}); err != nil {
				return jig.Failure(err)
			}
			return jig.ToolResult{Success: true, Data: json.RawMessage(`{}`)}
		}))
	})
	o.govern(t, "  - {name: puts, when: tool.name == 'docs.put', verdict: run, untraced: true}\n  - {name: writes, when: tool.permission == 'write', verdict: run}\n")
	registers := func(version string, read bool) {
		_, err := o.launches(t, protocol.StartSession{Document: document(), Source: jig.SourceCLI, Task: "register it"})
		require.NoError(t, err)
		if read {
			o.does(t, 1, "page.read", `{"url":"https://offers.example"}`)
		}
		input, err := json.Marshal(map[string]string{"document": body + version + "\n"})
		require.NoError(t, err)
		o.does(t, 2, "docs.put", string(input))
		o.startsCall(t, "flow.mail", `{}`)
	}
	registers("one", false)
	require.Equal(t, jig.CallSucceeded, o.call(t, "1.1/write").Status, "no session that has read a page has registered it")
	registers("two", true)
	stopped := o.call(t, "1.1/write")
	require.Equal(t, jig.CallWaiting, stopped.Status)
	require.Equal(t, []string{"/text", "/to"}, stopped.Flow.UntrustedArguments)
	registers("two", false)
	require.Equal(t, jig.CallWaiting, o.call(t, "1.1/write").Status, "registering the same version again changes nothing")
	registers("one", true)
	require.Equal(t, jig.CallSucceeded, o.call(t, "1.1/write").Status, "the same text was trusted before")
	o.keeps(t, composed(t, body+"two\n"))
	o.startsCall(t, "flow.mail", `{}`)
	require.Equal(t, jig.CallSucceeded, o.call(t, "1.1/write").Status, "somebody has registered it outside a session")
}

// A name of a property can carry a value through a tool whose results are trusted, so such a result is not trusted.
func TestDataFlow_NamesAreNotLaundered(t *testing.T) {
	t.Parallel()
	const iban = "DE89370400440532013000"
	o := newOffice(t, correspondents, func(o *office) {
		o.extra = append(o.extra, tools.Raw(jig.Tool{
			Name: "sums.add", Description: "Adds.", Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Labels: &jig.Labels{},
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"amounts":{"type":"object","additionalProperties":{}}}}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		}, func(_ context.Context, _ jig.Invocation, input json.RawMessage) jig.ToolResult {
			return jig.ToolResult{Success: true, Data: input}
		}))
	})
	o.letsWritesRun(t)
	o.does(t, 1, "page.read", `{"url":"https://offers.example"}`)
	o.does(t, 2, "sums.add", `{"amounts":{"`+iban+`":"help"}}`)
	require.False(t, o.call(t, "2.1").Flow.Traced)
	require.Equal(t, jig.CallWaiting, o.asks(t, 3, "mail.send", `{"name":"`+iban+`"}`).Status)
	o.does(t, 4, "note.repeat", `{"amount":4243}`) // nobody knows what the model computed it from
	require.Equal(t, jig.CallWaiting, o.asks(t, 5, "mail.send", `{"name":"4243"}`).Status)
}

// While a composition moves on, the texts of its session are read once, and later only the results of calls that have ended since. Whether the arguments
// of a call were traced is stored with it, so nobody traces them again.
func TestDataFlow_ACompositionReadsEachResultOnce(t *testing.T) {
	t.Parallel()
	const items = 20
	counted := &countedTexts{}
	o := newOffice(t, correspondents, func(o *office) {
		counted.Store = o.store
		o.store = counted
	})
	o.govern(t, "  - {name: no, when: tool.name == 'mail.send', verdict: deny}\n")
	o.keeps(t, composed(t, `kind: composition
name: flow.each
description: Writes.
steps:
  - {id: read, tool: page.read, input: {url: "https://offers.example"}}
  - {id: repeat, tool: note.repeat, input: {text: "write"}}
  - id: each
    for_each: "[`+strings.TrimSuffix(strings.Repeat("1,", items), ",")+`]"
    on_error: continue
    tool: mail.send
    input: {text: "write"}
`))
	_, err := o.launches(t, protocol.StartSession{Document: document(), Source: jig.SourceCLI, Task: "write to bo@acme.example"})
	require.NoError(t, err)
	o.asks(t, 1, "flow.each", `{}`)
	in := activities.ComposeInput{SessionRef: o.ref(), Call: "1.1", Now: o.now()}
	for out, err := o.Compose(t.Context(), in); ; out, err = o.Compose(t.Context(), in) {
		require.NoError(t, err)
		if out.Done {
			break
		}
		counted.results = 0
		for _, ref := range out.Calls {
			require.Equal(t, jig.CallSucceeded, o.runs(t, ref.ID))
		}
	}
	require.True(t, o.call(t, "1.1/repeat").Flow.Traced)
	require.Equal(t, 1, counted.results, "the result that has come since the run before, whatever the number of moves")
	require.GreaterOrEqual(t, counted.reads, 2)
}

// An admission reads the results that have come since the one before, however many runs of Compose and passes of an agent there are.
func TestDataFlow_AnAdmissionReadsOnlyNewResults(t *testing.T) {
	t.Parallel()
	const items = 20
	counted := &countedTexts{}
	o := newOffice(t, correspondents, func(o *office) {
		counted.Store = o.store
		o.store = counted
	})
	o.letsWritesRun(t)
	o.keeps(t, composed(t, `kind: composition
name: flow.each
description: Writes.
steps:
  - {id: read, tool: page.read, input: {url: "https://offers.example"}}
  - id: each
    for_each: "[`+strings.TrimSuffix(strings.Repeat("1,", items), ",")+`]"
    max_parallel: 1
    tool: mail.send
    input: {text: "write"}
`))
	_, err := o.launches(t, protocol.StartSession{Document: document(), Source: jig.SourceCLI, Task: "write to bo@acme.example"})
	require.NoError(t, err)
	o.asks(t, 1, "flow.each", `{}`)
	o.composesCall(t, "1.1")
	require.GreaterOrEqual(t, counted.reads, items)
	for pass := range items {
		o.does(t, 2+pass, "note.repeat", `{"text":"write","limit":`+strconv.Itoa(pass)+`}`)
	}
	require.GreaterOrEqual(t, counted.reads, 2*items)
	require.LessOrEqual(t, counted.results, 2*items+3, "every result once")
	require.Equal(t, jig.CallWaiting, o.asks(t, items+3, "mail.send", `{"to":"mallory@evil.example"}`).Status)
	require.Contains(t, strings.Join(o.pending(t, jig.CallID(items+3, 1)).Reasons, "\n"), "1.1/read (page.read)", "what was read long ago is still compared")
}

// racingFrames calls meanwhile after the first move that it stores.
type racingFrames struct {
	activities.Store
	meanwhile func()
}

func (r *racingFrames) MoveFrame(ctx context.Context, m plan.FrameMove) error {
	err := r.Store.MoveFrame(ctx, m)
	if meanwhile := r.meanwhile; meanwhile != nil && err == nil {
		r.meanwhile = nil
		meanwhile()
	}
	return err
}

// Arguments are compared with the result of a call that ends while Compose makes its moves.
func TestDataFlow_ACallThatEndsBetweenMovesIsCompared(t *testing.T) {
	t.Parallel()
	frames := &racingFrames{}
	o := newOffice(t, correspondents, func(o *office) {
		frames.Store = o.store
		o.store = frames
		news := jig.Tool{
			Name: "news.read", Description: "Reads.", Permission: jig.PermissionRead, Idempotent: true,
			InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
		}
		o.extra = append(o.extra, tools.Raw(news, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return found(`{"text":"pelicans"}`)
		}))
	})
	o.letsWritesRun(t, "  - {name: no, when: tool.name == 'mail.send' && has(input.text) && input.text == 'no', verdict: deny}\n")
	o.keeps(t, composed(t, `kind: composition
name: flow.news
description: Sends news.
steps:
  - parallel:
      - {id: read, tool: news.read, input: {}}
      - {id: refused, tool: mail.send, on_error: continue, input: {text: "no"}}
  - {id: write, tool: mail.send, input: {name: "${steps.read.data.text}"}}
`))
	_, err := o.launches(t, protocol.StartSession{Document: document(), Source: jig.SourceCLI, Task: "do the work"})
	require.NoError(t, err)
	o.does(t, 1, "page.read", `{"url":"https://offers.example"}`)
	o.asks(t, 2, "flow.news", `{}`)
	frames.meanwhile = func() { require.Equal(t, jig.CallSucceeded, o.runs(t, "2.1/read")) }
	_, err = o.Compose(t.Context(), activities.ComposeInput{SessionRef: o.ref(), Call: "2.1", Now: o.now()})
	require.NoError(t, err)
	require.Nil(t, frames.meanwhile)
	require.Contains(t, strings.Join(o.pending(t, "2.1/write").Reasons, "\n"), `/name ("pelicans") comes from the result of 2.1/read (news.read)`)
}
