package stack

import (
	"os"
	"path/filepath"

	"github.com/jig-run/jig/dev/internal/pg"
)

// PG returns the PostgreSQL server, so that tests can stop, kill and start it. It is nil if the stack uses an existing server.
func (s *Stack) PG() *pg.Server { return s.postgres }

// TemporalAddress returns the address of Temporal's frontend, host:port.
func (s *Stack) TemporalAddress() string { return s.temporal.Address() }

// Namespace returns the namespace that was registered.
func (s *Stack) Namespace() string { return s.temporal.Namespace() }

// UIAddress returns the URL of the Web UI, or "" without a Web UI.
func (s *Stack) UIAddress() string { return s.temporal.UI() }

// DatabaseURL returns the URL for connecting to jig's database with the worker's role.
func (s *Stack) DatabaseURL() string { return s.appURL }

// ServerURL returns the URL for connecting to jig's database with the server's role, or "" if there is no such role.
func (s *Stack) ServerURL() string { return s.serverURL }

// OwnerURL returns the URL for connecting to jig's database as its owner, for migrations.
func (s *Stack) OwnerURL() string { return s.ownerURL }

// DataDir returns the absolute path of the folder with the logs, dev.env and, unless ephemeral, the data.
func (s *Stack) DataDir() string { return s.opts.DataDir }

// Failed returns a channel that yields an error when a part cannot continue.
func (s *Stack) Failed() <-chan error { return s.failed }

// Environment returns the environment variables that jig's programs read, as KEY=value.
func (s *Stack) Environment() []string {
	env := []string{
		"JIG_TEMPORAL_ADDRESS=" + s.TemporalAddress(),
		"JIG_TEMPORAL_NAMESPACE=" + s.Namespace(),
		"TEMPORAL_ADDRESS=" + s.TemporalAddress(), // for Temporal's own command
		"TEMPORAL_NAMESPACE=" + s.Namespace(),
		"JIG_DATABASE_URL=" + s.DatabaseURL(),
		"JIG_DATABASE_OWNER_URL=" + s.OwnerURL(),
		"JIG_APPROVALS_SIGNALS=trusted", // the machine belongs to one person, so decisions need no proof
	}
	if os.Getenv("JIG_WORKDIR") == "" { // tenant default works in the worker's directory, other tenants below jig's data folder
		env = append(env, "JIG_WORKDIR="+filepath.Join(s.DataDir(), "work"), "JIG_WORKDIR_DEFAULT=.")
	}
	if s.serverURL != "" {
		env = append(env, "JIG_SERVER_DATABASE_URL="+s.serverURL)
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
