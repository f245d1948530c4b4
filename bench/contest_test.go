package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/model"
)

func TestStandIn_AnswersJigsProvider(t *testing.T) {
	t.Parallel()
	server := startStandIn()
	defer server.Close()
	router := model.NewRouter(model.Settings{OpenAI: model.Provider{BaseURL: server.URL + "/v1/"}})
	input, err := planInput(plan{Passes: 1, Calls: 2})
	require.NoError(t, err)
	request := chat.Request{
		Model: standInModel, Pass: 1, Tools: []jig.Tool{{Name: noopTool}},
		Exchanges: []chat.Exchange{{Messages: []chat.Message{{Text: "Input: " + string(input)}}}},
	}
	turn, err := router.Answer(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, chat.StopCalls, turn.Stop)
	require.Len(t, turn.Calls, 2)
	require.Equal(t, noopTool, turn.Calls[1].Name)
	require.NotEqual(t, turn.Calls[0].Input, turn.Calls[1].Input, "the same call never runs twice")

	request.Exchanges = append(request.Exchanges, chat.Exchange{Pass: 1, Turn: &turn})
	turn, err = router.Answer(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, chat.StopEnd, turn.Stop)
	require.Equal(t, "done", turn.Text)
}

func TestStandIn_RefusesARequestWithoutAPlan(t *testing.T) {
	t.Parallel()
	_, err := nextTurn(wireRequest{Messages: []wireMessage{{Role: "system", Content: `{"passes":1}`}}})
	require.ErrorContains(t, err, "no user message")
	_, err = nextTurn(wireRequest{Messages: []wireMessage{{Role: "user", Content: "hello"}}})
	require.ErrorContains(t, err, `read the plan in "hello"`)
	_, err = nextTurn(wireRequest{Messages: []wireMessage{{Role: "user", Content: `{"passes":1,"calls":1}`}}})
	require.ErrorContains(t, err, "none is offered")
}

func TestBareLoop_MakesAllCalls(t *testing.T) {
	t.Parallel()
	server := startStandIn()
	defer server.Close()
	loop := newBareLoop(server.URL + "/v1/")
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	asked, called := 0, 0
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == bareThink {
			asked++
		} else {
			called++
		}
	})
	env.RegisterActivityWithOptions(loop.think, activity.RegisterOptions{Name: bareThink})
	env.RegisterActivityWithOptions(loop.call, activity.RegisterOptions{Name: bareCall})
	env.ExecuteWorkflow(BareLoop, LoopInput{Plan: plan{Passes: 3, Calls: 5}})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 4, asked)
	require.Equal(t, 15, called)
	require.Empty(t, loop.conversations, "the conversation is forgotten at the end")
}

// rivalOf returns a rival whose program is a function.
func rivalOf(t *testing.T, first string, do func(rivalCommand) string) (*rival, error) {
	t.Helper()
	commands, in := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = fmt.Fprint(answers, first)
		lines := json.NewDecoder(commands)
		for {
			var c rivalCommand
			if lines.Decode(&c) != nil {
				_ = answers.Close()
				return
			}
			_, _ = fmt.Fprintln(answers, do(c))
		}
	}()
	return newRival(in, out, func() error { <-ended; return nil })
}

func TestRival_RunsCommands(t *testing.T) {
	t.Parallel()
	var got []rivalCommand
	r, err := rivalOf(t, `{"name":"other v1"}`+"\n", func(c rivalCommand) string {
		got = append(got, c)
		return map[string]string{
			"sessions": `{"ms":[1.5,2.5],"elapsed_ms":4000}`, "approvals": `{"ms":[7]}`,
		}[c.Do]
	})
	require.NoError(t, err)
	require.Equal(t, "other v1", r.name)
	times, elapsed, err := r.sessions(t.Context(), plan{Passes: 3, Calls: 5}, 2, 20)
	require.NoError(t, err)
	require.Equal(t, []float64{1.5, 2.5}, times)
	require.Equal(t, 4*time.Second, elapsed)
	times, err = r.approvals(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []float64{7}, times)
	_, err = r.approvals(t.Context(), 2)
	require.ErrorContains(t, err, "1 times for 2 sessions")
	require.NoError(t, r.close())
	require.Equal(t, rivalCommand{Do: "sessions", Passes: 3, Calls: 5, Sessions: 2, AtOnce: 20}, got[0])
	require.Equal(t, rivalCommand{Do: "approvals", Sessions: 1, After: 50}, got[1])
}

