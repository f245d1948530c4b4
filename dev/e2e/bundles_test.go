package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

// shelfBundle returns a bundle with a document of every kind. Every name and text in it contains "uq", so that a leak is easy to find: ids
// cannot contain these two letters, because their alphabet has no u, and neither do jig's own words.
func shelfBundle() map[string]string {
	return map[string]string{
		"bundle.yaml": "kind: bundle\nname: uqshelf\nversion: 1.0.0\ntitle: The uqshelf\ndescription: Books of the uqshelf and what is done with them.\n",
		"types/uqbook.yaml": `kind: entity_type
name: uqbook
title: Zqbook
description: A book of the uqshelf.
fields:
  - {name: uqname, type: text, required: true}
  - {name: uqsize, type: number, integer: true, task: uqcount}
  - {name: uqmark, type: text, task: uqstamped}
tasks:
  - {id: uqcount, compute: "size(entity.content.uqname)"}
  - {id: uqstamped, tool: uqshelf.stamp, input: {value: "${entity.content.uqname}"}, value: result.value}
`,
		"uqshelf.add.yaml": `kind: thin_tool
name: uqshelf.add
description: Puts a book on the uqshelf and starts to fill its fields. Use it for each new book of the uqshelf.
input_schema:
  type: object
  required: [uqname]
  properties: {uqname: {type: string, description: What the book is called.}}
bundle: uqshelf
creates: {type: uqbook, title: "${input.uqname}", fields: {uqname: "${input.uqname}"}}
starts: {}
`,
		"uqshelf.tidy.yaml": `kind: composition
name: uqshelf.tidy
description: Stamps its input twice, so that the uqshelf is in order again. Use it after many books were moved.
input_schema:
  type: object
  required: [value]
  properties: {value: {type: string, description: What is stamped.}}
steps:
  - {id: one, tool: uqshelf.stamp, input: {value: "${input.value}"}}
  - {id: two, tool: uqshelf.stamp, input: {value: "${steps.one.data.value}!"}}
output: {value: "${steps.two.data.value}"}
`,
		"uqshelf.blurb.yaml": `kind: prompt
name: uqshelf.blurb
description: Writes some words for the back of a book of the uqshelf. Use it when a book has none of its own.
input_schema:
  type: object
  required: [title]
  properties: {title: {type: string, description: The title of the book.}}
mode: skill
skill: uqstyle
model: anthropic/claude-sonnet-4-5
prompt: "Write about ${input.title}."
`,
		"skills/uqstyle/SKILL.md": "---\nname: uqstyle\ndescription: How words for the uqshelf are written, for whoever writes them.\n---\nBe short on the uqshelf.\n",
		"uqcareful.yaml": `kind: policy
name: uqcareful
rules:
  - {name: uqnothing, when: "tool.name == 'test.echo' && call.input.value == 'forbidden'", verdict: deny, reason: the uqshelf forbids it}
`,
		"uqlibrarian.md": `---
name: uqlibrarian
description: Looks after the uqshelf.
model: script/uqlibrarian
tools: ["*"]
script:
  rules:
    - when: pass == 1
      calls: [{tool: uqshelf.stamp, input: {value: uq}}]
    - answer: "the uqshelf is in order"
---
Keep the uqshelf in order.
`,
	}
}

// folder writes a bundle's files below the working directory.
func (d *testEnv) folder(name string, files map[string]string) string {
	d.t.Helper()
	for file, body := range files {
		d.put(filepath.Join(name, file), body)
	}
	return name
}

// bundleFiles returns a bundle's documents as the input of the tool that installs it.
func bundleFiles(files map[string]string) map[string]any {
	list := make([]map[string]string, 0, len(files))
	for path, body := range files {
		list = append(list, map[string]string{"path": path, "body": body})
	}
	return map[string]any{"files": list}
}

