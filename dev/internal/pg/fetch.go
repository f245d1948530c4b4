package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchVersion is the version that is downloaded if no PostgreSQL is installed.
const fetchVersion = embeddedpostgres.V17

// fetch downloads PostgreSQL's programs into a folder below cacheDir, unless they are already there, and returns them.
//
// The library has no function that only downloads, and its function that starts PostgreSQL does not work as root. So fetch
// gives it a data folder that looks initialized but is empty: the library downloads and unpacks the programs, and then
// `pg_ctl start` fails at once, which is expected.
func fetch(ctx context.Context, cacheDir string, log *slog.Logger) (Install, error) {
	home := filepath.Join(cacheDir, "postgresql-"+string(fetchVersion))
	bin := filepath.Join(home, "bin")
	if install, err := inspect(ctx, bin); err == nil {
		return install, nil
	}
	log.Info("no PostgreSQL is installed; downloading one", slog.String("version", string(fetchVersion)), slog.String("to", home))
	scratch, err := os.MkdirTemp("", "jig-postgres-*")
	if err != nil {
		return Install{}, fmt.Errorf("folder for the download: %w", err)
	}
	defer os.RemoveAll(scratch) // a temporary folder that is left over does no harm
	data := filepath.Join(scratch, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return Install{}, fmt.Errorf("folder for the download: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("17\n"), 0o600); err != nil {
		return Install{}, fmt.Errorf("folder for the download: %w", err)
	}
	if err := os.MkdirAll(home, 0o755); err != nil { //nolint:gosec // under root, another user must be able to run the programs
		return Install{}, fmt.Errorf("folder for PostgreSQL: %w", err)
	}
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(fetchVersion).
		Port(0).
		CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "run")).
		DataPath(data).
		BinariesPath(home).
		Logger(io.Discard))
	started := library.Start()
	if started == nil {
		started = errors.Join(errors.New("it ran from an empty data folder"), library.Stop())
	}
	install, err := inspect(ctx, bin)
	if err != nil {
		return Install{}, fmt.Errorf("download PostgreSQL %s: %w", fetchVersion, started)
	}
	return install, nil
}

// howToInstall is the hint if no PostgreSQL is installed and the download failed.
const howToInstall = "install PostgreSQL 14 or later (Debian and Ubuntu: apt-get install postgresql; Fedora: dnf install " +
	"postgresql-server; macOS: brew install postgresql@17), or set JIG_DATABASE_OWNER_URL to a server you have"