func TestRival_ReportsItsErrors(t *testing.T) {
	t.Parallel()
	_, err := rivalOf(t, `{"error":"no Temporal"}`+"\n", nil)
	require.ErrorContains(t, err, "no Temporal")
	_, err = rivalOf(t, "{}\n", nil)
	require.ErrorContains(t, err, "does not say its name")
	r, err := rivalOf(t, `{"name":"other"}`+"\n", func(rivalCommand) string { return `{"error":"it broke"}` })
	require.NoError(t, err)
	_, _, err = r.sessions(t.Context(), plan{}, 1, 1)
	require.ErrorContains(t, err, "it broke")
	require.NoError(t, r.close())
	ended := errors.New("exit status 1")
	_, err = newRival(nopCloser{io.Discard}, strings.NewReader(""), func() error { return ended })
	require.ErrorIs(t, err, ended)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// contestOf returns a measurement in which bare takes 100 ms and does 10 sessions/s.
func contestOf(latency, rate map[string]float64) contest {
	m := contest{latency: map[string][]float64{bareName: {100}}, rate: map[string][]float64{bareName: {10}}}
	for name, v := range latency {
		m.latency[name] = []float64{v}
	}
	for name, v := range rate {
		m.rate[name] = []float64{v}
	}
	return m
}

func TestContest_JudgesEachSetting(t *testing.T) {
	t.Parallel()
	latency := map[string]float64{"default": 160, "auto": 121, "local": 85, "local and auto": 60}
	rate := map[string]float64{"default": 7.5, "auto": 9, "local": 13.9, "local and auto": 19}
	rows := contestOf(latency, rate).rows(contestJobs()[0], 20)
	verdicts := make([]verdict, len(rows))
	for i, r := range rows {
		verdicts[i] = r.verdict
	}
	require.Equal(t, []verdict{met, met, missed, met, met, missed, met, met, notJudged}, verdicts)
	require.Equal(t, "≤ 1.6 × bare loop", rows[0].target)
	require.Equal(t, "≥ 0.75 × bare loop", rows[1].target)
	require.Equal(t, "agent-sdk-go was not measured", rows[8].baseline)

	latency[rivalName], rate[rivalName] = 160, 7.5
	rows = contestOf(latency, rate).rows(contestJobs()[0], 20)
	verdicts = verdicts[:0]
	for _, r := range rows[8:] {
		verdicts = append(verdicts, r.verdict)
	}
	require.Equal(t, []verdict{notJudged, notJudged, met, met, met, met, missed, missed, met, met}, verdicts)
	require.Equal(t, "≤ 0.5 × agent-sdk-go", rows[14].target)
	require.Equal(t, "≥ 2 × agent-sdk-go", rows[15].target)

	rows = contestOf(latency, rate).rows(contestJobs()[1], 20)
	require.Equal(t, "≤ 1.5 × bare loop", rows[0].target)
	require.Empty(t, rows[1].target)
	require.Equal(t, "≤ 0.75 × bare loop", rows[6].target)
	for _, r := range rows[8:] {
		require.Equal(t, notJudged, r.verdict, r.figure)
	}
}

func TestWork_LeavesOutWhatAnIdleServerCounts(t *testing.T) {
	t.Parallel()
	at := time.Now()
	began := counters{at: at, xids: 100, commits: 200, visibility: 300}
	done := counters{at: at.Add(5 * time.Second), xids: 220}
	ended := counters{at: at.Add(20 * time.Second), xids: 280, commits: 500, visibility: 330}
	later := counters{at: at.Add(30 * time.Second), xids: 320, commits: 600, visibility: 330}
	require.Equal(t, counters{xids: 10, commits: 10, visibility: 3}, work(began, done, ended, later).times(0.1))
	ended.commits = 350
	require.Zero(t, work(began, done, ended, later).commits, "a side that does not use jig's database")
}

func TestQuiet_ReadsUntilNothingIsWritten(t *testing.T) {
	t.Parallel()
	var rows []float64
	read := func(context.Context) (counters, error) {
		c := counters{at: time.Now(), visibility: rows[0]}
		rows = rows[1:]
		return c, nil
	}
	rows = []float64{3, 5, 9, 9, 10}
	before, latest, err := quiet(t.Context(), 0, read)
	require.NoError(t, err)
	require.InDelta(t, 9, before.visibility, 0)
	require.InDelta(t, 9, latest.visibility, 0)
	require.True(t, before.at.Before(latest.at))
	require.Equal(t, []float64{10}, rows)

	rows = []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	_, latest, err = quiet(t.Context(), 0, read)
	require.NoError(t, err)
	require.InDelta(t, 10, latest.visibility, 0, "it stops waiting for a server that is never quiet")
}

func TestFlush_StartsItsOwnServers(t *testing.T) {
	t.Parallel()
	require.Contains(t, serverFlags(1500*time.Microsecond), "commit_delay=1500,commit_siblings=0,wal_level=replica,max_wal_size=2GB")
	environ := []string{"PATH=/bin", "JIG_DATABASE_URL=x", "JIG_DATABASE_OWNER_URL=y", "JIG_TEMPORAL_ADDRESS=z"}
	require.Equal(t, []string{"PATH=/bin"}, withoutServers(environ))
	require.Len(t, environ, 4)

	o, err := parse([]string{"-flush", "1ms"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, time.Millisecond, o.flush)
	require.Empty(t, o.out, "a run with a slow disk does not replace the document")
	_, err = parse([]string{"-flush", "101ms"}, io.Discard)
	require.Error(t, err)
}
