package pg

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Password returns the password of a role. It is derived from the server's secret, so it stays the same after a restart, and
// no other user of the machine knows it.
func (s *Server) Password(role string) string {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// initialise creates the secret and the data folder unless they exist. It can be repeated after an interruption: initdb works
// in a folder that gets its final name only when it is complete.
func (s *Server) initialise(ctx context.Context) error {
	made, err := dataMajor(s.DataDir())
	if err != nil {
		return err
	}
	secretFile := filepath.Join(s.dir, "secret")
	if made != 0 {
		content, err := os.ReadFile(secretFile) //nolint:gosec // this package makes the path
		if err != nil {
			return fmt.Errorf("the password of the database in %s: %w; start afresh with an empty data folder", s.dir, err)
		}
		s.secret = content
		return nil
	}
	s.secret = []byte(rand.Text())
	if err := os.WriteFile(secretFile, s.secret, 0o600); err != nil {
		return fmt.Errorf("keep the database's password: %w", err)
	}
	unfinished := s.DataDir() + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished database: %w", err)
	}
	if err := s.initdb(ctx, unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, s.DataDir()); err != nil {
		return fmt.Errorf("finish the new database: %w", err)
	}
	return nil
}

// initdb creates a database cluster with UTF-8, the C locale, and SCRAM passwords for all roles.
func (s *Server) initdb(ctx context.Context, dataDir string) error {
	passwordFile := filepath.Join(s.dir, "initdb.password")
	if err := os.WriteFile(passwordFile, []byte(s.Password(Superuser)+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand initdb the password: %w", err)
	}
	defer os.Remove(passwordFile) // if this fails, the file is still readable only by its owner
	if s.who.drop {
		if err := os.Chown(passwordFile, int(s.who.uid), int(s.who.gid)); err != nil {
			return fmt.Errorf("hand initdb the password: %w", err)
		}
	}
	args := []string{
		"--pgdata=" + dataDir, "--username=" + Superuser, "--pwfile=" + passwordFile, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C",
	}
	if s.ephemeral {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.install.BinDir, "initdb"), args...) //nolint:gosec // a program of the PostgreSQL installation
	cmd.SysProcAttr = attributes(s.who)
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", dataDir, err, out)
	}
	return nil
}

// environment returns the environment of PostgreSQL's programs. The caller's settings, such as PGDATA, are not passed on.
func (s *Server) environment() []string {
	return []string{"PATH=" + s.install.BinDir + ":/usr/bin:/bin", "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
}

// dataMajor returns the major version that created a data folder, or 0 if there is no data.
func dataMajor(dataDir string) (int, error) {
	content, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION")) //nolint:gosec // this package makes the path
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("data folder: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("%s was created by a PostgreSQL version that is too old, or is damaged: start afresh with an empty folder", dataDir)
	}
	return major, nil
}
