package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/modeltest"
)

// brokenSessions is the variable that says how many sessions each provider gets that breaks its answers; default 6.
const brokenSessions = "JIG_BROKEN_SESSIONS"

// breakingModel is a model that breaks its first answers in each session, and then says that all is done.
type breakingModel struct {
	mu sync.Mutex
	// asked holds, for each session's seed, the answers so far and the values that their calls have.
	asked map[uint64]*brokenSession
	// wrong lists results of calls that no entry of an answer asked for.
	wrong []string
}

type brokenSession struct {
	answers int
	values  map[string]bool
	noise   bool
}

// answer breaks the next answer of a session, whose task is its seed.
func (b *breakingModel) answer(r modeltest.Request) modeltest.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	seed, err := strconv.ParseUint(strings.TrimSpace(r.Turns[0].Text), 10, 32)
	if err != nil {
		b.wrong = append(b.wrong, err.Error())
		return modeltest.Fail(501, "no seed")
	}
	s := b.asked[seed]
	if s == nil {
		s = &brokenSession{values: map[string]bool{}}
		b.asked[seed] = s
	}
	for _, turn := range r.Turns {
		if value, ok := echoed(turn.Text); turn.Role == "tool" && ok && !s.noise && !s.values[value] {
			b.wrong = append(b.wrong, fmt.Sprintf("seed %d: %s", seed, turn.Text))
		}
	}
	if s.answers++; s.answers > 4 {
		return modeltest.Text("All done.")
	}
	next := modeltest.NewBroken(seed*10+uint64(s.answers), r.Wire, "test__echo", s.answers)
	s.noise = s.noise || next.Noise
	for call := range next.Asked {
		if value, ok := echoed(strings.TrimPrefix(call, "test__echo ")); ok {
			s.values[value] = true
		}
	}
	return next.Reply
}

// echoed returns the value of a call or of a result of test.echo.
func echoed(text string) (string, bool) {
	var object struct {
		Value *string `json:"value"`
	}
	if json.Unmarshal([]byte(text), &object) != nil || object.Value == nil {
		return "", false
	}
	return *object.Value, true
}

// brokenKinds are the ways in which a session asks a model: as an agent, as an agent that is a step of a composition, and with a tool. Each
// starts a session whose seed is the model's task.
func (d *testEnv) brokenKinds(model string) []func(seed int) string {
	document := "---\nname: probe\ndescription: Talks to a model for a test.\nmodel: " + model + "\ntools: [\"test.*\"]\n---\nDo what you are asked.\n"
	child := "broken-" + model[:6] + "-" + strings.ToLower(d.name[:4])
	d.register(map[string]string{"child.md": strings.Replace(document, "name: probe", "name: "+child, 1)})
	step := func(prompt, output string) string {
		return d.compose("kind: composition\nname: probe.step\ndescription: Asks a model in a step.\nsteps: [{id: asked, prompt: {"+prompt+"}}]\n"+
			`output: "${steps.asked.data.`+output+`}"`, map[string]any{})
	}
	return []func(seed int) string{
		func(seed int) string {
			started, err := d.Start(d.t.Context(), client.StartOptions{
				Document: document, DocumentName: "probe.md", Task: strconv.Itoa(seed), Principal: jig.Principal{ID: "tester"},
			})
			require.NoError(d.t, err)
			return started.SessionID
		},
		func(seed int) string {
			return step(fmt.Sprintf(`mode: agent, agent: %s, prompt: "%d"`, child, seed), "answer")
		},
		func(seed int) string { return step(fmt.Sprintf(`model: %s, prompt: "%d"`, model, seed), "text") },
	}
}

// ended returns the answer of a session that is over, or the error with which it failed.
func (d *testEnv) ended(id string, call bool) (answer string, failure *jig.Error) {
	if !call {
		view := d.finish(id)
		return view.Answer, view.Error
	}
	result := d.output(id)
	if result.Success {
		require.NoError(d.t, json.Unmarshal(result.Data, &answer))
	}
	return answer, result.Error
}

// Whatever a provider breaks: no session completes without an answer, no call runs that no entry asked for, and no request goes out that
// providers refuse. All sessions of a provider run at the same time, so that their waits do.
func TestBrokenAnswers_NeverPassForGoodOnes(t *testing.T) {
	t.Parallel()
	count, err := strconv.Atoi(os.Getenv(brokenSessions))
	if err != nil {
		count = 6
	}
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			b := &breakingModel{asked: map[uint64]*brokenSession{}}
			d := withModel(t, b.answer)
			kinds := d.brokenKinds(model)
			var sessions []string
			for seed := range count {
				sessions = append(sessions, kinds[seed%len(kinds)](seed))
			}
			answered := 0
			for seed, id := range sessions {
				answer, failure := d.ended(id, seed%len(kinds) > 0)
				if failure == nil {
					require.NotEmpty(t, strings.TrimSpace(answer), "seed %d: %s", seed, id)
					answered++
					continue
				}
				require.Equal(t, jig.CodeInvalidOutput, failure.Code, "seed %d: %v", seed, failure)
			}
			t.Logf("%d of %d sessions were answered", answered, count)
			b.mu.Lock()
			defer b.mu.Unlock()
			require.Empty(t, b.wrong)
		})
	}
}
