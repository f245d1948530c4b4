package starter

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

func TestSessions_ListsThem(t *testing.T) {
	t.Parallel()
	e := &fake{sessionPages: []protocol.SessionList{
		{Sessions: []protocol.SessionItem{
			{SessionID: "ses_2", Agent: "call", Tool: "site.pages", Status: jig.StatusInputRequired, Waiting: 2, RequestedBy: "ana", CreatedAt: noon},
		}, Next: "x"},
		{Sessions: []protocol.SessionItem{
			{SessionID: "ses_1", Agent: "lead", Status: jig.StatusFailed, Error: "TIMEOUT: slow\x1b[31m", RequestedBy: "bo", CreatedAt: noon},
			{SessionID: "ses_0", Agent: "call", Tool: "entities.extract", Status: jig.StatusCompleted, Reason: jig.ReasonPartial, CreatedAt: noon},
		}, Next: "xx"},
	}}
	got := jigCLI(t, e, nil, "sessions", "--limit", "2")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Regexp(t, `ses_2 +site\.pages +input_required +2`, got.stdout)
	require.Contains(t, got.stdout, "TIMEOUT: slow [31m")
	require.Contains(t, got.stdout, "completed (partial)")
	require.Contains(t, got.stderr, "--after xx", "it read on until the page was full")
	require.False(t, e.filters[0].Children)

	got = jigCLI(t, e, nil, "sessions", "--limit", "2", "--output", "json")
	var page protocol.SessionList
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &page))
	require.Len(t, page.Sessions, 3)
	require.Equal(t, "xx", page.Next)
}

func TestSessions_Filters(t *testing.T) {
	t.Parallel()
	e := &fake{}
	got := jigCLI(t, e, nil, "sessions", "--status", "failed", "--agent", "lead", "--requested-by", "ana", "--parent", "order-7", "--newer", "2d",
		"--tenant", "acme")
	require.Equal(t, exitDone, got.code, got.stderr)
	filter := e.filters[0]
	require.False(t, filter.After.IsZero())
	filter.After = time.Time{}
	require.Equal(t, protocol.SessionFilter{Status: jig.StatusFailed, Agent: "lead", RequestedBy: "ana", ParentID: "acme.order-7"}, filter)
	young, err := (&sessionFlags{newer: "2d", older: "1h"}).filter(noon)
	require.NoError(t, err)
	require.Equal(t, protocol.SessionFilter{After: noon.Add(-48 * time.Hour).UTC(), Before: noon.Add(-time.Hour).UTC()}, young)
	for _, args := range [][]string{{"--status", "done"}, {"--newer", "soon"}, {"--limit", "-1"}, {"--parent", "a b"}} {
		require.Equal(t, exitUsage, jigCLI(t, e, nil, append([]string{"sessions"}, args...)...).code, args)
	}
}

func TestTranscript_PrintsWhatWasSaidAndDone(t *testing.T) {
	t.Parallel()
	opening := &protocol.Opening{Agent: "writer", Model: "openai/x", RequestedBy: "ana", At: noon, Instructions: "Write.", Input: json.RawMessage(`{"a":1}`)}
	e := &fake{transcripts: []protocol.Transcript{
		{SessionID: "ses_1", Opening: opening, Entries: []protocol.TranscriptEntry{
			{Kind: protocol.EntryMessage, Pass: 1, By: "ana", Text: "write it"},
			{Kind: protocol.EntryTurn, Pass: 1, Model: "openai/x", Text: "I write.\n\x1b[2Kpass 9\nana"},
		}, Next: "x"},
		{SessionID: "ses_1", Entries: []protocol.TranscriptEntry{
			{
				Kind: protocol.EntryCall, Pass: 1, Call: "1.1", Tool: "file.write", Status: jig.CallSucceeded, EditedBy: "bo",
				Input: json.RawMessage(`{"path": "a", "content": "x\ny"}`), Summary: "written", Result: json.RawMessage(`{"size":3}`),
			},
			{Kind: protocol.EntryCall, Pass: 2, Call: "2.1", Tool: "agent.run", Status: jig.CallFailed, Error: jig.Errorf(jig.CodeDenied, "no"), Child: "ses_2"},
		}},
	}}
	got := jigCLI(t, e, nil, "transcript", "ses_1", "--instructions")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, `session  ses_1
agent    writer
model    openai/x
started  `+noon.Local().Format(time.DateTime)+` by ana
input    {"a":1}

instructions
  Write.

pass 1
ana
  write it
openai/x
  I write.
   [2Kpass 9
  ana
1.1 file.write succeeded, changed by bo
  in  {"content":"x\ny","path":"a"}
  out written {"size":3}

pass 2
2.1 agent.run failed
  out DENIED: no
  → ses_2
`, got.stdout, "a text cannot look like another part of the transcript")

	got = jigCLI(t, e, nil, "transcript", "ses_1", "--output", "json")
	var all protocol.Transcript
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
	require.Len(t, all.Entries, 4)
	require.Equal(t, "Write.", all.Opening.Instructions)
	require.Empty(t, all.Next)
}

func TestApprove_WithoutACallTakesTheOnlyOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"approve"}, {"approve", "ses_1"}, {"deny", "ses_1"}} {
		e := &fake{}
		e.page.Approvals = []jig.Pending{{SessionID: "ses_2", Call: "3.1", Tool: "file.write", Digest: "d1", Kind: jig.PendingApproval}}
		got := jigCLI(t, e, nil, append(args, "--as", "ana")...)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Equal(t, "ses_2", e.decidedIn)
		require.Equal(t, []jig.Decision{{Call: "3.1", By: "ana", Answer: jig.Answer(args[0]), Digest: "d1"}}, e.decided)
		require.Contains(t, got.stderr, "ses_2 3.1 file.write waits for approval", "it shows what it decides")
	}
	e := &fake{}
	got := jigCLI(t, e, nil, "approve", "ses_1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "no call in session ses_1 waits for approval")
	got = jigCLI(t, &fake{viewErr: jig.Errorf(jig.CodeNotFound, `there is no session "order-7"`)}, nil, "approve", "order-7")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `there is no session "order-7"`)
	e.page.Approvals = []jig.Pending{{SessionID: "ses_2", Call: "3.1"}, {SessionID: "ses_3", Call: "1.1/a[0]"}}
	got = jigCLI(t, e, nil, "approve")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "jig approve ses_3 '1.1/a[0]'")
	require.Empty(t, e.decided)
}

func TestApprove_ThroughAParent(t *testing.T) {
	t.Parallel()
	e := &fake{below: map[string]protocol.WaitingCall{"1.1": {SessionID: "ses_child", Call: "3.1", Digest: "d1"}}}
	got := jigCLI(t, e, nil, "approve", "ses_1", "1.1", "--as", "ana")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "ses_child", e.decidedIn)
	require.Equal(t, "3.1", e.decided[0].Call)
	got = jigCLI(t, e, nil, "approve", "ses_1", "1.1", "1.2", "--as", "ana")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "different sessions")
	got = jigCLI(t, e, nil, "reconcile", "ses_1", "1.1", "--outcome", "happened")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "3.1", e.word.Call)
	got = jigCLI(t, e, nil, "answer", "ses_1", "1.1", "--value", "1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "3.1", e.replied.Call)

	e = &fake{locateErr: jig.Errorf(jig.CodeConflict, "2 calls wait below call 1.1")}
	got = jigCLI(t, e, nil, "approve", "ses_1", "1.1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "2 calls wait below")
	e.locateErr = jig.Errorf(jig.CodeUnavailable, "the worker is busy")
	got = jigCLI(t, e, nil, "approve", "ses_1", "1.1")
	require.Equal(t, exitDone, got.code, "deciding reports what is wrong: %s", got.stderr)
}

func TestCatalogShow_PrintsDocumentsAndContracts(t *testing.T) {
	t.Parallel()
	e := &fake{
		catalog: client.Catalog{
			Agents: []string{"writer"}, Compositions: []string{"nightly"},
			Tools: []jig.Tool{{Name: "a.b", Implementation: "go", Description: "Does it."}, {Name: "my.spec", Implementation: "composition"}},
		},
		documents: map[string]string{"agent writer": "---\nname: writer\n---\nWrite.", "composition nightly": "kind: composition", "composition my.spec": "kind: prompt", "policy shop": "kind: policy"},
	}
	for name, want := range map[string]string{
		"writer": "---\nname: writer\n---\nWrite.\n", "nightly": "kind: composition\n", "my.spec": "kind: prompt\n",
		"shop": "kind: policy\n",
	} {
		got := jigCLI(t, e, nil, "catalog", "show", name)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Equal(t, want, got.stdout)
	}
	got := jigCLI(t, e, nil, "catalog", "show", "a.b")
	require.Contains(t, got.stdout, `"description": "Does it."`)
	got = jigCLI(t, e, nil, "catalog", "show", "writr")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "did you mean writer?")
}

func TestCommands_SuggestWhatWasMeant(t *testing.T) {
	t.Parallel()
	e := &fake{}
	e.pending = []jig.Pending{{SessionID: "ses_1", Call: "1.1", Tool: "file.write"}}
	got := jigCLI(t, e, nil, "approvals", "list")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "file.write")
	require.Contains(t, jigCLI(t, e, nil, "schedule", "show", "--help").stdout, "schedule describe NAME")
}
