package cache_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
)

func TestTexts_CompileATextOnce(t *testing.T) {
	t.Parallel()
	texts := cache.NewTexts[string]()
	compiled := 0
	get := func(body string) string {
		value, err := texts.Get([]byte(body), func() (string, error) {
			compiled++
			return "compiled " + body, nil
		})
		require.NoError(t, err)
		return value
	}
	for range 2 {
		require.Equal(t, "compiled used", get("used"))
	}
	require.Equal(t, 1, compiled)
	for i := range 1000 {
		require.Equal(t, "compiled "+strconv.Itoa(i), get(strconv.Itoa(i)))
		get("used")
	}
	require.Equal(t, 1001, compiled, "entries in use stay")
	get("999")
	require.Equal(t, 1001, compiled)
	get("0")
	require.Equal(t, 1002, compiled, "the least recently used entries are dropped")

	_, err := texts.Get([]byte("bad"), func() (string, error) { return "", jig.Errorf(jig.CodeInvalidInput, "bad") })
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.Equal(t, "compiled bad", get("bad"), "errors are not kept")
}

// Callers that need a text while it is being compiled wait for the result.
func TestTexts_CompileOnceForCallersAtTheSameTime(t *testing.T) {
	t.Parallel()
	texts := cache.NewTexts[int32]()
	var compiled atomic.Int32
	release := make(chan struct{})
	var asked, all sync.WaitGroup
	got := make([]int32, 8)
	for i := range got {
		asked.Add(1)
		all.Go(func() {
			asked.Done()
			got[i], _ = texts.Get([]byte("large"), func() (int32, error) { //nolint:errcheck // it returns none
				<-release
				return compiled.Add(1), nil
			})
		})
	}
	asked.Wait()
	close(release)
	all.Wait()
	require.Equal(t, []int32{1, 1, 1, 1, 1, 1, 1, 1}, got)
	require.EqualValues(t, 1, compiled.Load())
}
