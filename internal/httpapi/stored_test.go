package httpapi_test

import (
	"sync"

	"github.com/jig-run/jig"
)

// stored are the stored credentials of one kind, by hash.
type stored[T any] struct {
	mu   sync.Mutex
	list map[string]T
	// names returns the tenant and the id of a credential.
	names func(T) (tenant, id string)
}

func newStored[T any](names func(T) (tenant, id string)) *stored[T] {
	return &stored[T]{list: map[string]T{}, names: names}
}

func (s *stored[T]) put(hash []byte, one T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[string(hash)] = one
}

func (s *stored[T]) get(id string, hash []byte) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.list[string(hash)]
	if _, its := s.names(one); known && its == id {
		return one, nil
	}
	return *new(T), jig.Errorf(jig.CodeNotFound, "none")
}

// of returns the credentials of a tenant.
func (s *stored[T]) of(tenant string) (list []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		if its, _ := s.names(one); its == tenant {
			list = append(list, one)
		}
	}
	return list
}

func (s *stored[T]) ids() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		_, id := s.names(one)
		list = append(list, id)
	}
	return list
}

func (s *stored[T]) remove(tenant, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.list {
		if itsTenant, its := s.names(one); itsTenant == tenant && its == id {
			delete(s.list, hash)
			return nil
		}
	}
	return jig.Errorf(jig.CodeNotFound, "none").WithField("id")
}

func (s *stored[T]) removeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.list)
}
