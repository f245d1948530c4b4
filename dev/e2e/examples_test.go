package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/protocol"
)

// example starts a composition or prompt that ships with the worker and returns its session.
func (d *testEnv) example(name string, input any) string {
	d.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(d.t, err)
	started, err := d.StartCall(d.t.Context(), client.CallInput{Tool: "examples." + name, Input: raw, Principal: jig.Principal{ID: "tester"}}, "")
	require.NoError(d.t, err)
	return started.SessionID
}

// put writes a file to the working directory.
func (d *testEnv) put(name, content string) {
	d.t.Helper()
	file := filepath.Join(d.dir, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(d.t, os.WriteFile(file, []byte(content), 0o644))
}

func (d *testEnv) content(name string) string {
	d.t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	require.NoError(d.t, err)
	return string(content)
}

// allow waits until a call asks a person and approves it. It returns what the person saw.
func (d *testEnv) allow(id, call string) jig.Pending {
	d.t.Helper()
	var asked jig.Pending
	d.until(id, func(v jig.SessionView) bool {
		for _, p := range v.Pending {
			if p.Call == call {
				asked = p
				return true
			}
		}
		return false
	})
	ruled, err := d.Decide(d.t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: call, By: "ana", Digest: asked.Digest}})
	require.NoError(d.t, err)
	require.Len(d.t, ruled.Decisions, 1)
	require.Equal(d.t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, "%+v", ruled.Decisions[0])
	return asked
}

// succeeded returns the output of a call that must have succeeded.
func succeeded[T any](d *testEnv, id string) T {
	d.t.Helper()
	result := d.output(id)
	require.True(d.t, result.Success, "%s: %+v", result.Summary, result.Error)
	var out T
	require.NoError(d.t, json.Unmarshal(result.Data, &out), string(result.Data))
	return out
}

const twoModules = "module example.com/m\n\ngo 1.26\n\nrequire (\n\tgithub.com/stretchr/testify v1.12.1\n\texample.com/gone v1.0.0\n" +
	"\tgithub.com/pmezard/go-difflib v1.0.0 // indirect\n)\n"

func TestExample_LicenseTable(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("go.mod", twoModules)
	id := d.example("licenseTable", map[string]any{"report": "out/licenses.md"})
	asked := d.allow(id, "1.1/written")
	require.Equal(t, "file.write", asked.Tool)
	require.Contains(t, string(asked.Input), "testify", "a person sees what will be written")
	type table struct {
		Module, Report string
		Modules        int
		LookAt         []string `json:"look_at"`
	}
	require.Equal(t, table{Module: "example.com/m", Modules: 2, LookAt: []string{"example.com/gone"}, Report: "out/licenses.md"}, succeeded[table](d, id))
	report := d.content("out/licenses.md")
	require.Contains(t, report, "| github.com/stretchr/testify | v1.12.1 | MIT | low |")
	require.Contains(t, report, "| example.com/gone | v1.0.0 | unknown |")
	require.NotContains(t, report, "difflib", "indirect modules are left out")
}

func TestExample_LicenseTableDenied(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("go.mod", "module example.com/m\n\ngo 1.26\n")
	id := d.example("licenseTable", map[string]any{})
	d.waiting(id)
	_, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1/written", By: "ana", Answer: jig.AnswerDeny, Reason: "not here"}})
	require.NoError(t, err)
	result := d.output(id)
	require.Equal(t, jig.CodeDenied, result.Error.Code)
	require.NoFileExists(t, filepath.Join(d.dir, "reports/licenses.md"))
}

