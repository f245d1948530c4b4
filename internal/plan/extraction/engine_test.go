package extraction_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

func TestEngine_RefusesAnotherVersion(t *testing.T) {
	t.Parallel()
	var loads atomic.Int32
	engine := extraction.NewEngine(func(_ string, body []byte) (kind entity.Type, err error) {
		loads.Add(1)
		if len(body) == 0 {
			return kind, errors.New("there is nothing")
		}
		kind = kindOf(compute("x", string(body)))
		kind.Version = "of " + string(body)
		return kind, nil
	}, lenient())
	at := plan.Situation{Input: json.RawMessage(`{"entity_id":"e"}`), Now: start}
	w := worldOf(nil, extraction.Input{}, nil)
	for i := range 600 {
		body := fmt.Sprint(i % 300)
		move, err := engine.Advance(t.Context(), "of "+body, []byte(body), nil, w, at)
		require.NoError(t, err)
		require.True(t, move.Done)
		var out extraction.Result
		require.NoError(t, json.Unmarshal(move.Result.Data, &out))
		require.JSONEq(t, body, string(out.Values["x"]))
	}
	before := loads.Load()
	_, err := engine.Advance(t.Context(), "of 299", []byte("299"), nil, w, at)
	require.NoError(t, err)
	require.Equal(t, before, loads.Load(), "a plan is made once")
	_, err = engine.Advance(t.Context(), "of 1", []byte("2"), nil, w, at)
	require.ErrorContains(t, err, "the extraction began with of 1")
	_, err = engine.Advance(t.Context(), "of 1", nil, nil, w, at)
	require.ErrorContains(t, err, "there is nothing")
	_, err = engine.Advance(t.Context(), "of 1 +", []byte("1 +"), nil, w, at)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}