// approved makes a call, approves it if it asks, and returns its result.
func (o tenantEnv) approved(tool string, input any) protocol.CallResult {
	o.t.Helper()
	result := o.trigger(tool, input)
	if result.Status != jig.CallWaiting {
		return result
	}
	require.Equal(o.t, jig.DecisionAccepted, o.decided(result.SessionID, jig.Decision{By: "operator", Answer: jig.AnswerApprove}).Outcome)
	done, err := o.WaitCall(o.t.Context(), o.tenant, result.SessionID)
	require.NoError(o.t, err)
	return done
}

// at runs the command line for the tenant.
func (o tenantEnv) at(args ...string) commandResult {
	o.t.Helper()
	return o.jig(append(args, "--tenant", o.tenant)...)
}

// otherTenant is a tenant that tries to find out which entities, sessions and documents another tenant has.
type otherTenant struct {
	tenantEnv
	// theirs holds ids that another tenant has, and nobodys ids of the same kinds that do not exist.
	theirs, nobodys map[string]string
}

// varies matches the parts that may differ between two answers to the same question: ids, times and durations.
var varies = regexp.MustCompile(`(ses|art|ent)_[a-z0-9-]{20,}|\d{4}-\d\d-\d\d[ T][\d:.]+Z?|[\d.]+ ?m?s\b`)

// asks runs a command in which each %s is a name, once with a name that another tenant has and once with one that does not exist. The
// answers must be the same.
func (s otherTenant) asks(theirs, nobodys string, args ...string) {
	s.t.Helper()
	require.Len(s.t, nobodys, len(theirs))
	answer := func(name string) commandResult {
		named := make([]string, len(args))
		for i, arg := range args {
			named[i] = strings.ReplaceAll(arg, "%s", name)
		}
		out := s.at(named...)
		clean := func(text string) string { return varies.ReplaceAllString(strings.ReplaceAll(text, name, "NAME"), "~") }
		return commandResult{out: clean(out.out), err: clean(out.err), code: out.code}
	}
	about := fmt.Sprintf("jig %s with %s", strings.Join(args, " "), theirs)
	got := answer(theirs)
	require.Equal(s.t, answer(nobodys), got, about)
	require.NotContains(s.t, got.out+got.err, "uq", about)
	s.t.Logf("%s: exit %d\n%s%s", about, got.code, got.out, got.err)
}

// lists runs commands that list things. The output must not contain anything of the bundle.
func (s otherTenant) lists(commands ...[]string) {
	s.t.Helper()
	for _, args := range commands {
		out := s.at(args...)
		require.NotContains(s.t, out.out+out.err, "uq", "%v", args)
		require.LessOrEqual(s.t, out.code, 1, "%v: %s", args, out.err)
	}
}