func TestExample_HundredFiles(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	for i := range 120 {
		text := "// SPDX-License-Identifier: MIT\n"
		if i%10 == 3 {
			text = "// nothing\n"
		}
		d.put(fmt.Sprintf("src/%d/f%03d.go", i%3, i), text)
	}
	d.put("src/0/a.go", "\x00\x01")
	d.put("src/notes.txt", "no code")
	id := d.example("hundredFiles", map[string]any{"text": "SPDX-License-Identifier", "path": "src", "glob": "**/*.go"})
	type found struct {
		Files               int
		Missing, Unreadable []string
		LeftOut             bool `json:"left_out"`
	}
	got := succeeded[found](d, id)
	require.Equal(t, 100, got.Files)
	require.True(t, got.LeftOut)
	require.Equal(t, []string{"src/0/a.go"}, got.Unreadable)
	require.Contains(t, got.Missing, "src/0/f003.go")
	require.NotContains(t, got.Missing, "src/0/f000.go")
	for _, file := range got.Missing {
		require.Equal(t, byte('3'), file[len(file)-len("3.go")], file)
	}
	view := d.stored(id)
	require.Len(t, view.Calls, 102, "the call itself, the list and a hundred files")
	d.requireSmall(id)
}

func TestExample_PublishPage(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	const oldIndex = "<!doctype html><title>Ours</title>\n<li><a href=\"home.html\">Home</a></li>\n"
	d.put("site/index.html", oldIndex)
	d.put("site/home.html", "<h1>Home</h1>")
	good := map[string]any{"slug": "about-us", "title": "Us & you", "body": `<p><a href="home.html#top">home</a>, <a href="https://example.com/x.html">out</a></p>`}

	id := d.example("publishPage", good)
	d.allow(id, "1.1/page")
	d.allow(id, "1.1/index")
	type published struct {
		Page  string
		Links []string
	}
	require.Equal(t, published{Page: "site/about-us.html", Links: []string{"home.html", "about-us.html"}}, succeeded[published](d, id))
	page, index := d.content("site/about-us.html"), d.content("site/index.html")
	require.Contains(t, page, "<h1>Us &amp; you</h1>")
	require.Equal(t, strings.TrimSpace(oldIndex)+"\n<li><a href=\"about-us.html\">Us &amp; you</a></li>\n", index)

	// Publishing the same page again, now with a broken link, fails and restores the page. The index is unchanged.
	id = d.example("publishPage", map[string]any{"slug": "about-us", "title": "Worse", "body": `<a href="gone.html">gone</a>`})
	d.allow(id, "1.1/page")
	back := d.allow(id, "1.1/page.undo")
	require.Equal(t, "file.write", back.Tool)
	result := d.output(id)
	require.False(t, result.Success)
	require.Equal(t, "broken_links", result.Error.Reason)
	require.Contains(t, result.Error.Message, "gone.html")
	require.JSONEq(t, `{"undone":["page"],"not_undone":[]}`, string(result.Data))
	require.Equal(t, page, d.content("site/about-us.html"))
	require.Equal(t, index, d.content("site/index.html"))

	// With a new page, undo runs in reverse order: what was written first is undone last.
	id = d.example("publishPage", map[string]any{"slug": "news", "title": "News", "body": `<a href="gone.html">gone</a>`})
	d.allow(id, "1.1/page")
	d.allow(id, "1.1/index")
	d.allow(id, "1.1/index.undo")
	d.allow(id, "1.1/page.undo")
	result = d.output(id)
	require.JSONEq(t, `{"undone":["index","page"],"not_undone":[]}`, string(result.Data))
	require.Equal(t, index, d.content("site/index.html"))
	require.NotContains(t, d.content("site/news.html"), "gone.html")
	require.Len(t, d.events(id, jig.EventToolUndone), 2)
	require.Len(t, d.events(id, "custom.page_is_new"), 1)
}

func TestExample_PublishPageRefusesABadName(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	for field, input := range map[string]map[string]any{
		"/slug":   {"slug": "../up", "title": "Up", "body": ""},
		"/folder": {"slug": "up", "title": "Up", "body": "", "folder": "../site"},
	} {
		_, err := d.WaitCall(t.Context(), jig.DefaultTenant, d.example("publishPage", input))
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, field)
	}
	_, err := d.WaitCall(t.Context(), jig.DefaultTenant, d.example("publishPage", map[string]any{"slug": "index", "title": "Index", "body": ""}))
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "the index is not a page: %v", err)
}

