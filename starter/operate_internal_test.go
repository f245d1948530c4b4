package starter

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

func TestGrantCreate_IsACall(t *testing.T) {
	t.Parallel()
	done := client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "grt_1"}}
	e := &fake{trigger: done}
	got := jigCLI(t, e, nil, "grant", "create", "--tool", "file.write", "--agent", "docs", "--when", `input.path == "a"`, "--uses", "3",
		"--expires", "1d12h", "--note", "the docs", "--tenant", "acme")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "grants.create", e.input.Tool)
	require.Equal(t, "acme", e.input.Tenant)
	require.Equal(t, jig.Principal{ID: "ana", Claimed: true}, e.input.Principal)
	require.JSONEq(t, `{"tool":"file.write","agent":"docs","when":"input.path == \"a\"","max_uses":3,"expires":"1d12h","note":"the docs"}`, string(e.input.Input))
	require.Contains(t, got.stderr, "grt_1")

	e = &fake{trigger: done}
	require.Equal(t, 0, jigCLI(t, e, nil, "grant", "create", "--tool", "file.write").code)
	require.JSONEq(t, `{"tool":"file.write"}`, string(e.input.Input), "the worker sets the defaults")

	e = &fake{trigger: done}
	require.Equal(t, exitUsage, jigCLI(t, e, nil, "grant", "create", "--tool", "file.write", "--id", "a b").code)
	require.Empty(t, e.input.Tool, "nothing is called")
}

// Naming a principal other than the key's is an error, even if it is the user name of the operating system.
func TestKey_DeterminesThePrincipal(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t, "dora")
	for _, args := range [][]string{{"approvals", "--mine"}, {"pause", "--tenant-wide"}, {"grant", "revoke", "grt_1"}} {
		got := jigCLI(t, &fake{grants: grantsOf(time.Now())}, func(a *app) { a.env[signingKeySetting] = file }, append(args, "--as", "ana")...)
		require.Equal(t, exitUsage, got.code, args[0])
		require.Contains(t, got.stderr, "belongs to dora, but you act as ana", args[0])
		got = jigCLI(t, &fake{grants: grantsOf(time.Now())}, func(a *app) { a.env[signingKeySetting] = file }, args...)
		require.Equal(t, exitDone, got.code, "%s: %s", args[0], got.stderr)
	}
}

func TestGrantCreate_WaitsForApproval(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	p := waitingCall()
	p.Call, p.Tool = "1.1", "grants.create"
	e := &fake{
		trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting},
		pages:   []client.EventsPage{{Status: jig.StatusInputRequired}},
		view:    jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{p}},
		waited:  client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}},
	}
	got := jigCLI(t, e, nil, "grant", "create", "--tool", "file.write", "--no-wait", "--output", "json")
	require.Equal(t, exitWaiting, got.code, got.stderr)
	require.Empty(t, e.decided)

	got = jigCLI(t, e, nil, "grant", "create", "--tool", "file.write", "--yes", "--key", file)
	require.Equal(t, 0, got.code, got.stderr)
	require.Len(t, e.decided, 1)
	claim, err := token.ForDecision("default", "ses_1", jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, Note: "approved by --yes"}, "d1")
	require.Equal(t, "dora", proves(t, e.decided[0].Token, key, claim, err))
}

func grantsOf(now time.Time) []jig.Grant {
	revoked := now.Add(-time.Hour)
	return []jig.Grant{
		{
			ID: "grt_1", Tool: "file.write", Agent: "docs", When: `input.path == "a"`, MaxUses: 10, Used: 3, ExpiresAt: now.Add(time.Hour), By: []string{"ana", "ben"},
			Claimed: true, Note: "the docs",
		},
		{ID: "grt_2", Tool: "file.write", When: "true", MaxUses: 1, Used: 1, ExpiresAt: now.Add(time.Hour), By: []string{"ana"}},
		{ID: "grt_3", Tool: "file.write", When: "true", MaxUses: 1, ExpiresAt: now.Add(-time.Hour), By: []string{"ana"}},
		{ID: "grt_4", Tool: "shop\x1b[31m", When: "true", MaxUses: 2, ExpiresAt: now.Add(time.Hour), By: []string{"ana"}, RevokedAt: &revoked, RevokedBy: "dora"},
		{ID: "grt_5", Tool: "file.write", When: "true", MaxUses: 2, ExpiresAt: now.Add(time.Hour), By: []string{"ana"}, Ended: jig.GrantContractChanged},
	}
}

