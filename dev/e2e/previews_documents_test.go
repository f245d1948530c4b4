package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const guardedShop = `kind: policy
name: shop
rules:
  - {name: large, when: "tool.name == 'shop.pay'", verdict: ask, quorum: 3}
`

// puts makes the call that registers a document, and returns it.
func (o tenantEnv) puts(path, body string) protocol.CallResult {
	o.t.Helper()
	return o.trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": path, "body": body}}})
}

// foresees waits for the approval of a call whose preview contains a text, and returns it.
func (o tenantEnv) foresees(id, text string) jig.Pending {
	o.t.Helper()
	return o.until(id, func(v jig.SessionView) bool {
		return len(v.Pending) == 1 && v.Pending[0].Preview != nil &&
			strings.Contains(v.Pending[0].Preview.Title+"\n"+strings.Join(v.Pending[0].Preview.Changes, "\n"), text)
	}).Pending[0]
}

// foreseesNothing waits for the approval of a call that has no preview, with the reason.
func (o tenantEnv) foreseesNothing(id, why string) {
	o.t.Helper()
	o.until(id, func(v jig.SessionView) bool {
		return len(v.Pending) == 1 && v.Pending[0].Preview != nil && strings.Contains(v.Pending[0].Preview.Missing, why)
	})
}

// agreesLater approves what was shown while there is no worker, then starts one, and returns what became of the approval.
func (o tenantEnv) agreesLater(id string, shown jig.Pending) jig.Ruled {
	o.t.Helper()
	decided := make(chan jig.Ruled, 1)
	go func() {
		decided <- o.decided(id, jig.Decision{By: "operator", Answer: jig.AnswerApprove, Digest: shown.Digest})
	}()
	o.start()
	return <-decided
}

// staleFor checks that an approval was refused because the call of a tool is not what was shown any more.
func (o tenantEnv) staleFor(tool string, ruled jig.Ruled) {
	o.t.Helper()
	require.Equal(o.t, jig.DecisionRefused, ruled.Outcome)
	require.Contains(o.t, ruled.Reason, "not approved yet: what "+tool+" would change is not what was shown any more")
}