// seesNothing checks that no command and no read reveals anything of the bundle.
func (s otherTenant) seesNothing() {
	s.t.Helper()
	s.lists(
		[]string{"catalog"}, []string{"catalog", "--output", "json"}, []string{"catalog", "export"}, []string{"bundle", "list"},
		[]string{"approvals"}, []string{"grant", "list", "--all"}, []string{"schedule", "list"},
		[]string{"trigger", "entities.listTypes", "--output", "json"}, []string{"trigger", "entities.stats", "--output", "json"},
		[]string{"trigger", "entities.search", "--input", "query=Momo", "--output", "json"},
	)
	for _, tool := range []string{"uqshelf.stamp", "uqshelf.glance", "uqshelf.press", "uqshelf.add", "uqshelf.tidy", "uqshelf.blurb"} {
		nobodys := "xy" + tool[2:len(tool)-1] + "y"
		s.asks(tool, nobodys, "trigger", "%s", "--input", "value=a", "--output", "json")
		s.asks(tool, nobodys, "explain", "%s")
		s.asks(tool, nobodys, "run", "%s", "--input", "value=a", "--detach")
		s.asks(tool, nobodys, "grant", "create", "--tool", "%s", "--yes", "--output", "json")
		s.put("calls.yaml", "kind: composition\nname: mine.calls\ndescription: Calls a tool.\nsteps:\n  - {id: a, tool: "+tool+"}\n")
		s.put("calls-nobodys.yaml", "kind: composition\nname: mine.calls\ndescription: Calls a tool.\nsteps:\n  - {id: a, tool: "+nobodys+"}\n")
		s.sameOf(tool, nobodys, []string{"validate", "calls.yaml"}, []string{"validate", "calls-nobodys.yaml"})
		s.sameOf(tool, nobodys, []string{"run", "calls.yaml"}, []string{"run", "calls-nobodys.yaml"})
		s.sameOf(tool, nobodys, []string{"catalog", "add", "calls.yaml", "--yes"}, []string{"catalog", "add", "calls-nobodys.yaml", "--yes"})
	}
	s.asks("uqlibrarian", "xylibrarian", "run", "%s", "--detach")
	s.asks("uqlibrarian", "xylibrarian", "explain", "%s")
	s.asks("uqlibrarian", "xylibrarian", "trigger", "agent.run", "--input", `{"agent":"%s","task":"tidy"}`, "--output", "json")
	s.asks("uqstyle", "xystyle", "explain", "%s")
	s.asks("uqstyle", "xystyle", "trigger", "prompt.skill", "--input", `{"skill":"%s","prompt":"x","model":"anthropic/claude-sonnet-4-5"}`, "--output", "json")
	s.asks("uqcareful", "xycareful", "explain", "%s")
	s.asks("uqshelf", "xyshelf", "bundle", "show", "%s")
	s.asks("uqshelf", "xyshelf", "bundle", "remove", "%s", "--yes", "--output", "json")
	s.asks("uqbook", "xybook", "trigger", "entities.listTypes", "--input", "type=%s", "--output", "json")
	s.asks("uqbook", "xybook", "trigger", "entities.filter", "--input", "type=%s", "--output", "json")
	s.asks("uqbook", "xybook", "trigger", "entities.create", "--input", `{"type":"%s","content":{"zname":"a"}}`, "--yes", "--output", "json")
	echoed := s.trigger("test.echo", map[string]any{"value": "forbidden"})
	require.Equal(s.t, jig.CallSucceeded, echoed.Status, "the bundle's policy does not apply to them")
	s.seesNoIDs()
}

// sameOf checks that two commands give the same answer. The first uses a name of another tenant, the second one that does not exist.
func (s otherTenant) sameOf(theirs, nobodys string, one, other []string) {
	s.t.Helper()
	clean := func(o commandResult, name string) commandResult {
		words := strings.NewReplacer(name, "NAME", "calls-nobodys.yaml", "calls.yaml")
		return commandResult{out: varies.ReplaceAllString(words.Replace(o.out), "~"), err: varies.ReplaceAllString(words.Replace(o.err), "~"), code: o.code}
	}
	got := clean(s.at(one...), theirs)
	require.Equal(s.t, clean(s.at(other...), nobodys), got, "%v", one)
	require.NotContains(s.t, got.out+got.err, "uq", "%v", one)
}

// seesNoIDs asks about the ids of another tenant.
func (s otherTenant) seesNoIDs() {
	s.t.Helper()
	for kind, theirs := range s.theirs {
		nobodys := s.nobodys[kind]
		switch kind {
		case "session":
			for _, args := range [][]string{
				{"status", "%s"},
				{"events", "%s"},
				{"watch", "%s"},
				{"show", "%s", "1.1"},
				{"message", "%s", "hello"},
				{"approvals", "--session", "%s"},
				{"status", "%s", "--output", "json"},
			} {
				s.asks(theirs, nobodys, args...)
			}
		case "entity":
			for _, args := range [][]string{
				{"trigger", "entities.get", "--input", "id=%s", "--output", "json"},
				{"trigger", "entities.extract", "--input", "id=%s", "--output", "json"},
				{"status", "%s"},
				{"watch", "%s"},
			} {
				s.asks(theirs, nobodys, args...)
			}
		case "artifact":
			s.asks(theirs, nobodys, "trigger", "artifact.read", "--input", "id=%s", "--output", "json")
		}
	}
	if s.theirs == nil { // a former owner's audit still shows what the owner did
		return
	}
	audit := s.at("audit", "list", "--output", "json")
	for _, words := range []string{"uqshelf@", "entity_type/uq", "spec/uq", s.theirs["session"]} {
		require.NotContains(s.t, audit.out, words)
	}
}

