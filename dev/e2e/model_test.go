package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/modeltest"
)

// withModel returns an environment whose worker talks to a stand-in for both providers.
func withModel(t *testing.T, reply func(modeltest.Request) modeltest.Reply) *testEnv {
	t.Helper()
	server := modeltest.Func(t, reply)
	return startEnv(t,
		"ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL="+server.URL,
		"OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL(),
	)
}

// providers are the models that each test in this file runs with.
var providers = []string{"anthropic/claude-test", "openai/gpt-test"}

// ask returns a call as a model writes it. Providers do not allow dots in names.
func ask(tool, arguments string) modeltest.Call {
	return modeltest.Call{Name: strings.ReplaceAll(tool, ".", "__"), Args: arguments}
}

// converse starts a session with a model instead of a script.
func (d *testEnv) converse(model, tools string) string {
	d.t.Helper()
	document := fmt.Sprintf("---\nname: probe\ndescription: Talks to a model for a test.\nmodel: %s\ntools: %s\n---\nDo what you are asked.\n", model, tools)
	started, err := d.Start(d.t.Context(), client.StartOptions{Document: document, DocumentName: "probe.md", Task: "go", Principal: jig.Principal{ID: "tester"}})
	require.NoError(d.t, err)
	return started.SessionID
}

func TestModel_SeesWhyCallsWereRefused(t *testing.T) {
	t.Parallel()
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			d := withModel(t, func(r modeltest.Request) modeltest.Reply {
				if len(r.Turns) > 1 {
					return modeltest.Text("done")
				}
				return modeltest.Calls(
					ask("test.nothere", `{"value":"a"}`),
					ask("test.sleep", `{"ms":1,"name":"a"}`),
					ask("test.echo", `{}`),
					ask("test.echo", `{"value":3,"cuont":1}`),
					ask("test.guarded", `{"value":"a"}`),
					ask("test.hidden", `{"value":"a"}`),
					ask("test.echo", `{"value":"a`),
					ask("test.whoami", `{"tenant_id":"somebody_else"}`),
				)
			})
			id := d.converse(model, `["test.echo", "test.guarded", "test.hidden", "test.whoami"]`)
			view := d.finish(id)
			require.Equal(t, jig.StatusCompleted, view.Status, "%v", view.Error)
			got := byID(d.stored(id))
			for call, code := range map[string]jig.Code{
				"1.1": jig.CodeToolNotFound, "1.2": jig.CodeNotPermitted, "1.3": jig.CodeMissingParam, "1.4": jig.CodeInvalidInput,
				"1.5": jig.CodeNotPermitted, "1.6": jig.CodeToolNotFound, "1.7": jig.CodeInvalidInput,
			} {
				require.Equal(t, jig.CallFailed, got[call].Status, call)
				require.Equal(t, code, got[call].Error.Code, "%s: %v", call, got[call].Error)
			}
			require.Contains(t, got["1.3"].Error.Violations[0].Pointer, "value")
			require.GreaterOrEqual(t, len(got["1.4"].Error.Violations), 2, "every violation is listed: %+v", got["1.4"].Error)
			require.Equal(t, jig.CallSucceeded, got["1.8"].Status)
			require.Len(t, d.events(id, jig.EventToolStarted), 1, "no refused call ran")
		})
	}
}

func TestModelOutage_IsRetried(t *testing.T) {
	t.Parallel()
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			d := withModel(t, func(r modeltest.Request) modeltest.Reply {
				switch r.Number {
				case 1:
					return modeltest.RateLimited("1")
				case 2:
					return modeltest.Fail(500, "try later")
				case 3:
					broken := modeltest.Text(strings.Repeat("half an answer ", 50))
					broken.Break = true
					return broken
				}
				return modeltest.Text("made it")
			})
			id := d.converse(model, `["test.*"]`)
			view := d.finish(id)
			require.Equal(t, "made it", view.Answer, "%v", view.Error)
			require.Positive(t, d.stored(id).Tokens)
		})
	}
}

func TestModel_RefusalAndCutOffFailWithTheirReason(t *testing.T) {
	t.Parallel()
	for reason, reply := range map[string]modeltest.Reply{
		jig.ReasonRefusal: {Refusal: "I will not"},
		jig.ReasonCutOff:  {Text: "and then", CutOff: true},
	} {
		for _, model := range providers {
			t.Run(reason+" "+model[:6], func(t *testing.T) {
				t.Parallel()
				d := withModel(t, func(modeltest.Request) modeltest.Reply { return reply })
				view := d.finish(d.converse(model, `["test.*"]`))
				require.Equal(t, jig.StatusFailed, view.Status)
				require.Equal(t, reason, view.Reason)
				require.NotEmpty(t, view.Error.Hint)
			})
		}
	}
}

