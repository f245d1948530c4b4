package store

import (
	"errors"
	"sync"
)

// combiner merges the requests of a session that arrive while an earlier one is running into one request. The zero value is ready to use.
type combiner[Q, A any] struct {
	mu sync.Mutex
	// waiting has an entry for each session with a running request. It lists the requests that wait for that one.
	waiting map[topicKey][]*combined[Q, A]
}

// combined is a request that is made of several.
type combined[Q, A any] struct {
	parts []Q
	// turn is closed when the request may be sent and no part may be added any more, done when it has been answered.
	turn, done chan struct{}
	answer     A
	err        error
}

// maxCombined limits how many requests are sent as one.
const maxCombined = 50

var errUnanswered = errors.New("the combined request was not answered")

// do sends a request, possibly combined with others of the same session. If a combined request fails, its parts are sent again, each alone,
// so that each of them fails for its own reasons only.
func (c *combiner[Q, A]) do(key topicKey, request Q, send func(parts []Q) (A, error)) (A, error) {
	all, first := c.join(key, request)
	if first {
		c.send(key, all, send)
	}
	<-all.done
	if all.err != nil && len(all.parts) > 1 {
		return send([]Q{request})
	}
	return all.answer, all.err
}

// join returns the combined request that a request becomes part of, and reports whether it is its first part, whose caller sends it.
func (c *combiner[Q, A]) join(key topicKey, request Q) (all *combined[Q, A], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, busy := c.waiting[key]
	if n := len(waiting); n > 0 && len(waiting[n-1].parts) < maxCombined {
		all = waiting[n-1]
		all.parts = append(all.parts, request)
		return all, false
	}
	all = &combined[Q, A]{parts: []Q{request}, turn: make(chan struct{}), done: make(chan struct{}), err: errUnanswered}
	if c.waiting == nil {
		c.waiting = map[topicKey][]*combined[Q, A]{}
	}
	if busy {
		waiting = append(waiting, all)
	} else {
		close(all.turn)
	}
	c.waiting[key] = waiting
	return all, true
}

// send sends a combined request when its turn has come, and then gives the turn to the next one of the session.
func (c *combiner[Q, A]) send(key topicKey, all *combined[Q, A], send func(parts []Q) (A, error)) {
	<-all.turn
	defer c.next(key)
	defer close(all.done)
	all.answer, all.err = send(all.parts)
}

func (c *combiner[Q, A]) next(key topicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[key]
	if len(waiting) == 0 {
		delete(c.waiting, key)
		return
	}
	c.waiting[key] = waiting[1:]
	close(waiting[0].turn)
}
