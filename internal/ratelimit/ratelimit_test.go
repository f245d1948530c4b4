package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ratelimit"
)

// In any period, no more calls begin than the rate allows, and with a burst at most burst - 1 more.
func TestClaim_Rate(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for burst := 1; burst <= 4; burst++ {
		c := ratelimit.Claim{Rate: 3, Period: time.Minute, Burst: burst}
		next := start
		var begun []time.Time
		for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(7 * time.Second) { // many more calls than fit
			s := ratelimit.State{Now: now, Next: next}
			if c.Wait(s) == 0 {
				next = c.Taken(s)
				begun = append(begun, now)
			}
		}
		require.GreaterOrEqual(t, len(begun), 25)
		for i, first := range begun {
			within := 0
			for _, at := range begun[i:] {
				if at.Before(first.Add(time.Minute)) {
					within++
				}
			}
			require.LessOrEqual(t, within, 3+burst-1)
		}
	}
}

func TestClaim_Wait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rate := ratelimit.Claim{Rate: 6, Period: time.Minute, Burst: 3}
	slots := ratelimit.Claim{Concurrency: 4}
	for name, row := range map[string]struct {
		claim ratelimit.Claim
		state ratelimit.State
		want  time.Duration
	}{
		"never used":                     {rate, ratelimit.State{Next: now}, 0},
		"used long ago":                  {rate, ratelimit.State{Next: now.Add(-time.Hour)}, 0},
		"the burst":                      {rate, ratelimit.State{Next: now.Add(20 * time.Second)}, 0},
		"after the burst":                {rate, ratelimit.State{Next: now.Add(25 * time.Second)}, 5 * time.Second},
		"two wait":                       {rate, ratelimit.State{Next: now.Add(25 * time.Second), Ahead: 2}, 25 * time.Second},
		"others wait, but there is room": {rate, ratelimit.State{Next: now, Ahead: 2}, 0},
		"a stricter limit was replaced":  {rate, ratelimit.State{Next: now.Add(24 * time.Hour)}, 10 * time.Second},
		"a place":                        {slots, ratelimit.State{Running: 3}, 0},
		"no place":                       {slots, ratelimit.State{Running: 4}, 500 * time.Millisecond},
		"the place is another call's":    {slots, ratelimit.State{Running: 3, Ahead: 1}, 500 * time.Millisecond},
		"many wait":                      {slots, ratelimit.State{Running: 4, Ahead: 40}, 5500 * time.Millisecond},
		"it has its place":               {slots, ratelimit.State{Running: 4, Runs: true}, 0},
		"the limit was lowered":          {slots, ratelimit.State{Running: 9}, 500 * time.Millisecond},
		"neither rate nor places":        {ratelimit.Claim{}, ratelimit.State{Ahead: 9}, 0},
	} {
		row.state.Now = now
		require.Equal(t, row.want, row.claim.Wait(row.state), name)
	}
}

func TestDecide_WaitsForTheLongestLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rate := ratelimit.Claim{Bucket: ratelimit.Bucket{Document: "apis", Limit: "hourly"}, Rate: 1, Period: time.Hour, Burst: 1, MaxWait: 10 * time.Minute}
	free, taken := ratelimit.State{Now: now, Next: now}, ratelimit.State{Now: now, Next: now.Add(time.Hour)}
	r := ratelimit.Request{Claims: []ratelimit.Claim{rate, rate}, Bounded: true}

	require.Equal(t, ratelimit.Verdict{Blocks: []bool{false, false}}, ratelimit.Decide(r, []ratelimit.State{free, free}))
	waits := ratelimit.Decide(r, []ratelimit.State{free, taken})
	require.Equal(t, []bool{false, true}, waits.Blocks)
	require.Equal(t, "limit hourly of rate limit apis allows 1 call per 1h", waits.Why)
	require.Equal(t, 5*time.Second, waits.Wait, "it looks whether the limit was changed")
	require.Equal(t, 20*time.Second, waits.Lives)
	starts := rate
	starts.Sessions, starts.Period = true, 4*time.Minute
	require.Equal(t, 4*time.Minute, ratelimit.Decide(ratelimit.Request{Claims: []ratelimit.Claim{starts}}, []ratelimit.State{taken}).Wait,
		"a session is told when its turn is, even if it is the first")
	crowd := taken
	crowd.Ahead = 200
	require.Equal(t, 5*time.Minute, ratelimit.Decide(r, []ratelimit.State{free, crowd}).Wait, "calls far back need not look so often")

	taken.Since = now.Add(-10*time.Minute + 3*time.Second)
	require.Equal(t, 3*time.Second, ratelimit.Decide(r, []ratelimit.State{free, taken}).Wait)
	taken.Since = now.Add(-10 * time.Minute)
	late := ratelimit.Decide(r, []ratelimit.State{free, taken})
	require.True(t, late.Expired)
	e := ratelimit.Expired(late.Why)
	require.Equal(t, jig.CodeRateLimited, e.Code)
	require.True(t, e.NotExecuted)
	r.Bounded = false
	require.False(t, ratelimit.Decide(r, []ratelimit.State{free, taken}).Expired)
}