func TestModel_WrongKeyFailsAtOnce(t *testing.T) {
	t.Parallel()
	d := withModel(t, func(modeltest.Request) modeltest.Reply { return modeltest.Fail(401, "bad key") })
	view := d.finish(d.converse(providers[0], `["test.*"]`))
	require.Equal(t, jig.StatusFailed, view.Status)
	require.Equal(t, jig.CodeNotPermitted, view.Error.Code)
	require.Contains(t, view.Error.Hint, "ANTHROPIC_API_KEY")
}

// A model that has been quick is asked beside the workflow, and its last answer needs no run of its own. The first answers of a model, and all
// answers of one that has been slow, are activities.
func TestQuickModel_IsAskedBesideTheWorkflow(t *testing.T) {
	t.Parallel()
	d := withModel(t, func(r modeltest.Request) modeltest.Reply {
		if n := len(r.Turns); n < 4 {
			return modeltest.Calls(ask("test.echo", fmt.Sprintf(`{"value":"v%d"}`, n)))
		}
		return modeltest.Text("done")
	})
	asked := func() (activities, runs int) {
		id := d.converse(providers[1], `["test.*"]`)
		require.Equal(t, "done", d.finish(id).Answer)
		require.Len(t, d.events(id, jig.EventToolCompleted), 2)
		for _, run := range d.runs(id) {
			runs++
			for iter := shared.temporal.GetWorkflowHistory(t.Context(), id, run, false, 0); iter.HasNext(); {
				event, err := iter.Next()
				require.NoError(t, err)
				if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "Think" {
					activities++
				}
			}
		}
		return activities, runs
	}
	first, runs := asked()
	require.Equal(t, 3, first, "nothing is known of the model yet")
	require.Equal(t, 3, runs)
	require.Eventually(t, func() bool {
		activities, runs := asked()
		return activities == 0 && runs == 2
	}, 3*time.Minute, time.Millisecond, "the model answers at once")
}

// The shipped agent uses the same tools and needs the same approval with a model as with its script.
func TestModel_ReviewsDependencies(t *testing.T) {
	t.Parallel()
	const goMod = "module example.com/m\n\ngo 1.26\n\nrequire github.com/stretchr/testify v1.12.1\n"
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			d := withModel(t, func(r modeltest.Request) modeltest.Reply {
				last := r.Last()
				switch {
				case last.Role == "user" && !strings.Contains(last.Text, "MIT"):
					if strings.Contains(last.Text, "go.mod") {
						return modeltest.Calls(ask("deps.list", `{"path":"go.mod"}`))
					}
				case strings.Contains(last.Text, `"indirect"`):
					return modeltest.Calls(ask("deps.license", `{"module":"github.com/stretchr/testify","version":"v1.12.1"}`))
				case strings.Contains(last.Text, "coverage"):
					return modeltest.Calls(ask("file.write", `{"path":"report.md","content":"| testify | MIT |\n"}`))
				}
				return modeltest.Text("the report is written")
			})
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, "go.mod"), []byte(goMod), 0o600))
			started, err := d.Start(t.Context(), client.StartOptions{
				Agent: "dependency-review", Model: model, Pairs: map[string]string{"path": "go.mod"}, Principal: jig.Principal{ID: "tester"},
			})
			require.NoError(t, err)
			id := started.SessionID
			view := d.waiting(id)
			require.Equal(t, "file.write", view.Pending[0].Tool)
			require.NoFileExists(t, filepath.Join(d.dir, "report.md"))
			_, err = d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: view.Pending[0].Call, By: "ana"}})
			require.NoError(t, err)
			require.Equal(t, "the report is written", d.finish(id).Answer)
			require.FileExists(t, filepath.Join(d.dir, "report.md"))
		})
	}
}

// A worker that stops while a model writes gives up the request, and another worker asks again. No session fails because of a deployment.
func TestModel_IsAskedByAnotherWorkerWhenOneStops(t *testing.T) {
	t.Parallel()
	asked, stopped := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(asked); <-stopped })
	server := modeltest.Func(t, func(modeltest.Request) modeltest.Reply {
		first()
		return modeltest.Text("done")
	})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stopped })) // the worker waits for it at its end
	defer slow.Close()
	d := startEnv(t, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL(), "JIG_STOP_TIMEOUT=100ms",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+slow.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=2000")
	id := d.converse("openai/gpt-test", `["test.echo"]`)
	<-asked
	require.NoError(t, d.worker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, d.worker.Wait())
	d.worker = nil
	close(stopped)
	d.start()
	view := d.finish(id)
	require.Equal(t, jig.StatusCompleted, view.Status, "%v", view.Error)
	require.Equal(t, "done", view.Answer)
}