// bundleOwner returns a tenant with the bundle, and the ids of an entity, a session and an artifact that it has.
func bundleOwner(t *testing.T) (o tenantEnv, theirs map[string]string) {
	t.Helper()
	o = newTenantEnv(t, "JIG_PERMISSIONS=*")
	installed := o.at("bundle", "install", o.folder("uqshelf", shelfBundle()), "--yes", "--output", "json")
	require.Zero(t, installed.code, installed.out+installed.err)
	added := o.trigger("uqshelf.add", map[string]any{"uqname": "Momo"})
	require.Equal(t, jig.CallSucceeded, added.Status, "%+v", added.Result)
	var out spec.ThinResult
	require.NoError(t, json.Unmarshal(added.Result.Data, &out))
	_, err := o.WaitCall(t.Context(), o.tenant, out.SessionID)
	require.NoError(t, err)
	large := o.trigger("test.big", map[string]any{"name": "b", "bytes": 100_000})
	require.Equal(t, jig.CallSucceeded, large.Status, "%+v", large.Result)
	theirs = map[string]string{"session": out.SessionID, "entity": out.EntityID}
	if len(large.Result.Artifacts) > 0 {
		theirs["artifact"] = large.Result.Artifacts[0]
	}
	return o, theirs
}

// another returns an id that nothing has and that differs from a given one in its random part alone.
func another(id string) string {
	random := jig.NewSessionID()[len("ses_"):]
	return id[:len(id)-len(random)] + random
}

func TestBundles_NeverLeak(t *testing.T) {
	t.Parallel()
	o, theirs := bundleOwner(t)
	nobodys := map[string]string{"session": another(theirs["session"]), "entity": another(theirs["entity"]), "artifact": jig.NewArtifactID()}

	// The owner has everything in the bundle.
	catalog := o.at("catalog")
	for _, name := range []string{"uqshelf.stamp", "uqshelf.add", "uqshelf.tidy", "uqshelf.blurb", "uqlibrarian", "uqstyle"} {
		require.Contains(t, catalog.out, name)
	}
	require.Contains(t, string(o.trigger("entities.listTypes", map[string]any{}).Result.Data), "uqbook")
	require.Equal(t, jig.CallSucceeded, o.trigger("uqshelf.tidy", map[string]any{"value": "a"}).Status)
	require.Equal(t, jig.CallSucceeded, o.trigger("uqshelf.glance", map[string]any{"value": "a"}).Status)
	ran := o.at("run", "uqlibrarian", "--output", "json")
	require.Contains(t, ran.out, "the uqshelf is in order", ran.err)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return o.trigger("test.echo", map[string]any{"value": "forbidden"}).Status == jig.CallDenied
	}), "its policy holds")
	pressed := o.trigger("uqshelf.press", map[string]any{"value": "a"})
	require.Equal(t, jig.CallWaiting, pressed.Status)

	other := otherTenant{tenantEnv: tenantEnv{testEnv: o.testEnv, tenant: o.tenant + "b"}, theirs: theirs, nobodys: nobodys}
	other.seesNothing()

	// After the bundle is removed, its former owner does not see it any more, and a waiting call does not run.
	removed := o.approved("bundle.remove", map[string]any{"name": "uqshelf"})
	require.Equal(t, jig.CallSucceeded, removed.Status, "%+v", removed.Result)
	require.Contains(t, string(removed.Result.Data), `"entities":1`)
	require.True(t, eventually(t.Context(), patience, func() bool { return !strings.Contains(o.at("catalog").out, "uq") }))
	require.Equal(t, jig.DecisionAccepted, o.decided(pressed.SessionID, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Outcome)
	over, err := o.WaitCall(t.Context(), o.tenant, pressed.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallFailed, over.Status)
	require.Equal(t, jig.CodeToolNotFound, over.Result.Error.Code)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return o.trigger("test.echo", map[string]any{"value": "forbidden"}).Status == jig.CallSucceeded
	}), "its policy holds no more")
	was := otherTenant{tenantEnv: o} // a former owner may still see its own sessions
	was.seesNothing()

	// The entities are back when the bundle is installed again.
	again := o.approved("bundle.install", bundleFiles(shelfBundle()))
	require.Equal(t, jig.CallSucceeded, again.Status, "%+v", again.Result)
	book := o.trigger("entities.get", map[string]any{"id": theirs["entity"]})
	require.Equal(t, jig.CallSucceeded, book.Status, "%+v", book.Result)
	require.Contains(t, string(book.Result.Data), "Momo")
}