func TestGrantList_ShowsTheState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := &fake{grants: grantsOf(now)}
	got := jigCLI(t, e, nil, "grant", "list", "--all")
	require.Equal(t, 0, got.code, got.stderr)
	until := moment(now.Add(time.Hour))
	require.Contains(t, got.stdout, "grt_1 file.write: live\n  agent docs, 3 of 10 calls used, until "+until+
		"\n  when input.path == \"a\"\n  given by ana, ben (claimed): the docs\n")
	require.Contains(t, got.stdout, "grt_2 file.write: used up\n  all agents, 1 of 1 call used, until "+until+"\n  given by ana\n")
	require.Contains(t, got.stdout, "grt_3 file.write: expired\n")
	require.Contains(t, got.stdout, "grt_5 file.write: ended: the tool's contract has changed\n")
	require.Contains(t, got.stdout, "grt_4 shop [31m: revoked by dora at "+moment(now.Add(-time.Hour)))
	require.NotContains(t, jigCLI(t, e, nil, "grant", "list").stdout, "grt_4")

	got = jigCLI(t, e, nil, "grant", "list", "--output", "json")
	var printed struct{ Grants []jig.Grant }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &printed))
	require.Len(t, printed.Grants, 4)
	require.Equal(t, "grt_1", printed.Grants[0].ID)
	require.JSONEq(t, `{"grants":[]}`, jigCLI(t, &fake{}, nil, "grant", "list", "--output", "json").stdout)
	got = jigCLI(t, &fake{}, nil, "grant", "list")
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "no standing approvals")
}

func TestGrantRevoke_PrintsTheGrant(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	e := &fake{grants: grantsOf(time.Now())}
	got := jigCLI(t, e, nil, "grant", "revoke", "grt_4", "--key", file, "--tenant", "acme")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "revoked by dora")
	require.Equal(t, "dora", proves(t, e.revoked.Token, key, identity.Claim{Installation: "ins_fake", Tenant: "acme", Action: token.ActionRevoke, Subject: "grt_4"}, nil))
	e.revoked.Token = ""
	require.Equal(t, client.GrantsRequest{Tenant: "acme", Revoke: "grt_4", By: "dora"}, e.revoked)

	got = jigCLI(t, e, nil, "grant", "revoke", "grt_4", "--output", "json")
	require.Equal(t, client.GrantsRequest{Tenant: "default", Revoke: "grt_4", By: "ana"}, e.revoked, "without a key, the principal is only claimed")
	var g jig.Grant
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &g))
	require.Equal(t, "dora", g.RevokedBy)
	require.Equal(t, exitFailed, jigCLI(t, e, nil, "grant", "revoke", "grt_9").code)
}

func TestPause_PausesAndResumes(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	for name, tt := range map[string]struct {
		args    []string
		want    client.PauseRequest
		subject string
		words   string
	}{
		"tool":    {[]string{"--tool", "file.write"}, client.PauseRequest{Scope: jig.PauseTool, Target: "file.write"}, "tool:file.write", "tool file.write"},
		"session": {[]string{"--session", "ses_1"}, client.PauseRequest{Scope: jig.PauseSession, Target: "ses_1"}, "session:ses_1", "session ses_1"},
		"tenant":  {[]string{"--tenant-wide"}, client.PauseRequest{Scope: jig.PauseTenant}, "tenant", "the whole tenant"},
	} {
		e := &fake{pauses: client.PauseResult{Changed: true}}
		args := slices.Concat(tt.args, []string{"--reason", "look first", "--key", file, "--tenant", "acme"})
		tt.want.Tenant, tt.want.By, tt.want.Reason = "acme", "dora", "look first"

		got := jigCLI(t, e, nil, append([]string{"pause"}, args...)...)
		require.Equal(t, 0, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, "paused "+tt.words+"; calls that have not started will wait\n", got.stdout, name)
		claim, err := token.ForSubject("ins_fake", "acme", token.ActionPause, tt.subject, "look first")
		require.Equal(t, "dora", proves(t, e.paused.Token, key, claim, err), name)
		e.paused.Token = ""
		require.Equal(t, tt.want, e.paused, name)
		require.Empty(t, e.resumed, name)

		got = jigCLI(t, e, nil, append([]string{"resume"}, args...)...)
		require.Equal(t, 0, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, "resumed "+tt.words+"\n", got.stdout, name)
		claim, err = token.ForSubject("ins_fake", "acme", token.ActionResume, tt.subject, "look first")
		require.Equal(t, "dora", proves(t, e.resumed.Token, key, claim, err), name)
		e.resumed.Token = ""
		require.Equal(t, tt.want, e.resumed, name)
	}
}

