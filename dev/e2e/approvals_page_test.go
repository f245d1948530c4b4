package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

const approvalsPage = "docs/approvals.md"

// pageRunner follows docs/approvals.md as a reader would, with a worker, a shell, and the tenant that the page uses.
type pageRunner struct {
	tenantEnv
	// key and public are the id and the public half of the key that the reader made, which replace the page's. operator is the public half of
	// the operator's key.
	key, public, operator string
	// last is the output of the last commands.
	last commandResult
}

// The page's placeholders for values that differ from run to run.
const (
	pageKey    = "ana-21fe31df"
	pagePublic = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

// step describes a block of commands on the page: what must exist before it, how the commands end, and what must hold afterwards.
type step struct {
	section string
	given   func() string
	code    int
	then    func(id string)
}

// codeBlock is a block of code on the page.
type codeBlock struct{ section, before, language, body string }

// codeBlocks returns the blocks of code on a page in order, each with its heading and the text before it.
func codeBlocks(t *testing.T, page string) []codeBlock {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	var list []codeBlock
	section, from := "", 0
	for _, at := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllSubmatchIndex(text, -1) {
		before := string(text[from:at[0]])
		if headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(before, -1); len(headings) > 0 {
			section = headings[len(headings)-1][1]
		}
		list = append(list, codeBlock{section, before, string(text[at[2]:at[3]]), string(text[at[4]:at[5]])})
		from = at[1]
	}
	return list
}

// follows goes through a page: it checks its documents, writes those that files names, runs the commands, and calls the next function after each
// block of commands.
func (m *pageRunner) follows(page string, files map[string]string, then []func()) {
	m.t.Helper()
	ran := 0
	for _, f := range codeBlocks(m.t, page) {
		switch f.language {
		case "yaml", "markdown":
			doc, problems := spec.Load(map[string]string{"yaml": "page.yaml", "markdown": "page.md"}[f.language], []byte(f.body))
			require.Empty(m.t, problems, f.body)
			if file := files[doc.Name]; file != "" {
				require.Contains(m.t, f.before, "`"+file+"`")
				m.put(file, f.body)
			}
		case "text":
			m.shows(f)
		case "sh":
			require.Less(m.t, ran, len(then), "the page has commands that this test has no step for:\n%s", f.body)
			m.run(f.body, "", 0)
			then[ran]()
			ran++
		default:
			require.Fail(m.t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Len(m.t, then, ran, "the test has steps for commands that the page no longer has")
}

// Every document on the page is accepted, and every command on it does what the page says and prints what the page shows.
func TestApprovalsPage_Works(t *testing.T) {
	t.Parallel()
	stock, err := filepath.Abs(filepath.Join("..", "..", ".cache", "bin"))
	require.NoError(t, err)
	programs := strings.Join([]string{filepath.Dir(shared.cli.path(t)), stock, os.Getenv("PATH")}, string(os.PathListSeparator))
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "acme", testEnv: startEnv(
		t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=acme", "NO_COLOR=1",
		"TEMPORAL_ADDRESS="+shared.stack.TemporalAddress(), "TEMPORAL_NAMESPACE="+shared.stack.Namespace(),
	)}}
	steps := m.steps()
	id, ran := "", 0
	for _, f := range codeBlocks(t, approvalsPage) {
		switch f.language {
		case "yaml", "markdown":
			m.file(f)
		case "text":
			m.shows(f)
		case "sh":
			require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
			s := steps[ran]
			ran++
			require.Equal(t, s.section, f.section, "the steps of the test must follow the page, which is at:\n%s", f.body)
			if id = ""; s.given != nil {
				id = s.given()
			}
			m.run(f.body, id, s.code)
			if s.then != nil {
				s.then(id)
			}
		case "json":
			require.True(t, json.Valid([]byte(f.body)), f.body)
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Equal(t, len(steps), ran, "the test has steps for commands that the page no longer has")
}

// file writes a document of the page to the file that the text before it names.
func (m *pageRunner) file(f codeBlock) {
	name := "three.md"
	if f.language == "yaml" {
		names := regexp.MustCompile("`(\\w+\\.yaml)`").FindAllStringSubmatch(f.before, -1)
		require.NotEmpty(m.t, names, "the text before a document names its file:\n%s", f.body)
		name = names[len(names)-1][1]
	}
	body := f.body
	if strings.Contains(body, pageKey) {
		body = strings.NewReplacer(pageKey, m.key, pagePublic, m.public).Replace(body)
	}
	m.put(name, body)
	if f.language == "markdown" {
		m.install(name, body, m.trusting)
	}
}

// run runs commands as they are on the page, but with the id of the actual session or grant.
func (m *pageRunner) run(commands, id string, code int) {
	m.t.Helper()
	if strings.Contains(commands, "_…") {
		require.NotEmpty(m.t, id, "these commands need an id:\n%s", commands)
	}
	about := regexp.MustCompile(`(ses|grt)_…`).ReplaceAllLiteralString(commands, id)
	m.last = m.command("bash", "-c", "set -e\n"+about)
	require.Equal(m.t, code, m.last.code, "%s\n%s%s", about, m.last.out, m.last.err)
	m.t.Logf("%s%s%s", about, m.last.out, m.last.err)
}

// shows checks that the commands before this block printed every line that the page shows.
func (m *pageRunner) shows(f codeBlock) {
	m.t.Helper()
	heard := regexp.MustCompile(`(ses|grt)_[a-z0-9-]+`).ReplaceAllString(m.last.out+m.last.err, "${1}_…")
	if m.key != "" {
		heard = strings.NewReplacer(m.key, pageKey, m.public, pagePublic).Replace(heard)
	}
	lines := strings.Split(regexp.MustCompile(` +\n`).ReplaceAllString(heard, "\n"), "\n")
	for line := range strings.Lines(f.body) {
		require.Contains(m.t, lines, strings.TrimSuffix(line, "\n"), "the page shows a line that the commands did not print")
	}
}

// written returns a function that makes a waiting call of file.write and returns its session.
func (m *pageRunner) written(path string) func() string {
	return func() string {
		result := m.trigger("file.write", map[string]any{"path": path, "content": "hello"})
		require.Equal(m.t, jig.CallWaiting, result.Status, "%+v", result.Result)
		return result.SessionID
	}
}

// three starts a session of the page's agent.
func (m *pageRunner) three() string {
	started, err := m.Start(m.t.Context(), client.StartOptions{
		Tenant: m.tenant, Agent: "three", Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(m.t, err)
	m.until(started.SessionID, func(v jig.SessionView) bool { return len(v.Pending) == 3 || v.Status.Final() })
	return started.SessionID
}

// payroll makes a call that needs two people according to the page's policy.
func (m *pageRunner) payroll() string { return m.written("payroll/may.csv")() }

// ruled waits until both documents take effect: the policy that asks finance, and the tenant's document, which lists the people of finance.
func (m *pageRunner) ruled(string) {
	m.t.Helper()
	m.says("ok    payroll takes two")("")
	require.True(m.t, eventually(m.t.Context(), patience, func() bool {
		id := m.payroll()
		return underRule(m.waiting(id).Pending[0]) && m.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerDeny}).Outcome == jig.DecisionAccepted
	}), "documents hold within a second")
}

func (m *pageRunner) question() string {
	result := m.trigger("person.ask", map[string]any{"question": "Which region?", "options": []string{"eu", "us"}})
	require.Equal(m.t, jig.CallWaiting, result.Status, "%+v", result.Result)
	return result.SessionID
}

// doubtful makes a call whose worker is killed while the call runs.
func (m *pageRunner) doubtful() string {
	id, _ := m.cutOff()
	return id
}

// doubtfulAgain makes a call whose second attempt is in doubt. The same answer about the first attempt, sent again, does not count.
func (m *pageRunner) doubtfulAgain() string {
	id, r := m.cutOff()
	not := jig.Reconciliation{Call: "1.1", Outcome: jig.OutcomeNotHappened, By: "ana"}
	ruled := func() jig.Ruled {
		result, err := m.Reconcile(m.t.Context(), m.tenant, id, not)
		require.NoError(m.t, err)
		return result.Decisions[0]
	}
	require.Equal(m.t, jig.DecisionAccepted, ruled().Outcome)
	require.True(m.t, eventually(m.t.Context(), patience, func() bool { n, _ := r.count("e"); return n == 2 }))
	m.kill()
	m.start()
	require.Equal(m.t, 2, m.waiting(id).Pending[0].Attempt)
	require.Contains(m.t, ruled().Reason, "attempt 2 is in doubt")
	return id
}

// cutOff kills the worker of a call after the call has had its effect, and waits for the question about it.
func (m *pageRunner) cutOff() (id string, r *receiver) {
	r = newReceiver(m.t)
	in := callInput("test.effect", map[string]any{"url": r.URL, "name": "e", "after": 30_000})
	in.Tenant = m.tenant
	started, err := m.StartCall(m.t.Context(), in, "")
	require.NoError(m.t, err)
	require.True(m.t, eventually(m.t.Context(), patience, func() bool { n, _ := r.count("e"); return n == 1 }))
	m.kill()
	m.start()
	require.Equal(m.t, jig.PendingReconcile, m.waiting(started.SessionID).Pending[0].Kind)
	return started.SessionID, r
}

// ends returns a function that waits until a single call has ended with a status.
func (m *pageRunner) ends(status jig.CallStatus) func(id string) {
	return func(id string) {
		m.t.Helper()
		done := m.over(id)
		require.Equal(m.t, status, done.Status, "%+v", done.Result)
	}
}

// over waits until a single call has ended. The steps of the page so far must be enough for that.
func (m *pageRunner) over(id string) client.CallResult {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	done, err := m.WaitCall(ctx, m.tenant, id)
	require.NoError(m.t, err, "the call still waits; the commands printed\n%s%s", m.last.out, m.last.err)
	return done
}

// holds returns a function that checks a file's content after a call has succeeded.
func (m *pageRunner) holds(path, content string) func(id string) {
	return func(id string) {
		m.t.Helper()
		m.ends(jig.CallSucceeded)(id)
		require.Equal(m.t, content, m.wrote(path))
	}
}

func (m *pageRunner) waits(id string) {
	m.t.Helper()
	require.Len(m.t, m.waiting(id).Pending, 1)
}

// says returns a function that checks the output of the last commands.
func (m *pageRunner) says(words ...string) func(string) {
	return func(string) {
		m.t.Helper()
		for _, word := range words {
			require.Contains(m.t, m.last.out+m.last.err, word)
		}
	}
}

// answers returns a function that checks the answer of a session of the page's agent.
func (m *pageRunner) answers(answer string) func(id string) {
	return func(id string) { m.t.Helper(); require.Equal(m.t, answer, m.finish(id).Answer) }
}

// answered checks the result of a question.
func (m *pageRunner) answered(id string) {
	m.t.Helper()
	require.Contains(m.t, string(m.over(id).Result.Data), `"answer":"eu"`)
}

// granted checks that a grant covers the page's kind of call, and revokes it.
func (m *pageRunner) granted(string) {
	m.t.Helper()
	require.Equal(m.t, jig.CallSucceeded, m.trigger("file.write", map[string]any{"path": "reports/more.md", "content": "x"}).Status)
	require.Equal(m.t, jig.CallWaiting, m.trigger("file.write", map[string]any{"path": "elsewhere/more.md", "content": "x"}).Status)
	m.endGrants()
}

func (m *pageRunner) endGrants() {
	m.t.Helper()
	list, err := m.Grants(m.t.Context(), m.tenant, false)
	require.NoError(m.t, err)
	require.Len(m.t, list, 1)
	_, err = m.RevokeGrant(m.t.Context(), protocol.GrantsRequest{Tenant: m.tenant, Revoke: list[0].ID, By: "ana"})
	require.NoError(m.t, err)
}

// grant creates a grant and returns its id.
func (m *pageRunner) grant() string {
	ruled := m.decided(m.written("reports/hello.md")(), jig.Decision{By: "ana", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 2}})
	require.NotEmpty(m.t, ruled.Grant, ruled.Reason)
	return ruled.Grant
}

// tidies denies the calls of file.write that still wait. Most were shown before their file was written, so their first approval would be refused.
func (m *pageRunner) tidies() {
	m.t.Helper()
	denied := m.at("deny", "--all", "--tool", "file.write", "--as", "ana", "--reason", "left over", "--yes")
	require.Contains(m.t, denied.out+denied.err, "2 not accepted", "the calls of payroll, which ana has delegated")
}

func (m *pageRunner) notPaused(string) {
	m.t.Helper()
	result, err := m.Pauses(m.t.Context(), m.tenant)
	require.NoError(m.t, err)
	require.Empty(m.t, result.Pauses)
}

// refusal waits until the session's events contain a refused signal.
func (m *pageRunner) refusal(id string) {
	m.t.Helper()
	require.True(m.t, eventually(m.t.Context(), patience, func() bool { return len(m.eventsOf(id, jig.EventDecisionRefused)) == 1 }))
	m.waits(id)
}

// proved returns a function that waits for an event of a kind and checks that its author was proved, not only claimed.
func (m *pageRunner) proved(kind jig.EventType) func(id string) {
	return func(id string) {
		m.t.Helper()
		require.True(m.t, eventually(m.t.Context(), patience, func() bool { return len(m.eventsOf(id, kind)) == 1 }))
		var data struct {
			By      string `json:"by"`
			Claimed bool   `json:"claimed"`
		}
		require.NoError(m.t, json.Unmarshal(m.eventsOf(id, kind)[0].Data, &data))
		require.Equal(m.t, "ana", data.By)
		require.False(m.t, data.Claimed)
	}
}

// made returns the key that a command printed.
func (m *pageRunner) made() (id, public string) {
	m.t.Helper()
	found := regexp.MustCompile(`\{id: "([^"]+)".*public_key: "([^"]+)"\}`).FindStringSubmatch(m.last.out)
	require.NotNil(m.t, found, m.last.out)
	return found[1], found[2]
}
