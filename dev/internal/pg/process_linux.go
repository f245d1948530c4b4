package pg

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of the server process. It runs as the account and in its own process group, so that Ctrl-C
// in the terminal does not reach it. The kernel stops it (fast shutdown) when the thread that started it ends.
func attributes(who account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if who.drop {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return attr
}

// isServer reports whether process pid is a PostgreSQL server on dataDir.
func isServer(_ context.Context, pid int, dataDir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline")) //nolint:gosec // a file in /proc
	if err != nil || !strings.Contains(string(cmdline), "postgres") {
		return false
	}
	// The working directory of PostgreSQL's processes is the data folder.
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && cwd == dataDir
}

// inUse reports whether any PostgreSQL process still uses dataDir, for example a backend whose server was killed.
func inUse(ctx context.Context, dataDir string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && isServer(ctx, pid, dataDir) {
			return true
		}
	}
	return false
}
