package meter

import (
	"context"
	"sync"

	"github.com/jig-run/jig"
)

// turns lets requests with the same key wait for each other. The reservation of a second one would replace that of the first. The zero value is
// ready to use.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// wait returns when no other request with this key is being answered. The caller calls done after its own.
func (t *turns) wait(ctx context.Context, key string) (done func(), err error) {
	for {
		t.mu.Lock()
		before, busy := t.busy[key]
		if !busy {
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, jig.Errorf(jig.CodeCanceled, "waiting for the answer to another question of the call: %w", ctx.Err())
		}
	}
}