func TestExample_WaitForPayment(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	id := d.example("waitForPayment", map[string]any{"order": "2026-0042", "amount": 12.5})
	pay := func(order string, amount any) {
		d.signal(id, protocol.SignalEvent, map[string]any{"name": "paid", "data": map[string]any{"order": order, "amount": amount}})
	}
	require.True(t, eventually(t.Context(), patience, func() bool { return len(d.eventsSoFar(id, jig.EventToolCompleted)) > 0 }), "it waits")
	pay("2026-0041", 20)  // another order
	pay("2026-0042", 12)  // not enough
	pay("2026-0042", "x") // not a number
	d.kill()
	pay("2026-0042", 13)
	d.start()
	require.JSONEq(t, `{"order":"2026-0042","paid":true,"amount":13}`, string(succeeded[json.RawMessage](d, id)))
	require.Len(t, d.events(id, "custom.paid"), 4, "events that do not match are recorded too")
	require.Empty(t, d.events(id, "custom.payment_missing"))
	settled := byID(d.stored(id))["1.1/settled"]
	require.Equal(t, jig.CallSucceeded, settled.Status)
	require.Equal(t, "1 of 1 done", settled.Summary)
}

// The same document with a shorter timeout.
func TestExample_WaitForPaymentThatDoesNotCome(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	document := strings.Replace(shipped(t, "examples.waitForPayment"), "timeout: 7d", "timeout: 1s", 1)
	id := d.compose(document, map[string]any{"order": "7", "amount": 1})
	require.JSONEq(t, `{"order":"7","paid":false}`, string(succeeded[json.RawMessage](d, id)))
	require.Len(t, d.events(id, "custom.payment_missing"), 1)
	require.Equal(t, "0 of 1 done", byID(d.stored(id))["1.1/settled"].Summary)
}

// shipped returns the text of a document that ships with the worker.
func shipped(t *testing.T, name string) string {
	t.Helper()
	list, err := bundles.Bundles()
	require.NoError(t, err)
	for _, b := range list {
		for _, doc := range b.Documents {
			if doc.Name == name {
				return string(doc.Body)
			}
		}
	}
	require.Fail(t, "no document "+name)
	return ""
}

func TestExample_WatchURL(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/broken":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte("welcome")) //nolint:errcheck // the worker reports a response that it could not read
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		path, text, state string
		status            int
	}{
		{"/", "welcome", "up", 200},
		{"/", "goodbye", "changed", 200},
		{"/gone", "", "refused", 404},
		{"/broken", "", "down", 503},
	} {
		id := d.example("watchUrl", map[string]any{"url": server.URL + c.path, "text": c.text})
		require.JSONEq(t, fmt.Sprintf(`{"url":%q,"state":%q,"status":%d}`, server.URL+c.path, c.state, c.status), string(succeeded[json.RawMessage](d, id)))
		events := d.events(id, "custom.url_up", "custom.url_trouble")
		require.Len(t, events, 1)
		require.Equal(t, c.state == "up", events[0].Type == "custom.url_up")
	}
	require.EqualValues(t, 4, asked.Load(), "an answer is a result, so there is no retry")
}

func TestExample_WatchURLWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // further requests fail
	id := d.example("watchUrl", map[string]any{"url": server.URL})
	require.JSONEq(t, fmt.Sprintf(`{"url":%q,"state":"down","status":0}`, server.URL), string(succeeded[json.RawMessage](d, id)))
	calls := byID(d.stored(id))
	require.Equal(t, jig.CallFailed, calls["1.1/page"].Status)
	require.Equal(t, jig.CallFailed, calls["1.1/page~2"].Status, "the call is retried")
	trouble := d.events(id, "custom.url_trouble")
	require.Len(t, trouble, 1)
	require.Contains(t, string(trouble[0].Data), string(jig.CodeUnavailable))
}

