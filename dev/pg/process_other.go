//go:build unix && !linux

package pg

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes start a process in a group of its own, so that Ctrl-C in the terminal does not reach it, as the account.
// Only Linux can tie its life to ours; elsewhere the next start stops a server that was left behind.
func attributes(who account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if who.drop {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return attr
}

// isServer tells whether process pid is a PostgreSQL server on dataDir.
func isServer(ctx context.Context, pid int, dataDir string) bool {
	out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres") && strings.Contains(string(out), dataDir)
}

// inUse cannot be known without /proc, so the answer is the careful one: PostgreSQL decides for itself.
func inUse(context.Context, string) bool { return true }
