//go:build unix && !linux

package pg

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of the server process. It runs as the account and in its own process group, so that Ctrl-C
// in the terminal does not reach it. Only Linux can end it together with this process; elsewhere the next start stops a
// server that was left behind.
func attributes(who account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if who.drop {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return attr
}

// isServer reports whether process pid is a PostgreSQL server on dataDir.
func isServer(ctx context.Context, pid int, dataDir string) bool {
	out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres") && strings.Contains(string(out), dataDir)
}

// inUse always returns true, because it cannot check without /proc. PostgreSQL then decides whether the folder is in use.
func inUse(context.Context, string) bool { return true }