const notes = "# Notes\n\nThe notes of the team. More of it later.\n"

type folderSummary struct {
	Files  []struct{ Path, Title, Summary string }
	Unread []string
}

func TestExample_SummarizeFolder(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("docs/a/notes.md", notes)
	d.put("docs/empty.md", "")
	d.put("docs/picture.md", "\x89PNG\x00")
	d.put("docs/code.go", "package x")
	got := succeeded[folderSummary](d, d.example("summarizeFolder", map[string]any{"path": "docs"}))
	require.Equal(t, folderSummary{
		Files:  []struct{ Path, Title, Summary string }{{"docs/a/notes.md", "Notes", "The notes of the team"}, {"docs/empty.md", "docs/empty.md", ""}},
		Unread: []string{"docs/picture.md"},
	}, got)
}

func TestExample_SummarizeFolderWithAModel(t *testing.T) {
	t.Parallel()
	d := withModel(t, func(r modeltest.Request) modeltest.Reply {
		text := r.Last().Text
		switch {
		case strings.Contains(text, "secret.md"):
			return modeltest.Reply{Refusal: "I would rather not"}
		case strings.Contains(text, "The notes of the team"):
			return modeltest.Text(`{"title":"Team notes","summary":"What the team wrote down."}`)
		}
		return modeltest.Fail(500, "asked something else")
	})
	d.put("notes.md", notes)
	d.put("secret.md", "psst")
	for _, model := range providers {
		got := succeeded[folderSummary](d, d.example("summarizeFolder", map[string]any{"model": model}))
		require.Equal(t, folderSummary{
			Files:  []struct{ Path, Title, Summary string }{{"notes.md", "Team notes", "What the team wrote down."}},
			Unread: []string{"secret.md"},
		}, got)
	}
}

func TestExample_ReleaseNotes(t *testing.T) {
	t.Parallel()
	d := withModel(t, func(r modeltest.Request) modeltest.Reply {
		for _, part := range []string{"You write release notes", "**Action:**"} { // from the skill and from its file
			if !strings.Contains(r.System, part) {
				return modeltest.Fail(400, "the instructions lack "+part)
			}
		}
		if !strings.Contains(r.Last().Text, "version 1.4.0") || !strings.Contains(r.Last().Text, "removes --old") {
			return modeltest.Fail(400, "the question lacks the input")
		}
		return modeltest.Text(`{"headline":"Less","notes":"- **Action:** drop --old","action_needed":true}`)
	})
	id := d.example("releaseNotes", map[string]any{"version": "1.4.0", "changes": "removes --old"})
	got := succeeded[json.RawMessage](d, id)
	require.Contains(t, string(got), `"headline":"Less"`)
	require.Contains(t, string(got), `"action_needed":true`)
}

func TestExample_ReviewDependencies(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("go.mod", twoModules)
	id := d.example("reviewDependencies", map[string]any{"report": "out/review.md"})
	child := jig.ChildSessionID(id, "1.1/review")
	view := d.waiting(child)
	require.Equal(t, "file.write", view.Pending[0].Tool)
	_, err := d.Decide(t.Context(), jig.DefaultTenant, child, []jig.Decision{{Call: view.Pending[0].Call, By: "ana", Digest: view.Pending[0].Digest}})
	require.NoError(t, err)
	type review struct{ Answer, Session, Report string }
	got := succeeded[review](d, id)
	require.Equal(t, child, got.Session)
	require.Contains(t, got.Answer, "Reviewed 2 direct modules")
	require.Equal(t, d.content("out/review.md"), got.Report)
	require.Contains(t, got.Report, "| github.com/stretchr/testify | v1.12.1 | MIT | low |")
}