func TestPause_ListsWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	all := jig.Pause{Scope: jig.PauseTenant, By: "ana", Claimed: true, Reason: "an audit", At: noon}
	tool := jig.Pause{Scope: jig.PauseTool, Target: "file.write", By: "ben", At: noon}
	allText := "the whole tenant, by ana (claimed) since " + moment(noon) + ": an audit\n"
	toolText := "tool file.write, by ben since " + moment(noon) + "\n"
	e := &fake{pauses: client.PauseResult{Pauses: []jig.Pause{all, tool}}, catalog: client.Catalog{Tools: []jig.Tool{{Name: "file.write"}}}}
	got := jigCLI(t, e, nil, "pause", "--list")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, allText+toolText, got.stdout)
	require.Empty(t, e.paused)

	got = jigCLI(t, e, nil, "pause", "--tenant-wide")
	require.Equal(t, "the whole tenant is paused already\n", got.stdout)
	require.Equal(t, "held back: "+allText+"held back: "+toolText, got.stderr)
	require.Equal(t, client.PauseRequest{Tenant: "default", Scope: jig.PauseTenant, By: "ana"}, e.paused)
	got = jigCLI(t, e, nil, "resume", "--session", "ses_1")
	require.Equal(t, "session ses_1 is not paused\n", got.stdout)
	require.Contains(t, got.stderr, allText)

	e.pauses.Changed = true
	got = jigCLI(t, e, nil, "pause", "--tool", "file.write")
	require.Equal(t, "held back: "+allText, got.stderr, "only other pauses are listed")
	got = jigCLI(t, e, nil, "pause", "--tool", "file.wirte")
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stderr, "warning: there is no tool file.wirte yet; its calls will be held back\nhint: did you mean \"file.write\"?\n")

	got = jigCLI(t, e, nil, "pause", "--list", "--output", "json")
	var printed client.PauseResult
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &printed))
	require.Equal(t, []jig.Pause{all, tool}, printed.Pauses)
	require.JSONEq(t, `{"changed":false,"pauses":[]}`, jigCLI(t, &fake{}, nil, "resume", "--tenant-wide", "--output", "json").stdout)
	require.JSONEq(t, `{"pauses":[]}`, jigCLI(t, &fake{}, nil, "pause", "--list", "--output", "json").stdout)
	require.Contains(t, jigCLI(t, &fake{}, nil, "pause", "--list").stderr, "nothing is held back")

	view := doneView()
	view.Paused = []jig.Pause{all}
	require.Contains(t, jigCLI(t, &fake{view: view}, nil, "status", "ses_1").stdout, "paused   "+allText)
}

func TestOperations_Mistakes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"pause nothing":       {"pause"},
		"pause two":           {"pause", "--tool", "file.write", "--tenant-wide"},
		"pause not":           {"pause", "--tenant-wide=false"},
		"pause no tool":       {"pause", "--tool", "nonsense"},
		"pause empty tool":    {"pause", "--tool", ""},
		"pause no session":    {"pause", "--session", "a b"},
		"list a tool":         {"pause", "--list", "--tool", "file.write"},
		"list with a reason":  {"pause", "--list", "--reason", "x"},
		"resume nothing":      {"resume"},
		"resume two":          {"resume", "--session", "ses_1", "--tool", "file.write"},
		"resume list":         {"resume", "--list"},
		"pause argument":      {"pause", "ses_1"},
		"grant what":          {"grant", "give"},
		"create without tool": {"grant", "create"},
		"create of no tool":   {"grant", "create", "--tool", "nonsense"},
		"create of no use":    {"grant", "create", "--tool", "file.write", "--uses", "-1"},
		"create of no time":   {"grant", "create", "--tool", "file.write", "--expires", "0s"},
		"create for nobody":   {"grant", "create", "--tool", "file.write", "--agent", ""},
		"revoke nothing":      {"grant", "revoke"},
		"revoke two":          {"grant", "revoke", "grt_1", "grt_2"},
	} {
		e := &fake{}
		got := jigCLI(t, e, nil, args...)
		require.Equal(t, exitUsage, got.code, "%s: %s", name, got.stderr)
		require.Empty(t, got.stdout, name)
		require.Empty(t, e.paused, name)
		require.Empty(t, e.resumed, name)
		require.Empty(t, e.revoked, name)
		require.Empty(t, e.input, name)
	}
}
