package activities_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

func TestSignature_IdentifiesEqualCalls(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "data.get", Permission: jig.PermissionRead}
	write := jig.Tool{Name: "data.put", Permission: jig.PermissionWrite}
	in := []byte(`{"a":1}`)
	one, again := activities.Signature(read, in, 0), activities.Signature(read, in, 0)
	require.Equal(t, one, again)
	require.NotEqual(t, activities.Signature(read, in, 0), activities.Signature(read, in, 1), "a read may look again after a write")
	require.Equal(t, activities.Signature(write, in, 0), activities.Signature(write, in, 1), "a write never runs twice")
	require.NotEqual(t, activities.Signature(write, in, 0), activities.Signature(write, []byte(`{"a":2}`), 0))
	require.NotEqual(t, activities.Signature(read, in, 0), activities.Signature(jig.Tool{Name: "data.get2", Permission: jig.PermissionRead}, in, 0))
}

// Other programs compute the digest in this way.
func TestDigest_IsTheHashOfTheDocumentedJSON(t *testing.T) {
	t.Parallel()
	got, err := activities.Digest("ins_1", jig.Call{
		Tenant: "acme", SessionID: "ses_1", ID: "1.1", Tool: "billing.pay", Version: "f00d", Input: []byte(`{"to": "é<", "amount": 1.50}`), PolicyVersion: "shop@c0de",
	})
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(`{"call":"1.1","input":{"amount":1.5,"to":"é<"},"installation":"ins_1","policy_version":"shop@c0de","preview":null,` +
		`"session":"ses_1","tenant":"acme","tool":"billing.pay","v":2,"version":"f00d"}`))
	require.Equal(t, hex.EncodeToString(sum[:]), got)
}

func TestDigest_CoversEverythingShown(t *testing.T) {
	t.Parallel()
	base := jig.Call{Tenant: "t", SessionID: "s", ID: "1.1", Tool: "a.b", Version: "v", Input: []byte(`{"x":1}`), PolicyVersion: "p"}
	same, err := activities.Digest("i", base)
	require.NoError(t, err)
	for name, change := range map[string]func(*jig.Call){
		"tenant":  func(c *jig.Call) { c.Tenant = "u" },
		"session": func(c *jig.Call) { c.SessionID = "r" },
		"call":    func(c *jig.Call) { c.ID = "1.2" },
		"tool":    func(c *jig.Call) { c.Tool = "a.c" },
		"version": func(c *jig.Call) { c.Version = "w" },
		"input":   func(c *jig.Call) { c.Input = []byte(`{"x":2}`) },
		"policy":  func(c *jig.Call) { c.PolicyVersion = "q" },
	} {
		changed := base
		change(&changed)
		other, err := activities.Digest("i", changed)
		require.NoError(t, err)
		require.NotEqual(t, same, other, name)
	}
	other, err := activities.Digest("j", base)
	require.NoError(t, err)
	require.NotEqual(t, same, other, "installation")
	reordered := base
	reordered.Input = []byte(` { "x" : 1.0 } `)
	other, err = activities.Digest("i", reordered)
	require.NoError(t, err)
	require.Equal(t, same, other, "RFC 8785: white space and number form do not matter")
}

func TestWithDefaults_FillsNestedObjects(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3},"o":{"type":"object","properties":{"p":{"default":"x"}}},"s":{"type":"string"}}}`)
	for in, want := range map[string]string{
		`{}`:               `{"n":3}`,
		`{"n":4}`:          `{"n":4}`,
		`{"o":{}}`:         `{"n":3,"o":{"p":"x"}}`,
		`{"n":null}`:       `{"n":null}`,
		`[1]`:              `[1]`,
		`"text"`:           `"text"`,
		`{"n":1,"s":"hi"}`: `{"n":1,"s":"hi"}`,
	} {
		require.JSONEq(t, want, string(activities.WithDefaults(schema, json.RawMessage(in))), in)
	}
	require.Equal(t, `null`, string(activities.WithDefaults(schema, json.RawMessage(`null`))))
}
