package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/server"
	"github.com/jig-run/jig/worker"
)

// keyLifetime is how long the server's key is valid. A start makes a new one when half of that is over.
const keyLifetime = vouch.DefaultLifetime

// serverKeys returns the settings of the root key and the server's key, which are files in dir. Missing ones are made.
func serverKeys(dir string, now time.Time) ([]string, error) {
	root, err := keyFile(filepath.Join(dir, "root.key"), func() ([]byte, error) {
		private, public, err := vouch.NewRoot()
		return append([]byte("# public: "+public+"\n"), private...), err
	})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "server.key")
	certify := func() ([]byte, error) {
		file, _, err := vouch.NewServerKey(root, now, keyLifetime)
		return file, err
	}
	file, err := keyFile(name, certify)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(root), "\n")
	public := strings.TrimPrefix(line, "# public: ")
	if !usable(file, public, now) {
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("replace the server's key: %w", err)
		}
		if _, err = keyFile(name, certify); err != nil {
			return nil, err
		}
	}
	return []string{worker.EnvRootKey + "=" + public, server.EnvServerKey + "=" + name}, nil
}

// usable reports whether a server's key is certified by the root and valid for some time.
func usable(file []byte, public string, now time.Time) bool {
	root, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		return false
	}
	signer, err := vouch.ReadSigner(file)
	if err != nil {
		return false
	}
	key, err := vouch.ReadCertificate(root, signer.Certificate())
	return err == nil && key.Until.After(now.Add(keyLifetime/2))
}

// keyFile returns the content of a file, which it makes if it does not exist.
func keyFile(name string, produce func() ([]byte, error)) ([]byte, error) {
	content, err := os.ReadFile(name) //nolint:gosec // it is jig-dev's own file
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return content, err //nolint:wrapcheck // it names the file
	}
	if content, err = produce(); err != nil {
		return nil, err
	}
	return content, os.WriteFile(name, content, 0o600) //nolint:wrapcheck // it names the file
}
