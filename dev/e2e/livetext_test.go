package e2e_test

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/jig-run/jig/internal/modeltest"
)

// follower is a program that runs while the test goes on.
type follower struct {
	d    *testEnv
	cmd  *exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

// begin starts jig and collects what it prints, on both streams.
func (d *testEnv) begin(args ...string) *follower {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	d.t.Cleanup(cancel)
	r := &follower{d: d, cmd: exec.CommandContext(ctx, shared.cli.path(d.t), args...), done: make(chan struct{})}
	r.cmd.Env, r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = slices.Concat(d.env, []string{"NO_COLOR=1"}), d.dir, r, r
	require.NoError(d.t, r.cmd.Start())
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() //nolint:errcheck // ended looks at the exit code
	}()
	return r
}

func (r *follower) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *follower) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// prints waits until the program has printed a text.
func (r *follower) prints(text string) {
	r.d.t.Helper()
	require.True(r.d.t, eventually(r.d.t.Context(), patience, func() bool { return strings.Contains(r.printed(), text) }), "%s", r.printed())
}

// ended waits for the end of the program and returns what it printed.
func (r *follower) ended() string {
	r.d.t.Helper()
	<-r.done
	require.Zero(r.d.t, r.cmd.ProcessState.ExitCode(), r.printed())
	return r.printed()
}

// colleague starts a second worker for the same sessions, with its own key for models.
func (d *testEnv) colleague(key string) *testEnv {
	d.t.Helper()
	other := newTestEnv(d.t, "JIG_TASK_QUEUE="+d.queue, "OPENAI_API_KEY="+key)
	for _, setting := range d.env {
		if strings.Contains(setting, "_BASE_URL=") || strings.HasPrefix(setting, "ANTHROPIC_API_KEY=") {
			other.env = append(other.env, setting)
		}
	}
	other.start()
	return other
}

// history returns the histories of a session's runs as text.
func (d *testEnv) history(id string) string {
	d.t.Helper()
	var b strings.Builder
	for _, run := range d.runs(id) {
		for iter := shared.temporal.GetWorkflowHistory(d.t.Context(), id, run, false, 0); iter.HasNext(); {
			event, err := iter.Next()
			require.NoError(d.t, err)
			b.WriteString(protojson.Format(event))
		}
	}
	return b.String()
}

// The text of a model reaches people while it is written, whichever of two workers asks the model and whichever answers the follower. It is
// printed once, also by those who come later, and neither programs, other tenants nor Temporal's history get any of it.
func TestFollow_PrintsTextAsItComes(t *testing.T) {
	t.Parallel()
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			const text = "First I read all the files that you name, and then I write down what they have in common."
			until := make(chan struct{})
			d := withModel(t, func(r modeltest.Request) modeltest.Reply {
				if r.Last().Role == "tool" {
					return modeltest.Text("They have nothing in common.")
				}
				reply := modeltest.Calls(ask("test.echo", `{"value":"a"}`))
				reply.Text, reply.Until, reply.Piece = text, until, 4
				return reply
			})
			d.colleague("key")
			id := d.converse(model, `["test.echo"]`)
			first := d.begin("events", id, "--follow")
			first.prints("· model says\n  First I read")
			require.NotContains(t, first.printed(), "in common")
			programs := d.begin("events", id, "--follow", "--output", "json")
			late := d.begin("watch", id)
			late.prints("· model says\n  First I read")
			require.NotContains(t, d.history(id), "First I read")
			require.Equal(t, 1, d.jig("events", id, "--follow", "--tenant", "somebody-else").code)
			close(until)
			for _, r := range []*follower{first, late} {
				printed := r.ended()
				require.Contains(t, printed, "· model says\n  "+text+"\n", printed)
				require.Equal(t, 1, strings.Count(printed, "in common."), "the answer is printed, or the text twice: %s", printed)
				require.NotContains(t, printed, "broke off")
			}
			printed := programs.ended()
			require.Equal(t, 1, strings.Count(printed, "First I read"), printed)
			require.Len(t, d.events(id), strings.Count(printed, "\n"), "each line is an event")
		})
	}
}

// A model that breaks off in the middle of its answer is asked again, and followers are told.
func TestFollow_SaysThatAnAnswerBrokeOff(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]modeltest.Reply{
		"connection": {Break: true}, "stream": {Truncate: true}, "error": {StreamError: "overloaded_error"},
	} {
		for _, model := range providers {
			t.Run(name+" "+model[:6], func(t *testing.T) {
				t.Parallel()
				until := make(chan struct{})
				d := withModel(t, func(r modeltest.Request) modeltest.Reply {
					reply := modeltest.Reply{Text: "The answer is forty-two, as everybody knows.", Piece: 4}
					if r.Number == 1 {
						reply = broken
						reply.Text, reply.Piece = "The answer to all of this is somewhere in the files.", 4
						reply.Until = until
					}
					return reply
				})
				id := d.converse(model, `["test.*"]`)
				r := d.begin("events", id, "--follow")
				r.prints("· model says\n  The")
				close(until)
				printed := r.ended()
				require.Regexp(t, `\? the answer broke off · the model's provider .*\n`, printed)
				require.Regexp(t, `· model was asked again and says\n  The answer is forty-two, as everybody knows\.\n`, printed)
				require.Equal(t, 1, strings.Count(printed, "forty-two"), printed)
			})
		}
	}
}

// The worker that asks the model dies in the middle of the answer. Another one asks again; whoever follows is told, and gets the whole text once.
func TestFollow_SurvivesAWorkerThatDiesWhileAModelWrites(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	d := withModel(t, func(r modeltest.Request) modeltest.Reply {
		asked <- strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.Number == 1 {
			return modeltest.Reply{Text: "The first worker says that this takes a while to find out.", Piece: 4, Stall: true}
		}
		return modeltest.Reply{Text: "The second worker says that it is forty-two.", Piece: 4}
	})
	workers := map[string]*testEnv{"key": d, "other": d.colleague("other")}
	id := d.converse(providers[1], `["test.*"]`)
	r := d.begin("events", id, "--follow")
	r.prints("· model says\n  The first worker")
	first := <-asked
	require.Contains(t, workers, first)
	workers[first].kill()
	require.NotEqual(t, first, <-asked)
	printed := r.ended()
	require.Regexp(t, `\? the answer (broke off|above was not used)`, printed)
	require.Equal(t, 1, strings.Count(printed, "says that it is forty-two."), printed)
	require.Equal(t, "The second worker says that it is forty-two.", d.finish(id).Answer)
}

// A model that cannot stream is asked for its whole answer.
func TestLiveText_OfAnUnstreamedModel(t *testing.T) {
	t.Parallel()
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			server := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
				if r.Stream {
					return modeltest.Fail(400, "this model cannot stream")
				}
				return modeltest.Text("Here it is.")
			})
			d := startEnv(t, "ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL="+server.URL, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL(),
				"JIG_MODELS_UNSTREAMED="+model[:len(model)-2]+"*")
			require.Equal(t, "Here it is.", d.finish(d.converse(model, `["test.*"]`)).Answer)
		})
	}
}
