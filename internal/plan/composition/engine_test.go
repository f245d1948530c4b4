package composition_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

func versionOf(body string) string {
	version, err := canonical.Hash(map[string]string{"kind": "composition", "body": body})
	if err != nil {
		panic(err)
	}
	return version
}

func TestEngine_LoadReturnsTheContract(t *testing.T) {
	t.Parallel()
	e := composition.NewEngine()
	tool, err := e.Load("a.yaml", []byte(everything))
	require.NoError(t, err)
	require.Equal(t, "test.everything", tool.Contract.Name)
	require.Equal(t, versionOf(everything), tool.Contract.Version)
	require.Equal(t, "composition", tool.Contract.Implementation)
	require.Nil(t, tool.Run, "it runs as a workflow")

	_, err = e.Load("a.yaml", []byte("kind: composition\nname: test.bad\nsteps: []\nextra: 1\n"))
	var problems spec.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

func TestEngine_AdvancesOnlyTheRunsVersion(t *testing.T) {
	t.Parallel()
	e := composition.NewEngine()
	at := composition.Situation{Now: start, Input: json.RawMessage(`{"n":1,"list":[]}`)}
	move, err := e.Advance(t.Context(), versionOf(everything), []byte(everything), nil, empty{}, at)
	require.NoError(t, err)
	require.Len(t, move.Calls, 1)
	_, err = e.Advance(t.Context(), "0123456789abcdef", []byte(everything), move.State, empty{}, at)
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))

	changed := everything + "# changed\n"
	_, err = e.Advance(t.Context(), versionOf(changed), []byte(changed), move.State, empty{}, at)
	require.ErrorContains(t, err, "is not one of this version")
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
}

func TestEngine_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	e := composition.NewEngine()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := range 300 { // more than the engine keeps
				body := fmt.Sprintf("kind: composition\nname: test.c%d\nsteps: [{id: a, tool: x.a}]\n", i)
				move, err := e.Advance(t.Context(), versionOf(body), []byte(body), nil, empty{}, composition.Situation{Now: start})
				if err != nil || len(move.Calls) != 1 {
					t.Errorf("%v, %v", err, move.Calls)
				}
			}
		})
	}
	wait.Wait()
}
