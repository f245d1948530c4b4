package canonical_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/canonical"
)

// The example in RFC 8785, section 3.2.2.
func TestJSON_FollowsRFC8785(t *testing.T) {
	t.Parallel()
	in := `{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
		"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`
	want := `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
		`"string":"€$\u000f\nA'B\"\\\\\"/"}`
	got, err := canonical.JSON([]byte(in))
	require.NoError(t, err)
	require.Equal(t, want, string(got))
	sum := sha256.Sum256([]byte(want))
	hash, err := canonical.Hash(json.RawMessage(in))
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:]), hash)
}

func TestHash_DoesNotDependOnHowEncodingJSONWritesText(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("{\"a\":\"<&>\u2028\"}"))
	hash, err := canonical.Hash(map[string]string{"a": "<&>\u2028"})
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:]), hash)
}

func TestJSON_RefusesWhatHasNoCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "{", `{"a":1,"a":2}`, `1e400`, `"\ud800"`, `{} {}`} {
		_, err := canonical.JSON([]byte(in))
		require.Error(t, err, in)
		_, err = canonical.Hash(json.RawMessage(in))
		if in != "" { // the JSON form of nil is null
			require.Error(t, err, in)
		}
	}
	_, err := canonical.Hash(func() {})
	require.Error(t, err)
}
