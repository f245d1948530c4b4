package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const previewsPage = "docs/previews.md"

// Every command on the page does what the page says and prints what the page shows.
func TestPreviewsPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: jig.DefaultTenant, testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1")}}
	m.name = "hours"
	file := filepath.Join(m.dir, "hours.txt")
	steps := []struct {
		code int
		then func()
	}{
		{3, func() { require.Equal(t, "Open from 9 to 5\n", textOf(t, file)) }},
		{0, func() { require.Equal(t, "Closed on Monday\n", textOf(t, file)) }},
		{0, func() { require.Equal(t, "Open from 9 to 6", textOf(t, file)) }},
		{3, func() {}},
		{0, func() { require.Contains(t, m.last.out, "kind: policy\nname: shop\n") }},
		{3, func() { require.Equal(t, "Open from 9 to 6", textOf(t, file)) }},
		{0, func() { require.Equal(t, "Open from 10 to 6", textOf(t, file)) }},
	}
	require.NoError(t, os.RemoveAll(file))
	ran := 0
	for _, f := range codeBlocks(t, previewsPage) {
		switch f.language {
		case "sh":
			require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
			m.run(f.body, "", steps[ran].code)
			steps[ran].then()
			ran++
		case "text":
			m.shows(f)
		case "go":
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Len(t, steps, ran, "the test has steps for commands that the page no longer has")
}

// writes starts a call of file.write and returns its session.
func (d *testEnv) writes(name, content string) string {
	d.t.Helper()
	started, err := d.StartCall(d.t.Context(), callInput("file.write", map[string]any{"path": name, "content": content}), "")
	require.NoError(d.t, err)
	return started.SessionID
}

// previewed waits for the approval of a session's call and returns it with its preview.
func (d *testEnv) previewed(id, change string) jig.Pending {
	d.t.Helper()
	view := d.until(id, func(v jig.SessionView) bool {
		return len(v.Pending) == 1 && v.Pending[0].Preview != nil && strings.Contains(strings.Join(v.Pending[0].Preview.Changes, "\n"), change)
	})
	return view.Pending[0]
}

func (d *testEnv) agrees(id string, p jig.Pending) jig.Ruled {
	d.t.Helper()
	ruled, err := d.Decide(d.t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: p.Call, By: "fay", Answer: jig.AnswerApprove, Digest: p.Digest}})
	require.NoError(d.t, err)
	require.Len(d.t, ruled.Decisions, 1)
	return ruled.Decisions[0]
}

// The worker dies while a call waits, and the file changes meanwhile. The next worker finds that the call would change something else than was
// shown: it refuses the approval and asks again. An approval of what is shown then survives another killed worker.
func TestPreview_SurvivesAKilledWorker(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	at := filepath.Join(d.dir, "notes.md")
	require.NoError(t, os.WriteFile(at, []byte("one\n"), 0o600))
	id := d.writes("notes.md", "mine\n")
	first := d.previewed(id, "-one\n+mine")
	require.Contains(t, first.Preview.Precondition, "SHA-256 ")
	d.kill()
	require.NoError(t, os.WriteFile(at, []byte("two\n"), 0o600))
	decided := make(chan jig.Ruled, 1)
	go func() { decided <- d.agrees(id, first) }() // the workflow hears it when there is a worker again
	d.start()
	refused := <-decided
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "not approved yet: what file.write would change is not what was shown any more")
	second := d.previewed(id, "-two\n+mine")
	require.NotEqual(t, first.Digest, second.Digest)
	now, err := os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, "two\n", string(now))
	require.Equal(t, jig.DecisionRefused, d.agrees(id, first).Outcome, "an approval of what was shown first")
	d.kill()
	go func() { decided <- d.agrees(id, second) }()
	d.start()
	require.Equal(t, jig.DecisionAccepted, (<-decided).Outcome)
	done, err := d.WaitCall(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	now, err = os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(now))
	details := d.events(id, jig.EventToolNeedsApproval)
	require.Len(t, details, 2)
}

// The file changes at random moments. Each call writes over exactly the content that its last preview showed, or asks again, or ends.
func TestPreview_RacesEndToEnd(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	random := rand.New(rand.NewPCG(13, 31))
	for n := range 20 {
		name := fmt.Sprint("race-", n)
		at, texts := filepath.Join(d.dir, name), 0
		put := func() {
			texts++
			require.NoError(t, os.WriteFile(at, fmt.Appendf(nil, "text %d\n", texts), 0o600))
		}
		put()
		id := d.writes(name, "mine\n")
		for {
			view := d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 || v.Status.Final() })
			if view.Status.Final() {
				break
			}
			p := view.Pending[0]
			approved := texts
			require.Equal(t, []string{fmt.Sprintf("%s\n@@ -1 +1 @@\n-text %d\n+mine", name, approved)}, p.Preview.Changes)
			if random.IntN(2) == 0 {
				put()
			}
			d.agrees(id, p)
			d.until(id, func(v jig.SessionView) bool {
				return v.Status.Final() || len(v.Pending) == 1 && v.Pending[0].Digest != p.Digest
			})
		}
		done, err := d.WaitCall(t.Context(), jig.DefaultTenant, id)
		require.NoError(t, err)
		now, err := os.ReadFile(at)
		require.NoError(t, err)
		if done.Status == jig.CallSucceeded {
			require.Equal(t, "mine\n", string(now))
			continue
		}
		require.Equal(t, jig.CodeConflict, done.Result.Error.Code)
		require.Equal(t, fmt.Sprintf("text %d\n", texts), string(now))
	}
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
