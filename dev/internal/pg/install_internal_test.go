package pg

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseVersion_ReadsPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out     string
		version string
		major   int
	}{
		{"postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n", "15.14", 15},
		{"postgres (PostgreSQL) 17.5\n", "17.5", 17},
		{"postgres (PostgreSQL) 18beta1\n", "18beta1", 18},
	} {
		version, major, err := parseVersion(tt.out)
		require.NoError(t, err)
		require.Equal(t, tt.version, version)
		require.Equal(t, tt.major, major)
	}
	_, _, err := parseVersion("psql 15")
	require.Error(t, err)
}

func TestChoose_TakesTheNewest(t *testing.T) {
	t.Parallel()
	installs := []Install{{Major: 17}, {Major: 15}}

	newest, err := choose(installs, 0, "/data")
	require.NoError(t, err)
	require.Equal(t, 17, newest.Major)

	matching, err := choose(installs, 15, "/data")
	require.NoError(t, err)
	require.Equal(t, 15, matching.Major)

	_, err = choose(installs, 14, "/data")
	require.EqualError(t, err, "the data in /data was created by PostgreSQL 14, but the installed versions are [17 15]: "+
		"install PostgreSQL 14, or start afresh with an empty data folder")

	_, err = choose(nil, 0, "/data")
	require.ErrorIs(t, err, errNotInstalled)
}
