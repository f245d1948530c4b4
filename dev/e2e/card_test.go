package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// card returns what `jig approvals` shows of a session to somebody; "" means whoever the environment names.
func (o tenantEnv) card(session, who string) string {
	o.t.Helper()
	args := []string{"approvals", "--session", session, "--tenant", o.tenant}
	if who != "" {
		args = append(args, "--as", who)
	}
	got := o.jig(args...)
	require.Zero(o.t, got.code, got.err)
	require.Empty(o.t, got.err, "a card is on one stream")
	return got.out
}

// A card shows only commands that work for its reader, and says what a newer policy demands.
func TestCard_IsForItsReader(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	before := o.asks("test.write", map[string]any{"url": r.URL, "name": "large-1"})
	require.NotContains(t, o.card(before, "eve"), "today's policy")
	require.Contains(t, o.card(before, "eve"), "jig approve "+before+" 1.1 --as eve --tenant "+o.tenant+"\n")
	o.install("tenant.yaml", o.tenantDocument(""), o.trusting)
	o.install("finance.yaml", financePolicy, o.trusting)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return strings.Contains(o.card(before, "eve"), "; by today's policy: needs 2 of group finance (finance/large); tester may not decide, having requested it")
	}), "a newer policy is read within a second")
	require.Contains(t, o.card(before, "eve"), "anybody may decide", "the call keeps its terms")

	id := o.asks("test.write", map[string]any{"url": r.URL, "name": "large-2"})
	require.NotContains(t, o.card(id, "ana"), "today's policy")
	require.Contains(t, o.card(id, "ana"), "jig approve "+id+" 1.1 --as ana --tenant "+o.tenant+"\n")
	require.Contains(t, o.card(id, "ana"), "\n  expires in 7d (")
	for who, why := range map[string]string{
		"tester": "tester asked for this call and may not decide it", "eve": "eve may not decide this call: it is for group finance",
	} {
		card := o.card(id, who)
		require.Contains(t, card, "\n  "+why)
		require.NotContains(t, card, "jig approve")
		require.NotContains(t, card, "temporal workflow signal")
	}
	require.Contains(t, o.card(id, ""), "say who you are:\n    jig approve "+id+" 1.1 --as … --tenant "+o.tenant+"\n", "the name of the account is a guess")

	o.says(0, nil, "delegate", id, "1.1", "--to", "carl", "--as", "ana", "--note", "he knows")
	require.Contains(t, o.card(id, "ana"), "ana delegated this approval to carl")
	listed := o.jig("audit", "list", "--session", id, "--tenant", o.tenant)
	require.Regexp(t, `test\.write → carl waiting · \{"name":"large-2",.*\} · he knows\n`, listed.out)
}

// A new standing approval releases the waiting calls that it covers, oldest first and only as many as it has uses.
func TestGrant_ReleasesWaitingCalls(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	var ids []string
	for _, name := range []string{"small-1", "other", "small-2", "small-3", "small-4"} {
		ids = append(ids, o.asks("test.write", map[string]any{"url": r.URL, "name": name}))
	}
	o.says(0, nil, "delegate", ids[2], "1.1", "--to", "carl", "--as", "ana") // ana can no longer decide it
	got := o.jig("approve", ids[0], "1.1", "--grant-when", `input.name.startsWith("small")`, "--grant-uses", "1", "--yes", "--as", "ana", "--tenant", o.tenant)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, "1 waiting call fits the standing approval grt_")
	require.Contains(t, got.err, "  "+ids[3]+" 1.1 test.write  ")
	o.ended(ids[0], jig.CallSucceeded)
	o.ended(ids[3], jig.CallSucceeded)
	for _, i := range []int{1, 2, 4} {
		require.Len(t, o.waiting(ids[i]).Pending, 1)
	}
	var grants struct {
		Grants []jig.Grant `json:"grants"`
	}
	o.says(0, &grants, "grant", "list", "--all")
	require.Equal(t, 1, grants.Grants[0].Used)
	require.Contains(t, string(o.eventsOf(ids[3], jig.EventToolApproved)[0].Data), grants.Grants[0].ID)

	var created struct {
		Result struct {
			Data struct {
				GrantID string `json:"grant_id"`
			} `json:"data"`
		} `json:"result"`
	}
	o.says(0, &created, "grant", "create", "--tool", "test.write", "--when", `input.name.startsWith("small")`, "--yes", "--as", "ana")
	applied := o.jig("grant", "apply", created.Result.Data.GrantID, "--yes", "--as", "ana", "--tenant", o.tenant)
	require.Zero(t, applied.code, applied.err)
	require.Equal(t, ids[4]+" approved 1.1 test.write, with the standing approval "+created.Result.Data.GrantID+"\n", applied.out)
	o.ended(ids[4], jig.CallSucceeded)
	require.Len(t, o.waiting(ids[1]).Pending, 1, "it does not fit")
	require.Len(t, o.waiting(ids[2]).Pending, 1, "ana may not decide it")
}

// terminal collects what a program shows on a terminal.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal, a call is shown once and asked about; its arguments can be changed in an editor.
func TestPrompt_OnATerminal(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("script, of util-linux, is not installed")
	}
	d, r := joinEnv(t), newReceiver(t)
	file, editor := filepath.Join(d.dir, "gated.md"), filepath.Join(d.dir, "edit.sh")
	require.NoError(t, os.WriteFile(file, []byte(agent(`["*"]`, gatedRules)), 0o600))
	require.NoError(t, os.WriteFile(editor, []byte(`sed -i 's/"name": "first"/"name": "edited"/' "$1"`), 0o600))
	line := fmt.Sprintf("stty cols 120 rows 40; exec %s run %s --input url=%s --input name=first --follow --as ana", shared.cli.path(t), file, r.URL)
	cmd := exec.CommandContext(t.Context(), script, "-qec", line, "/dev/null")
	shown := &terminal{}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = slices.Concat(d.env, []string{"EDITOR=sh " + editor, "NO_COLOR=1", "TERM=xterm"}), d.dir, shown, shown
	keys, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, eventually(t.Context(), patience, func() bool { return strings.Contains(shown.String(), "Skip: leave it to somebody else") }), shown.String())
	require.Equal(t, 1, strings.Count(shown.String(), "test.write waits for approval\r\n"), shown.String())
	require.NotContains(t, shown.String(), "answer it with one of")
	_, err = keys.Write([]byte("kk\r")) // two up from Skip, which is preselected: Edit
	require.NoError(t, err)
	require.True(t, eventually(t.Context(), patience, func() bool { return strings.Contains(shown.String(), "approved 1.1 test.write") }), shown.String())
	require.NoError(t, cmd.Wait(), shown.String())
	requests, _ := r.count("edited")
	require.Equal(t, 1, requests, "the edited input runs")
}
