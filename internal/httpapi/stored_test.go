package httpapi_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
)

// credentials are the valid credentials, by hash.
type credentials struct {
	mu   sync.Mutex
	list map[string]credential.Credential
	// attempts are those that had a login.
	attempts map[string]bool
	// until is when the last one was to end that was made.
	until *time.Time
	// checks counts how often open streams were checked.
	checks atomic.Int64
}

func newCredentials() *credentials {
	return &credentials{list: map[string]credential.Credential{}, attempts: map[string]bool{}}
}

// add stores an API key of ana's and returns its text.
func (s *credentials) add(tenant string, scopes ...string) string {
	text, id, hash := credential.KeyForm.New()
	s.put(hash, credential.Credential{ID: id, Kind: identity.KindAPIKey, Tenant: tenant, Principal: "ana", Scopes: scopes})
	return text
}

func (s *credentials) put(hash []byte, c credential.Credential) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[string(hash)] = c
}

// change changes a credential.
func (s *credentials) change(id string, change func(*credential.Credential)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.list {
		if one.ID == id {
			change(&one)
			s.list[hash] = one
		}
	}
	return nil
}

// removeAll ends all credentials.
func (s *credentials) removeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.list)
}

func (s *credentials) Credential(_ context.Context, id string, hash []byte) (credential.Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.list[string(hash)]
	if !known || one.ID != id {
		return credential.Credential{}, jig.Errorf(jig.CodeNotFound, "none")
	}
	if one.Kind == identity.KindAPIKey {
		one.Lineage = append(identity.Lineage{one.Link()}, one.Lineage...)
	}
	return one, nil
}

func (s *credentials) ValidCredentials(context.Context, []string) (ids []string, err error) {
	s.checks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		ids = append(ids, one.ID)
	}
	return ids, nil
}

func (s *credentials) Credentials(_ context.Context, tenant string, kinds ...string) (list []credential.Credential, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		if one.Tenant == tenant && slices.Contains(kinds, one.Kind) {
			list = append(list, one)
		}
	}
	return list, nil
}

func (s *credentials) CreateCredential(_ context.Context, n credential.New) (credential.Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Attempt != nil {
		if s.attempts[string(n.Attempt)] {
			return credential.Credential{}, jig.Errorf(jig.CodeConflict, "again")
		}
		s.attempts[string(n.Attempt)] = true
	}
	s.until = n.ExpiresAt
	n.CreatedAt = time.Now().UTC()
	if lasts := n.Lifetime(); lasts != nil {
		n.ExpiresAt = new(n.CreatedAt.Add(*lasts))
	}
	s.list[string(n.Hash)] = n.Credential
	return n.Credential, nil
}

func (s *credentials) RevokeCredential(_ context.Context, tenant string, c identity.CredentialRef, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.list {
		if one.Tenant == tenant && one.Ref() == c {
			delete(s.list, hash)
			return nil
		}
	}
	return jig.Errorf(jig.CodeNotFound, "none").WithField("id")
}

func (s *credentials) NotePersons(_ context.Context, _, id string, persons []string) error {
	return s.change(id, func(one *credential.Credential) { one.Persons = persons })
}

func (s *credentials) TakeOverAPIKey(_ context.Context, key credential.Credential, hash []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, one := range s.list {
		if one.ID == key.ID {
			delete(s.list, old)
		}
	}
	s.list[string(hash)] = key
	return nil
}

func (s *credentials) EmbedTokens(ctx context.Context, tenant, _ string, _ int) (list []credential.Credential, next string, err error) {
	list, err = s.Credentials(ctx, tenant, identity.KindEmbed)
	return list, "", err
}