func TestBundleUpgrade_KeepsEntities(t *testing.T) {
	t.Parallel()
	o, theirs := bundleOwner(t)
	upgrade := func(version, from, to string) protocol.CallResult {
		files := shelfBundle()
		files["bundle.yaml"] = strings.ReplaceAll(files["bundle.yaml"], "1.0.0", version)
		require.Contains(t, files["types/uqbook.yaml"], from)
		files["types/uqbook.yaml"] = strings.ReplaceAll(files["types/uqbook.yaml"], from, to)
		return o.approved("bundle.install", bundleFiles(files))
	}
	refused := upgrade("2.0.0", "uqmark, type: text", "uqmark, type: url")
	require.Equal(t, jig.CallFailed, refused.Status)
	require.Equal(t, jig.CodeConflict, refused.Result.Error.Code)
	require.Equal(t, "fields_changed", refused.Result.Error.Reason)
	require.Contains(t, refused.Result.Error.Message, "uqbook.uqmark")

	wider := upgrade("1.1.0", "fields:", "fields:\n  - {name: uqshade, type: text, required: true, default: crimson}")
	require.Equal(t, jig.CallSucceeded, wider.Status, "%+v", wider.Result)
	require.Contains(t, string(wider.Result.Data), `"before":"1.0.0"`)
	kept := string(o.trigger("entities.get", map[string]any{"id": theirs["entity"]}).Result.Data)
	require.Contains(t, kept, "Momo")
	require.Contains(t, kept, "crimson", "the field that is now required has its default")
	lower := upgrade("1.0.1", "fields:", "fields:\n  - {name: uqshade, type: text}")
	require.Equal(t, "bundle_downgrade", lower.Result.Error.Reason)

	// A document that the tenant has changed is replaced only with --replace.
	o.install("uqcareful.yaml", "kind: policy\nname: uqcareful\nrules: [{name: none, when: \"tool.name == 'uq.nothing'\", verdict: ask}]\n", o.trusting)
	next := shelfBundle()
	next["bundle.yaml"] = strings.ReplaceAll(next["bundle.yaml"], "1.0.0", "1.2.0")
	next["types/uqbook.yaml"] = strings.ReplaceAll(next["types/uqbook.yaml"], "fields:", "fields:\n  - {name: uqshade, type: text}")
	changed := o.at("bundle", "install", o.folder("uqshelf", next), "--yes", "--output", "json")
	require.Equal(t, 1, changed.code)
	require.Contains(t, changed.out, "document_changed")
	replaced := o.at("bundle", "install", "uqshelf", "--yes", "--replace")
	require.Zero(t, replaced.code, replaced.err)
	shown := o.at("bundle", "show", "uqshelf", "--output", "json")
	require.Contains(t, shown.out, `"version":"1.2.0"`)
}

