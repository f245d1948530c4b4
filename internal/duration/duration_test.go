package duration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/duration"
)

func TestParse_ReadsDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "48h": 48 * time.Hour, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0s": 0,
		"3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0.1d": 144 * time.Minute, "1.5d30m": 36*time.Hour + 30*time.Minute,
		"99999d": 99999 * 24 * time.Hour,
	} {
		got, err := duration.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "3", "d", "3w", "-1h", "-1d", "+1h", "1h2d", "1 h", ".5h", "1.d", "1e1d", "1us", "999999999999h", "100000d", "99999d9999999h",
	} {
		_, err := duration.Parse(text)
		require.Error(t, err, text)
	}
}

func TestFormat_IsShort(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "30s": 30 * time.Second, "1m30s": 90 * time.Second, "10m": 10 * time.Minute, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute,
		"1h0m5s": time.Hour + 5*time.Second, "2d": 48 * time.Hour, "36h": 36 * time.Hour, "-48h": -48 * time.Hour,
	} {
		require.Equal(t, want, duration.Format(d))
	}
	require.Equal(t, "48h", duration.Short(48*time.Hour))
}

func FuzzParse(f *testing.F) {
	f.Add("1d12h")
	f.Add("1.5d")
	f.Add("99999.999999999d9h")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := duration.Parse(text)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, d, time.Duration(0))
		for _, format := range []func(time.Duration) string{duration.Format, duration.Short} {
			again, err := duration.Parse(format(d))
			if d%time.Millisecond == 0 { // the form has no smaller unit
				require.NoError(t, err)
				require.Equal(t, d, again)
			}
		}
	})
}
