// Package ratelimit decides when calls that limits concern may begin. It must not know how the state of limits is stored.
package ratelimit

import (
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

// Bucket identifies the calls that share a limit.
type Bucket struct {
	// Document is the name of the document, Limit that of the limit in it.
	Document, Limit string
	// Key is the value of the limit's key for the calls; empty if the limit has no key.
	Key string
}

// Claim is a limit that a call must fit into.
type Claim struct {
	Bucket
	// Rate is how many calls may begin per Period; 0 if only Concurrency counts.
	Rate   int
	Period time.Duration
	// Burst is how many calls may begin at once after a quiet time; at least 1.
	Burst int
	// Concurrency is how many calls may run at the same time; 0 for any number.
	Concurrency int
	// MaxWait is how long a call may wait before it fails.
	MaxWait time.Duration
	// Sessions reports that the limit counts starts of sessions, not calls.
	Sessions bool
}

// State is the state of a bucket as one call sees it.
type State struct {
	// Now is the clock of the store.
	Now time.Time
	// Next is when the bucket is as if it had never been used.
	Next time.Time
	// Ahead counts the calls that wait in front of this one, and Running those that run.
	Ahead, Running int
	// Since is when this call began to wait, for this or another limit; zero if it does not wait.
	Since time.Time
	// Queued reports that this call has a place in the bucket's queue, and Runs that it counts among those that run; Running does not include it.
	Queued, Runs bool
}

// placeEvery is how often the first calls in a queue look whether one of those that run has ended.
const placeEvery = 500 * time.Millisecond

// interval returns the time between two calls at the limit's rate.
func (c Claim) interval() time.Duration { return c.Period / time.Duration(max(c.Rate, 1)) }

// Next returns State.Next, unless that is so late that it belongs to an older, stricter version of the limit.
func (c Claim) Next(s State) time.Time {
	latest := s.Now.Add(time.Duration(max(c.Burst, 1)) * c.interval())
	switch {
	case s.Next.Before(s.Now):
		return s.Now
	case s.Next.After(latest):
		return latest
	}
	return s.Next
}

// Taken returns the value of State.Next after the call has begun.
func (c Claim) Taken(s State) time.Time { return c.Next(s).Add(c.interval()) }

// Wait returns how long the call should wait before it asks again; 0 if it may begin. Calls begin in the order in which they began to wait.
func (c Claim) Wait(s State) time.Duration {
	var wait time.Duration
	if c.Rate > 0 { // the generic cell rate algorithm: Next may be ahead of the clock by as much as the burst allows
		room := time.Duration(max(c.Burst, 1)-1) * c.interval()
		wait = max(0, c.Next(s).Add(time.Duration(s.Ahead)*c.interval()).Add(-room).Sub(s.Now))
	}
	if c.Concurrency > 0 && !s.Runs && s.Ahead >= c.Concurrency-s.Running {
		wait = max(wait, placeEvery*time.Duration(1+s.Ahead/c.Concurrency))
	}
	return wait
}

// Why says why a call waits.
func (c Claim) Why(s State) string {
	text := fmt.Sprintf("limit %s of rate limit %s allows ", c.Limit, c.Document)
	one := "call"
	if c.Sessions {
		one = "session"
	}
	if c.Concurrency > 0 && s.Ahead >= c.Concurrency-s.Running {
		text += fmt.Sprintf("%s at the same time: %d running", counted(c.Concurrency, one), s.Running)
	} else {
		text += fmt.Sprintf("%s per %s", counted(c.Rate, one), duration.Format(c.Period))
	}
	if s.Ahead > 0 {
		text += fmt.Sprintf(", %d waiting before this one", s.Ahead)
	}
	return text
}

// counted returns a number of things in words.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Request asks whether an attempt of a call may begin or, if CallID and Tool are empty, a session.
type Request struct {
	Tenant, SessionID, CallID string
	Pass                      int
	Tool                      string
	// Fence is the fence of the call before the attempt.
	Fence int
	// Claims are the limits that concern the call. It may begin when it fits into all of them.
	Claims []Claim
	// Bounded reports that the call fails when it has waited too long.
	Bounded bool
}

// Answer lets an attempt begin, or holds it back. The zero value lets it begin.
type Answer struct {
	// Wait is how long the call should wait before it asks again.
	Wait time.Duration
	// Why says why the call waits, or what it has waited for too long.
	Why string
	// Expired reports that the call has waited too long.
	Expired bool
}

// A call that waits asks again after at most firstLook if it is among the first nearFront of its queue, and after at most longestLook otherwise, so
// that it notices changed limits. Those further back, and sessions, do not ask often, because there may be thousands of them. If one does not ask for
// forgottenAfter longer, others pass it until it asks again.
const (
	nearFront      = 100
	firstLook      = 5 * time.Second
	longestLook    = 5 * time.Minute
	forgottenAfter = 15 * time.Second
)

// Verdict is the decision about a request.
type Verdict struct {
	Answer

	// Blocks reports, for each claim, whether the call waits for that limit.
	Blocks []bool
	// Lives is how long the call keeps its place in the queues unless it asks again.
	Lives time.Duration
}

// Decide decides on a request. states are those of the claims, in their order.
func Decide(r Request, states []State) Verdict {
	v := Verdict{Blocks: make([]bool, len(r.Claims))}
	because := -1
	for i, c := range r.Claims {
		wait := c.Wait(states[i])
		v.Blocks[i] = wait > 0
		if wait > v.Wait {
			v.Wait, because = wait, i
		}
	}
	if because < 0 {
		return v
	}
	c, s := r.Claims[because], states[because]
	v.Why = c.Why(s)
	if v.Wait = min(v.Wait, longestLook); s.Ahead < nearFront && !c.Sessions {
		v.Wait = min(v.Wait, firstLook)
	}
	if r.Bounded {
		waited := time.Duration(0)
		if !s.Since.IsZero() {
			waited = s.Now.Sub(s.Since)
		}
		v.Expired = waited >= c.MaxWait
		v.Wait = min(v.Wait, max(c.MaxWait-waited, time.Millisecond))
		if v.Expired {
			v.Why = fmt.Sprintf("the call has waited for %s, as long as max_wait allows: %s", duration.Format(c.MaxWait), v.Why)
		}
	}
	v.Lives = v.Wait + forgottenAfter
	return v
}

// Expired returns the error of a call that has waited too long.
func Expired(why string) *jig.Error {
	e := jig.Errorf(jig.CodeRateLimited, "%s", jig.Known(why)).WithReason(reason).
		WithHint("call it less often, or raise the limit or its max_wait and register the document again")
	e.NotExecuted = true
	return e
}

// reason is the reason of the error of a call that has waited too long.
const reason = "rate_limit"
