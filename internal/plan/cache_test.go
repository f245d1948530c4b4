package plan_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

func TestCache_CompilesADocumentOnce(t *testing.T) {
	t.Parallel()
	cache := plan.NewCache[string]()
	compiled := 0
	get := func(body string) string {
		value, err := cache.Get([]byte(body), func() (string, error) {
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

	_, err := cache.Get([]byte("bad"), func() (string, error) { return "", jig.Errorf(jig.CodeInvalidInput, "bad") })
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.Equal(t, "compiled bad", get("bad"), "errors are not kept")
}
