package starter

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/spec"
)

// newKey creates a key with the command and returns its file and the public key that verifies its tokens.
func newKey(t *testing.T, principal string) (file string, key identity.Key) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "a.key")
	got := jigCLI(t, &fake{}, nil, "key", "new", "--principal", principal, "--out", file, "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	var made madeKey
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &made))
	require.Equal(t, file, made.File)
	material, err := base64.StdEncoding.DecodeString(made.PublicKey)
	require.NoError(t, err)
	return file, identity.Key{ID: made.ID, Algorithm: made.Algorithm, Principal: made.Principal, Material: material}
}

// signed returns an app with a signing key.
func signed(t *testing.T, principal string, change func(*app)) (*app, identity.Key) {
	t.Helper()
	file, key := newKey(t, principal)
	a := newApp("jig", []string{"USER=laptop", signingKeySetting + "=" + file}, strings.NewReader(""), nil, nil)
	a.flags.output = outputText
	if change != nil {
		change(a)
	}
	require.NoError(t, a.begin())
	return a, key
}

func TestKeyNew_WritesAPrivateFile(t *testing.T) {
	t.Parallel()
	for _, principal := range []string{"ana", "ana@example.com", `o'neil "the key" @example.com`, "true", "größe: 1, {x}"} {
		file := filepath.Join(t.TempDir(), "a.key")
		got := jigCLI(t, &fake{}, nil, "key", "new", "--principal", principal, "--out", file)
		require.Equal(t, 0, got.code, got.stderr)
		require.Contains(t, got.stderr, file)
		var doc struct {
			Keys []map[string]string `yaml:"keys"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(got.stdout), &doc), got.stdout)
		require.Len(t, doc.Keys, 1)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := readKeyFile(file, content, "somebody else")
		require.NoError(t, err)
		require.Equal(t, principal, s.Principal())
		require.Equal(t, map[string]string{
			"id": s.ID(), "algorithm": "ed25519", "principal": principal, "public_key": base64.StdEncoding.EncodeToString(s.Key().Material),
		}, doc.Keys[0])
		_, problems := spec.Load("tenant.yaml", []byte("kind: tenant\nname: default\n"+got.stdout))
		require.NoError(t, problems.OrNil(), "a tenant's document accepts the printed lines")
		require.Equal(t, token.KeyID(principal, s.Key().Material), s.ID())
		require.NotContains(t, got.stdout+got.stderr, strings.Split(string(content), "\n")[2], "the private key is printed")
		if runtime.GOOS != "windows" {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}
}

func TestKeyNew_RefusesMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.key")
	require.NoError(t, os.WriteFile(taken, []byte("precious"), 0o600))
	free := filepath.Join(dir, "free.key")
	tests := map[string]struct {
		args []string
		why  string
	}{
		"no principal":   {[]string{"key", "new", "--out", free}, "--principal is missing"},
		"no file":        {[]string{"key", "new", "--principal", "ana"}, "--out is missing"},
		"two lines":      {[]string{"key", "new", "--principal", "ana\n# principal: ben", "--out", free}, "not a principal"},
		"spaces":         {[]string{"key", "new", "--principal", " ana", "--out", free}, "not a principal"},
		"too long":       {[]string{"key", "new", "--principal", strings.Repeat("a", 129), "--out", free}, "not a principal"},
		"overwrite":      {[]string{"key", "new", "--principal", "ana", "--out", taken}, "never overwritten"},
		"no such folder": {[]string{"key", "new", "--principal", "ana", "--out", filepath.Join(dir, "none", "a.key")}, "--out"},
		"unknown":        {[]string{"key", "old"}, "unknown command"},
	}
	for name, tt := range tests {
		got := jigCLI(t, &fake{}, nil, tt.args...)
		require.Equal(t, exitUsage, got.code, name)
		require.Contains(t, got.stderr, tt.why, name)
		require.Empty(t, got.stdout, name)
	}
	content, err := os.ReadFile(taken)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
	require.NoFileExists(t, free)
}

func TestSign_NeedsAKey(t *testing.T) {
	t.Parallel()
	a := newApp("jig", []string{"USER=ana"}, strings.NewReader(""), nil, nil)
	a.flags.output = outputText
	require.NoError(t, a.begin())
	_, signs, err := a.signer()
	require.NoError(t, err)
	require.False(t, signs)
	text, err := a.sign(identity.Claim{Tenant: "default", Action: token.ActionPause, Subject: "tenant"})
	require.NoError(t, err)
	require.Empty(t, text)
	who, err := a.actor()
	require.NoError(t, err)
	require.Equal(t, "ana", who)
}

func TestSign_FillsInThePrincipal(t *testing.T) {
	t.Parallel()
	a, key := signed(t, "ana", nil)
	want := identity.Claim{Tenant: "default", Action: token.ActionPause, Subject: "tenant"}
	text, err := a.sign(want)
	require.NoError(t, err)
	who, evidence, err := token.Verify(text, []identity.Key{key}, want, time.Now())
	require.NoError(t, err)
	require.Equal(t, "ana", who)
	require.Equal(t, key.ID, evidence.Key)

	want.Principal = "ben"
	_, err = a.sign(want)
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))

	other, otherKey := newKey(t, "ben")
	a.flags.key = other // the flag takes precedence over the environment
	text, err = a.sign(want)
	require.NoError(t, err)
	who, _, err = token.Verify(text, []identity.Key{key, otherKey}, want, time.Now())
	require.NoError(t, err)
	require.Equal(t, "ben", who)
}

func TestActor_IsThePrincipalOfTheKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args    []string
		environ string
		refused bool
	}{
		"named by nobody":           {},
		"--as of the key":           {args: []string{"--as", "ana"}},
		"--as of another":           {args: []string{"--as", "laptop"}, refused: true},
		"JIG_PRINCIPAL of the key":  {environ: "ana"},
		"JIG_PRINCIPAL of another":  {environ: "ben", refused: true},
		"--as before JIG_PRINCIPAL": {args: []string{"--as", "ana"}, environ: "ben"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _ := newKey(t, "ana")
			args := append([]string{"token", "ses_1", "3.1", "--action", "deny", "--digest", "d1", "--key", file, "--output", "json"}, tt.args...)
			got := jigCLI(t, &fake{}, func(a *app) {
				a.env["USER"] = "laptop"
				if tt.environ != "" {
					a.env["JIG_PRINCIPAL"] = tt.environ
				}
			}, args...)
			if tt.refused {
				require.Equal(t, exitUsage, got.code)
				require.Contains(t, got.stderr, "belongs to ana")
				require.Empty(t, got.stdout)
				return
			}
			require.Equal(t, 0, got.code, got.stderr)
			require.Contains(t, got.stdout, `"principal":"ana"`)
		})
	}
}

func TestKeyFile_NamesThePrincipal(t *testing.T) {
	t.Parallel()
	private, _, err := token.NewKey()
	require.NoError(t, err)
	bare, err := readKeyFile("openssl.pem", private, "ana")
	require.NoError(t, err)
	require.Equal(t, "ana", bare.Principal(), "a key without a principal belongs to the principal of --as")
	late, err := readKeyFile("a.key", append(append([]byte{}, private...), []byte(principalLine+"ben\n")...), "ana")
	require.NoError(t, err)
	require.Equal(t, "ana", late.Principal(), "lines after the key are ignored")
	_, err = readKeyFile("a.key", []byte("please"), "ana")
	require.ErrorContains(t, err, "a.key: ")

	for name, value := range map[string]string{"missing": filepath.Join(t.TempDir(), "none.key"), "stdin": "-"} {
		a, _ := signed(t, "ana", func(a *app) { a.env[signingKeySetting] = value })
		_, _, err := a.signer()
		require.ErrorContains(t, err, signingKeySetting, name)
		_, err = a.sign(identity.Claim{})
		require.Error(t, err, name)
	}
}

func TestKeyEnrol_CallsTheTool(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "ana")
	f := &fake{trigger: client.CallResult{SessionID: "ses_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}}
	got := jigCLI(t, f, nil, "key", "enrol", "--key", file, "--tenant", "acme")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "tenants.enrol_key", f.input.Tool)
	var in map[string]string
	require.NoError(t, json.Unmarshal(f.input.Input, &in))
	require.Equal(t, base64.StdEncoding.EncodeToString(key.Material), in["public_key"])
	require.Equal(t, key.ID, in["id"])
	require.NoError(t, token.VerifyEnrolment(key, in["token"], "ins_fake", "acme"))
	require.Error(t, token.VerifyEnrolment(key, in["token"], "ins_fake", "zeta"))
	require.ErrorContains(t, token.VerifyEnrolment(key, in["token"], "ins_other", "acme"), "another installation")

	got = jigCLI(t, &fake{}, nil, "key", "enrol")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "jig key new")
}
