package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/attack"
)

// A key that does everything it can to a small server leaves another tenant its share: none of the other tenant's requests fails.
func TestAttack_LeavesOthersTheirShare(t *testing.T) {
	t.Parallel()
	o := joinTenantEnv(t)
	small := o.serve("JIG_HTTP_STREAMS=10", "JIG_HTTP_REQUESTS=10")
	phases, err := attack.Run(t.Context(), attack.Options{
		URL: small.url, Attacker: o.apiKey(o.tenant+"a", "--scope", "read", "--scope", "run"), Other: o.apiKey(o.tenant, everything()...),
		Calls: 2, Streams: 30, Waits: 30, Bodies: 5, Starts: 2, Idle: 150, Only: attack.Everything,
	})
	require.NoError(t, err)
	require.Len(t, phases, 1)
	require.Len(t, phases[0].Decisions, 2)
}

// fakeCluster keeps what is made in files, like kubectl in a cluster.
const fakeCluster = `#!/bin/sh
set -eu
shift 2 # -n NAMESPACE
case "$1 $2" in
  "get secret") [ ! -e "$CLUSTER/server.key" ] || echo "secret/$3" ;;
  "create secret") cp "${5#--from-file=server.key=}" "$CLUSTER/server.key" ;;
  "create configmap") echo "${4#--from-literal=}" ;;
  "apply -f") cat >"$CLUSTER/worker.env" ;;
  *) exit 2 ;;
esac
`

// The keys that the script for Kubernetes makes let a server vouch from its first request on. Running it again changes nothing, and the private root key is
// in none of its files.
func TestKeysScript_LetsTheServerVouch(t *testing.T) {
	t.Parallel()
	d := newTestEnv(t)
	cluster := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(cluster, "kubectl"), []byte(fakeCluster), 0o700))
	script, err := filepath.Abs("../../deploy/kubernetes/keys.sh")
	require.NoError(t, err)
	run := func() commandResult {
		made := d.command("env", "CLUSTER="+cluster, "TMPDIR="+cluster, "KUBECTL="+filepath.Join(cluster, "kubectl"), "JIG="+shared.cli.path(t), script)
		require.Zero(t, made.code, made.err)
		return made
	}
	made := run()
	_, secret, found := strings.Cut(made.out, "-----BEGIN PRIVATE KEY-----\n")
	require.True(t, found, made.out)
	key, err := os.ReadFile(filepath.Join(cluster, "server.key"))
	require.NoError(t, err)
	setting, err := os.ReadFile(filepath.Join(cluster, "worker.env"))
	require.NoError(t, err)
	require.NotContains(t, string(key)+string(setting), strings.TrimSpace(strings.Split(secret, "\n")[0]))
	left, err := filepath.Glob(filepath.Join(cluster, "*"))
	require.NoError(t, err)
	require.Len(t, left, 3, "its own files are gone")
	require.Empty(t, run().out)

	d.env = append(d.env, strings.TrimSpace(string(setting)))
	d.start()
	require.NoError(t, d.answers())
	o := tenantEnv{testEnv: d, tenant: "cluster-" + d.name[:8]}
	ana := apiClient{o.serve("JIG_SERVER_KEY=" + filepath.Join(cluster, "server.key")), o.apiKey(o.tenant, everything()...)}
	require.Equal(t, "vouched", get[map[string]any](ana, "/v1/me")["proof"])
	ana.begins("first")
	asked := ana.waits("first")
	require.Equal(t, "ana", asked.RequestedBy)
	require.NotEmpty(t, asked.Askers)
	for _, asker := range asked.Askers {
		require.False(t, asker.Claimed, "the worker believes the server")
	}
}
