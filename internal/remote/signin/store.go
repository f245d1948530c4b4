package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/jig-run/jig"
)

const (
	// service is the keyring's service name for logins. The user name of an entry is the address of the server.
	service = "jig"
	// keyringTimeout is how long the keyring may take: a locked keyring asks the person first.
	keyringTimeout = 30 * time.Second
	// lockTimeout is how long to wait for the lock. Another process holds it during one request to the provider.
	lockTimeout = 2 * fetchTimeout
)

// InKeyring is what [Store.Save] returns for a login in the keyring.
const InKeyring = "keyring"

// Store keeps logins in the keyring of the operating system, or in a file if there is no keyring.
type Store struct {
	// folder contains the file and its lock.
	folder string
	// keyring says whether the keyring is used.
	keyring bool
}

// NewStore returns the user's store. Without useKeyring it uses only the file.
func NewStore(useKeyring bool) (*Store, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "there is no folder for logins: %w", err).WithHint("set HOME")
	}
	return &Store{folder: filepath.Join(folder, "jig"), keyring: useKeyring}, nil
}

// Load returns the login at a server; ok is false if there is none.
func (s *Store) Load(server string) (l Login, ok bool, err error) {
	server, err = ServerAddress(server)
	if err != nil {
		return Login{}, false, err
	}
	if text, err := s.ring(func() (string, error) { return keyring.Get(service, server) }); err == nil && json.Unmarshal([]byte(text), &l) == nil {
		return l, true, nil
	}
	all, err := s.read()
	l, ok = all[server]
	return l, ok, err
}

// Save stores a login and returns where: [InKeyring], or the path of the file.
func (s *Store) Save(ctx context.Context, l Login) (where string, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	return s.save(l)
}

// save stores a login, in one place only.
func (s *Store) save(l Login) (where string, err error) {
	text, err := json.Marshal(l) //nolint:gosec // the keyring is for secrets
	if err != nil {
		return "", fmt.Errorf("store the login: %w", err)
	}
	_, ringErr := s.ring(func() (string, error) { return "", keyring.Set(service, l.Server, string(text)) })
	all, err := s.read()
	if err != nil {
		return "", err
	}
	_, stale := all[l.Server]
	switch {
	case ringErr == nil && !stale:
		return InKeyring, nil
	case ringErr == nil:
		delete(all, l.Server)
		return InKeyring, s.write(all)
	}
	// An older login in a keyring that cannot take this one would win over the file.
	_, _ = s.ring(func() (string, error) { return "", keyring.Delete(service, l.Server) }) //nolint:errcheck // there is none, or no keyring
	all[l.Server] = l
	return s.path(), s.write(all)
}

// Remove deletes the login at a server.
func (s *Store) Remove(ctx context.Context, server string) error {
	server, err := ServerAddress(server)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, ringErr := s.ring(func() (string, error) { return keyring.Get(service, server) })
	if ringErr == nil {
		if _, err := s.ring(func() (string, error) { return "", keyring.Delete(service, server) }); err != nil {
			return jig.Errorf(jig.CodeUnavailable, "the keyring still holds the login: %w", err)
		}
	}
	all, err := s.read()
	if err != nil {
		return err
	}
	if _, ok := all[server]; !ok {
		return nil
	}
	delete(all, server)
	return s.write(all)
}

// ring runs an operation on the keyring, with a timeout.
func (s *Store) ring(do func() (string, error)) (string, error) {
	if !s.keyring {
		return "", keyring.ErrUnsupportedPlatform
	}
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := do()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-time.After(keyringTimeout):
		s.keyring = false
		return "", errors.New("the keyring does not answer")
	}
}

func (s *Store) path() string { return filepath.Join(s.folder, "logins.json") }

// read returns the logins in the file, by server.
func (s *Store) read() (map[string]Login, error) {
	all := map[string]Login{}
	text, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the stored logins cannot be read: %w", err).WithHint("remove " + s.path() + " and log in again")
	}
	return all, nil
}

// write replaces the file. Only the user can read it.
func (s *Store) write(all map[string]Login) error {
	text, err := json.MarshalIndent(all, "", "  ") //nolint:gosec // the file is for secrets
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	file, err := os.CreateTemp(s.folder, "logins-*.json") // with mode 0600
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // it fails if the file was renamed
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), s.path())
	}
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	return nil
}

// lock keeps other processes from changing logins until unlock is called.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the folder for logins cannot be created: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.folder, "logins.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "logins cannot be locked: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if err = tryLock(file); err == nil {
			return func() { _ = file.Close() }, nil // closing releases it
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, jig.Errorf(jig.CodeUnavailable, "logins cannot be locked: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