func TestBundleInstall_IsCompleteAndIdempotent(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t, "JIG_PERMISSIONS=*")
	files := shelfBundle()
	files["uqshelf.tidy.yaml"] = strings.ReplaceAll(files["uqshelf.tidy.yaml"], "tool: uqshelf.stamp", "tool: uqshelf.stemp")
	broken := o.approved("bundle.install", bundleFiles(files))
	require.Equal(t, jig.CodeInvalidInput, broken.Result.Error.Code)
	require.Contains(t, broken.Result.Error.Message, "uqshelf.stemp")
	s := otherTenant{tenantEnv: o}
	s.lists([]string{"catalog"}, []string{"bundle", "list"}, []string{"trigger", "entities.listTypes"})

	first := o.approved("bundle.install", bundleFiles(shelfBundle()))
	require.Contains(t, string(first.Result.Data), `"changed":true`)
	again := o.approved("bundle.install", bundleFiles(shelfBundle()))
	require.Contains(t, string(again.Result.Data), `"changed":false`)
	rows := 0
	for line := range strings.Lines(o.at("audit", "list", "--output", "json").out) {
		rows += strings.Count(line, `"bundle/uqshelf@`)
	}
	require.Equal(t, 1, rows)

	// A bundle that is too large for the call's input is uploaded first.
	large := shelfBundle()
	large["skills/uqstyle/most.md"] = strings.Repeat("Be short on the uqshelf.\n", 8_000)
	large["skills/uqstyle/rest.md"] = strings.Repeat("Be kind on the uqshelf.\n", 8_000)
	kept := o.at("bundle", "install", o.folder("large", large), "--yes")
	require.Zero(t, kept.code, kept.out+kept.err)
}

// If the worker is killed at any moment, the bundle is installed completely or not at all, and the call that installs it succeeds.
func TestChaos_BundleInstall(t *testing.T) {
	t.Parallel()
	times, seed := chaos(t, 20, 6, 3)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	o := newTenantEnv(t, "JIG_PERMISSIONS=*")
	db, err := store.Open(t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	const documents = 60
	bundle := func(n int) map[string]string {
		files := map[string]string{"bundle.yaml": fmt.Sprintf("kind: bundle\nname: crowd\nversion: 1.%d.0\n", n)}
		for i := range documents {
			name := fmt.Sprintf("crowd%d", i)
			files[name+".yaml"] = fmt.Sprintf("kind: entity_type\nname: %s\ndescription: One of many, as of %d.\nfields: [{name: a, type: text}]\n", name, n)
		}
		return files
	}
	for n := range times {
		in := callInput("bundle.install", bundleFiles(bundle(n)))
		in.Tenant = o.tenant
		result, err := o.Trigger(t.Context(), in, "")
		require.NoError(t, err)
		o.trusting(result.SessionID)
		wait := time.Duration(random.IntN(120)) * time.Millisecond
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		o.kill()
		o.requireWholeBundle(db, n, documents)
		o.start()
		done, err := o.WaitCall(t.Context(), o.tenant, result.SessionID)
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
		require.Equal(t, n, o.requireWholeBundle(db, n, documents))
	}
}

// requireWholeBundle checks that the current documents are those of exactly one version of the bundle. It returns the version's number, or
// -1 if the bundle is not installed.
func (o tenantEnv) requireWholeBundle(db *store.DB, latest, documents int) int {
	o.t.Helper()
	installed, err := db.Bundles(o.t.Context(), o.tenant)
	require.NoError(o.t, err)
	current, err := db.CurrentDocuments(o.t.Context(), o.tenant, "entity_type")
	require.NoError(o.t, err)
	if len(installed) == 0 {
		require.Empty(o.t, current)
		require.Zero(o.t, latest, "an upgrade removes nothing")
		return -1
	}
	require.Len(o.t, installed, 1)
	require.ElementsMatch(o.t, installed[0].Documents, current)
	require.Len(o.t, current, documents)
	var n int
	_, err = fmt.Sscanf(installed[0].Version, "1.%d.0", &n)
	require.NoError(o.t, err)
	require.GreaterOrEqual(o.t, n, latest-1)
	return n
}

// The shipped bundles are installed for the default tenant, even if several workers start at the same time.
func TestShippedBundles_AreInstalled(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	listed := d.jig("bundle", "list")
	require.Zero(t, listed.code, listed.err)
	entries, err := os.ReadDir(filepath.Join("..", "..", "bundles"))
	require.NoError(t, err)
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join("..", "..", "bundles", e.Name(), "bundle.yaml")); err == nil {
			require.Contains(t, listed.out, e.Name())
		}
	}
	require.Contains(t, d.jig("bundle", "show", "dependency-review").out, "dependency-review")
}
