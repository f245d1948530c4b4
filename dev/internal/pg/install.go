package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// MinMajor is the oldest major version of PostgreSQL that jig works with.
const MinMajor = 14

// Install is a PostgreSQL found on this machine.
type Install struct {
	// BinDir is the folder with `postgres` and `initdb`, with symbolic links resolved.
	BinDir string
	// Major is the major version, e.g. 15.
	Major int
	// Version is the full version, e.g. "15.14".
	Version string
}

// Find lists the PostgreSQL installations of version [MinMajor] or later on PATH and in the usual folders, newest first. The
// list may be empty.
func Find(ctx context.Context) []Install {
	var found []Install
	seen := map[string]bool{}
	for _, dir := range candidates() {
		install, err := inspect(ctx, dir)
		if err != nil || install.Major < MinMajor || seen[install.BinDir] {
			continue
		}
		seen[install.BinDir] = true
		found = append(found, install)
	}
	slices.SortStableFunc(found, func(a, b Install) int { return b.Major - a.Major })
	return found
}

// candidates returns the folders that may hold PostgreSQL's programs, those on PATH first.
func candidates() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                // Debian, Ubuntu
		"/usr/pgsql-*/bin",                         // Red Hat, PGDG
		"/usr/lib/postgresql*/bin",                 // SUSE
		"/usr/libexec/postgresql*",                 // Alpine
		"/usr/local/pgsql/bin",                     // built from source
		"/opt/homebrew/opt/postgresql*/bin",        // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",           // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/post*/bin", // Homebrew on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		// The only error of Glob is a bad pattern, and these are constants.
		matches, _ := filepath.Glob(pattern) //nolint:errcheck // see above
		dirs = append(dirs, matches...)
	}
	return dirs
}

// inspect reads the version of the PostgreSQL in dir. It returns an error unless dir has both required programs.
func inspect(ctx context.Context, dir string) (Install, error) {
	program, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if errors.Is(err, os.ErrNotExist) {
		// Some systems link only the client programs and initdb into a folder on PATH.
		program, err = filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	}
	if err != nil {
		return Install{}, fmt.Errorf("no postgres in %s: %w", dir, err)
	}
	bin := filepath.Dir(program)
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			return Install{}, fmt.Errorf("no %s in %s: %w", name, bin, err)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output() //nolint:gosec // a program of the PostgreSQL installation
	if err != nil {
		return Install{}, fmt.Errorf("version of %s: %w", bin, err)
	}
	version, major, err := parseVersion(string(out))
	if err != nil {
		return Install{}, err
	}
	return Install{BinDir: bin, Major: major, Version: version}, nil
}

// parseVersion parses the output of `postgres --version`, e.g. "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)".
func parseVersion(out string) (version string, major int, err error) {
	match := regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`).FindStringSubmatch(out)
	if match == nil {
		return "", 0, fmt.Errorf("%q is not a PostgreSQL version", out)
	}
	major, err = strconv.Atoi(match[2])
	if err != nil {
		return "", 0, fmt.Errorf("PostgreSQL version %q: %w", match[1], err)
	}
	return match[1], major, nil
}

// choose picks an installation for a data folder: the newest one for a new folder, otherwise one of the major version that
// created the folder, because PostgreSQL cannot open the files of another major version. major is 0 for a new folder.
func choose(installs []Install, major int, dir string) (Install, error) {
	if len(installs) == 0 {
		return Install{}, errNotInstalled
	}
	if major == 0 {
		return installs[0], nil
	}
	have := make([]int, 0, len(installs))
	for _, install := range installs {
		if install.Major == major {
			return install, nil
		}
		have = append(have, install.Major)
	}
	return Install{}, fmt.Errorf("the data in %s was created by PostgreSQL %d, but the installed versions are %v: "+
		"install PostgreSQL %d, or start afresh with an empty data folder", dir, major, have, major)
}

// errNotInstalled says that this machine has no usable PostgreSQL.
var errNotInstalled = errors.New("no PostgreSQL of version 14 or later found on PATH or in the usual folders")
