package stack

import (
	"os"
	"path/filepath"

	"github.com/jig-run/jig/dev/pg"
)

// PG is the PostgreSQL server, to stop, kill and start it in tests; nil when the server is somebody else's.
func (s *Stack) PG() *pg.Server { return s.postgres }

// TemporalAddress of the frontend, host:port.
func (s *Stack) TemporalAddress() string { return s.temporal.Address() }

// Namespace that was registered.
func (s *Stack) Namespace() string { return s.temporal.Namespace() }

// UIAddress is the URL of the Web UI; empty when it was left out.
func (s *Stack) UIAddress() string { return s.temporal.UI() }

// DatabaseURL connects to jig's database as the worker does.
func (s *Stack) DatabaseURL() string { return s.appURL }

// OwnerURL connects to jig's database as its owner, for migrations.
func (s *Stack) OwnerURL() string { return s.ownerURL }

// DataDir keeps logs, dev.env and, unless ephemeral, the data; absolute.
func (s *Stack) DataDir() string { return s.opts.DataDir }

// Failed yields an error when a part cannot go on.
func (s *Stack) Failed() <-chan error { return s.failed }

// Environment is what jig's programs read, as KEY=value.
func (s *Stack) Environment() []string {
	env := []string{
		"JIG_TEMPORAL_ADDRESS=" + s.TemporalAddress(),
		"JIG_TEMPORAL_NAMESPACE=" + s.Namespace(),
		"JIG_DATABASE_URL=" + s.DatabaseURL(),
		"JIG_DATABASE_OWNER_URL=" + s.OwnerURL(),
		"JIG_APPROVALS_SIGNALS=trusted", // one person's machine: nobody has to prove who they are
	}
	if os.Getenv("JIG_WORKDIR") == "" { // the tenant default works where the worker was started, others below jig's own folder
		env = append(env, "JIG_WORKDIR="+filepath.Join(s.DataDir(), "work"), "JIG_WORKDIR_DEFAULT=.")
	}
	if s.opts.Permissions != "" {
		env = append(env, "JIG_PERMISSIONS="+s.opts.Permissions)
	}
	if s.UIAddress() != "" {
		env = append(env, "JIG_UI_ADDRESS="+s.UIAddress(),
			"JIG_ENTITY_URL="+s.UIAddress()+"/namespaces/"+s.Namespace()+"/workflows/{session_id}")
	}
	return env
}
