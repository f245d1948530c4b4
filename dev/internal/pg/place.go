package pg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// locate returns the folder for a server's files. It is wanted if the account can reach it. Otherwise it is a folder below
// /var/tmp (or the temporary folder) whose name is derived from wanted, so that a restart finds it again.
func locate(wanted string, who account) (string, error) {
	wanted, err := filepath.Abs(wanted)
	if err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	if !who.drop || reachable(filepath.Dir(wanted), who) {
		return wanted, nil
	}
	sum := sha256.Sum256([]byte(wanted))
	return filepath.Join(sharedTemp(), "jig-postgres-"+hex.EncodeToString(sum[:6])), nil
}

// sharedTemp returns a folder that every account can reach. It is one that survives a reboot if the system has one.
func sharedTemp() string {
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return os.TempDir()
}

// reachable reports whether the account may pass through dir and all its parents. It ignores folders that do not exist,
// because this package creates them with sufficient permissions.
func reachable(dir string, who account) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false
		}
		if err == nil && !passable(info, who) {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// passable reports whether the account has search permission on a folder.
func passable(info os.FileInfo, who account) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case ok && stat.Uid == who.uid:
		return mode&0o100 != 0
	case ok && stat.Gid == who.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// own creates dir, private to the account. It refuses an existing folder that belongs to another account, because names below
// /var/tmp can be guessed.
func own(dir string, who account) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the account must pass through
		return fmt.Errorf("data folder: %w", err)
	}
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("data folder: %w", err)
	}
	if err == nil && who.drop {
		if err := os.Chown(dir, int(who.uid), int(who.gid)); err != nil {
			return fmt.Errorf("give %s to user %s: %w", dir, who.name, err)
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || (ok && stat.Uid != who.uid) {
		return fmt.Errorf("%s is not a folder of user id %d: remove it, or choose another data folder", dir, who.uid)
	}
	return nil
}