// People see which rule a document loosens. Another version of the document is registered before they approve, so the approval is refused and the
// call asks again, with what it would loosen now, although the worker was killed between the steps.
func TestPreviewOfDocuments_FollowsTheCurrentVersion(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	o.install("shop.yaml", strings.Replace(guardedShop, "quorum: 3", "quorum: 2", 1), o.trusting)
	loose := strings.Replace(guardedShop, ", quorum: 3", "", 1)
	call := o.puts("shop.yaml", loose)
	require.Equal(t, jig.CallWaiting, call.Status)
	first := o.foresees(call.SessionID, "LOOSER: policy shop: rule large needs 1 approval; it needed 2")
	require.Equal(t, "Registers documents: 1 changed; LOOSER in 1 way", first.Preview.Title)
	require.Contains(t, first.Preview.Binding(), "the tool acts only on the current versions of these documents (state ")
	whole := o.at("approvals", "show", call.SessionID, "1.1", "--document", "policy shop")
	require.Zero(t, whole.code, whole.err)
	require.Equal(t, loose, whole.out)

	o.install("shop.yaml", guardedShop, o.trusting)
	o.kill()
	o.staleFor("catalog.put", o.agreesLater(call.SessionID, first))
	second := o.foresees(call.SessionID, "LOOSER: policy shop: rule large needs 1 approval; it needed 3")
	require.Contains(t, strings.Join(second.Reasons, "\n"), "not what was shown before")
	o.kill()
	require.Equal(t, jig.DecisionAccepted, o.agreesLater(call.SessionID, second).Outcome)
	done, err := o.WaitCall(t.Context(), o.tenant, call.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
}

// An installation that was shown over one version is not approved over another, and a removal shows which rules go.
func TestPreview_OfBundles(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	bundle := func(version, policy string) map[string]any {
		return bundleFiles(map[string]string{
			"bundle.yaml": "kind: bundle\nname: shop\nversion: " + version + "\ndescription: The rules of the shop.\n", "shop.yaml": policy,
		})
	}
	require.Equal(t, jig.CallSucceeded, o.approved("bundle.install", bundle("1.0.0", guardedShop)).Status)
	call := o.trigger("bundle.install", bundle("1.2.0", strings.Replace(guardedShop, "verdict: ask, quorum: 3", "verdict: run", 1)))
	first := o.foresees(call.SessionID, "LOOSER: policy shop: rule large says run; it said ask")
	require.Contains(t, first.Preview.Binding(), "exactly this happens, or nothing: the tool acts only on the bundle shop 1.0.0 ")
	require.Equal(t, jig.CallSucceeded, o.approved("bundle.install", bundle("1.1.0", strings.Replace(guardedShop, "ask, quorum: 3", "deny", 1))).Status)
	o.staleFor("bundle.install", o.decided(call.SessionID, jig.Decision{By: "operator", Answer: jig.AnswerApprove, Digest: first.Digest}))
	second := o.foresees(call.SessionID, "LOOSER: policy shop: rule large says run; it said deny")
	require.Contains(t, second.Preview.Precondition, "shop 1.1.0")
	require.Equal(t, jig.DecisionAccepted, o.decided(call.SessionID, jig.Decision{By: "operator", Answer: jig.AnswerDeny}).Outcome)

	removal := o.trigger("bundle.remove", map[string]any{"name": "shop"})
	shown := o.foresees(removal.SessionID, "LOOSER: policy shop: rule large (deny) is gone")
	require.Equal(t, "Removes shop 1.1.0: 1 removed; LOOSER in 1 way", shown.Preview.Title)
	require.Contains(t, strings.Join(shown.Preview.Changes, "\n"), "-kind: policy\n-name: shop")
}

const amending = `kind: composition
name: NAME.amend
description: Amends a note, which its preview reads first. Use it to change what the note says.
permission: write
input_schema: {type: object, required: [text], properties: {text: {type: string, description: The new text.}}}
preview:
  read: {tool: file.read, input: {path: note.txt}}
  title: Amends the note
  changes: ["- ${read.data.content}", "+ ${input.text}"]
steps:
  - set: {text: "${input.text}"}
output: "${vars.text}"
`

// The preview of a composition follows what it reads, and survives a killed worker like that of a tool in code.
func TestPreview_OfACompositionFollowsWhatItReads(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	name := "n" + o.name[:8] + ".amend"
	o.install("amend.yaml", strings.Replace(amending, "NAME.amend", name, 1), o.trusting)
	note := o.workdir("note.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(note), 0o755))
	require.NoError(t, os.WriteFile(note, []byte("one"), 0o600))
	in := callInput(name, map[string]any{"text": "mine"})
	in.Tenant = o.tenant
	started, err := o.StartCall(t.Context(), in, "")
	require.NoError(t, err)
	first := o.foresees(started.SessionID, "- one\n+ mine")
	o.kill()
	require.NoError(t, os.WriteFile(note, []byte("two"), 0o600))
	o.staleFor(name, o.agreesLater(started.SessionID, first))
	second := o.foresees(started.SessionID, "- two\n+ mine")
	o.kill()
	require.Equal(t, jig.DecisionAccepted, o.agreesLater(started.SessionID, second).Outcome)
	done, err := o.WaitCall(t.Context(), o.tenant, started.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
}

// A thin tool that asks shows the entity that it would create. Once the entity exists, the preview says so.
func TestPreview_OfAThinTool(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t, "JIG_PERMISSIONS=*")
	o.install("note.yaml", "kind: entity_type\nname: note\ndescription: A note that somebody took.\nfields:\n  - {name: text, type: text, required: true}\n", o.trusting)
	name := "n" + o.name[:8] + ".keep"
	o.install("keep.yaml", "kind: thin_tool\nname: "+name+`
description: Keeps a note under its text, once for each text. Use it for what must not be forgotten.
permission: write
input_schema: {type: object, required: [text], properties: {text: {type: string, description: What to keep.}}}
creates: {type: note, title: "${input.text}", key: "${input.text}", fields: {text: "${input.text}"}}
`, o.trusting)
	call := o.trigger(name, map[string]any{"text": "milk"})
	shown := o.foresees(call.SessionID, `Creates note "milk"`)
	require.Contains(t, shown.Preview.Changes, `+ text: "milk"`)
	require.Equal(t, jig.DecisionAccepted, o.decided(call.SessionID, jig.Decision{By: "operator", Answer: jig.AnswerApprove, Digest: shown.Digest}).Outcome)
	done, err := o.WaitCall(t.Context(), o.tenant, call.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	again := o.trigger(name, map[string]any{"text": "milk"})
	require.Contains(t, o.foresees(again.SessionID, "Changes nothing").Preview.Title, "exists already")
}
