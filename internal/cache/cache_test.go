package cache_test

import (
	"errors"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/cache"
)

// counter is read by a cache. Its value is how often it was read.
type counter struct{ reads int }

func (c *counter) read(int, bool) (int, error) {
	c.reads++
	return c.reads, nil
}

func TestCache_ReadsAgainWhenStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, of := cache.New[string, int](time.Second, 10), &counter{}
		get := func(key string) int {
			got, err := c.Get(key, of.read)
			require.NoError(t, err)
			return got
		}
		require.Equal(t, 1, get("a"))
		time.Sleep(time.Second - 1)
		require.Equal(t, 1, get("a"), "it is still fresh")
		require.Equal(t, 2, get("b"), "each key has its own")
		time.Sleep(time.Nanosecond)
		require.Equal(t, 3, get("a"))
		require.Equal(t, map[string]int{"a": 3, "b": 2}, maps.Collect(c.All()))
	})
}

func TestCache_PassesTheStaleValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, string](time.Second, 10)
		for _, want := range []string{"", "x", "xx"} {
			got, err := c.Get("a", func(stale string, known bool) (string, error) {
				require.Equal(t, want, stale)
				require.Equal(t, want != "", known)
				return stale + "x", nil
			})
			require.NoError(t, err)
			require.Equal(t, want+"x", got)
			time.Sleep(time.Second)
		}
	})
}

func TestCache_KeepsForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, of := cache.New[string, int](0, 10), &counter{}
		for range 3 {
			got, err := c.Get("a", of.read)
			require.NoError(t, err)
			require.Equal(t, 1, got)
			time.Sleep(1000 * time.Hour)
		}
	})
}

func TestCache_KeepsNoFailure(t *testing.T) {
	t.Parallel()
	c := cache.New[string, int](time.Hour, 10)
	failure := errors.New("no database")
	got, err := c.Get("a", func(int, bool) (int, error) { return 7, failure })
	require.ErrorIs(t, err, failure)
	require.Zero(t, got)
	require.Empty(t, maps.Collect(c.All()))
}

func TestCache_Forget(t *testing.T) {
	t.Parallel()
	c, of := cache.New[string, int](time.Hour, 10), &counter{}
	_, err := c.Get("a", of.read)
	require.NoError(t, err)
	c.Forget("a")
	got, err := c.Get("a", of.read)
	require.NoError(t, err)
	require.Equal(t, 2, got)
}

// A value that was read before a change is not cached after it.
func TestCache_ForgetWhileReading(t *testing.T) {
	t.Parallel()
	c, of := cache.New[string, int](time.Hour, 10), &counter{}
	_, err := c.Get("a", func(stale int, known bool) (int, error) {
		c.Forget("a")
		return of.read(stale, known)
	})
	require.NoError(t, err)
	got, err := c.Get("a", of.read)
	require.NoError(t, err)
	require.Equal(t, 2, got)
}

// Calls that read at the same time get the same value.
func TestCache_FirstReadWins(t *testing.T) {
	t.Parallel()
	c, of := cache.New[string, int](time.Hour, 10), &counter{}
	got, err := c.Get("a", func(stale int, known bool) (int, error) {
		first, err := c.Get("a", of.read)
		require.NoError(t, err)
		require.Equal(t, 1, first)
		return of.read(stale, known)
	})
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

func TestCache_IsBounded(t *testing.T) {
	t.Parallel()
	c, of := cache.New[string, int](time.Nanosecond, 10), &counter{}
	for i := range 25 {
		_, err := c.Get(strconv.Itoa(i), of.read)
		require.NoError(t, err)
		require.LessOrEqual(t, len(maps.Collect(c.All())), 10)
	}
	_, err := c.Get("24", of.read)
	require.NoError(t, err)
	require.Len(t, maps.Collect(c.All()), 10, "a value that is there is replaced")
}

func TestCache_DropsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c, of := cache.New[int, int](0, 3), &counter{}
	get := func(key int) int {
		got, err := c.Get(key, of.read)
		require.NoError(t, err)
		return got
	}
	for i := range 100 {
		get(i)
		require.Equal(t, 1, get(0), "what is in use stays")
	}
	require.Equal(t, 100, get(99))
	require.Equal(t, 101, get(1))
}

func TestCache_KeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	c, of := cache.New[string, int](0, 1), &counter{}
	for _, key := range []string{"a", "b"} {
		c.Put(key, 7)
		got, err := c.Get(key, of.read)
		require.NoError(t, err)
		require.Equal(t, 7, got)
	}
	got, err := c.Get("a", of.read)
	require.NoError(t, err)
	require.Equal(t, 1, got, "it was dropped for b")
}
