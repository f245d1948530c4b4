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

// breaking is a model that breaks its first answers in each session, and then says that all is done.
type breaking struct {
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
func (b *breaking) answer(r modeltest.Request) modeltest.Reply {
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
			b := &breaking{asked: map[uint64]*brokenSession{}}
			d := withModel(t, b.answer)
			var sessions []string
			for seed := range count {
				document := "---\nname: probe\ndescription: Talks to a model for a test.\nmodel: " + model + "\ntools: [\"test.*\"]\n---\nDo what you are asked.\n"
				started, err := d.Start(t.Context(), client.StartOptions{
					Document: document, DocumentName: "probe.md", Task: strconv.Itoa(seed), Principal: jig.Principal{ID: "tester"},
				})
				require.NoError(t, err)
				sessions = append(sessions, started.SessionID)
			}
			for seed, id := range sessions {
				view := d.finish(id)
				if view.Status == jig.StatusCompleted {
					require.NotEmpty(t, strings.TrimSpace(view.Answer), "seed %d: %s", seed, view.Reason)
					continue
				}
				require.Equal(t, jig.StatusFailed, view.Status)
				require.Equal(t, jig.CodeInvalidOutput, view.Error.Code, "seed %d: %v", seed, view.Error)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			require.Empty(t, b.wrong)
		})
	}
}
