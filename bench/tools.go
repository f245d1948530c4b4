package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// Names of the tools.
const (
	noopTool  = "bench.noop"
	quickTool = "bench.quick"
	writeTool = "bench.write"
	blobTool  = "bench.blob"
	markTool  = "bench.mark"
)

// blobBytes is the size of a result of bench.blob, in bytes.
const blobBytes = 200_000

type toolInput struct {
	N int `json:"n"`
}

type toolOutput struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

// benchTools returns tools that do nothing: one that runs as an activity, one that runs as a local activity, one with a large result, one
// that asks for approval, and one whose calls are observed. It calls entered when one of the last two runs.
func benchTools(entered func(entry)) []tools.Tool {
	nothing := func(_ context.Context, _ jig.Invocation, in toolInput) (toolOutput, error) {
		return toolOutput{N: in.N}, nil
	}
	read := jig.Tool{
		Name: noopTool, Description: "Does nothing.", Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Labels: &jig.Labels{},
		Execution: jig.ExecutionActivity,
	}
	marked := func(_ context.Context, inv jig.Invocation, in toolInput) (toolOutput, error) {
		entered(entry{Session: inv.SessionID, Call: inv.CallID, At: time.Now()})
		return toolOutput{N: in.N}, nil
	}
	quick, blob, write, mark := read, read, read, read
	quick.Name, quick.Execution = quickTool, jig.ExecutionLocal
	blob.Name, mark.Name = blobTool, markTool
	write.Name, write.Permission, write.Idempotent = writeTool, jig.PermissionWrite, false
	text := strings.Repeat("0123456789abcdef ", blobBytes/17)
	return []tools.Tool{
		tools.New(read, nothing),
		tools.New(quick, nothing),
		tools.New(blob, func(_ context.Context, _ jig.Invocation, in toolInput) (toolOutput, error) {
			return toolOutput{N: in.N, Text: text}, nil
		}),
		tools.New(write, marked),
		tools.New(mark, marked),
	}
}

// entry is the start of a call of bench.write or bench.mark.
type entry struct {
	Session string    `json:"session"`
	Call    string    `json:"call"`
	At      time.Time `json:"at"`
}

// entries passes each entry to the receiver that waits for its session, and to those that follow a prefix of session ids.
type entries struct {
	mu       sync.Mutex
	waiting  map[string]chan entry
	followed map[string]chan entry
}

func newEntries() *entries {
	return &entries{waiting: map[string]chan entry{}, followed: map[string]chan entry{}}
}

// expect returns a channel that receives a session's next entry.
func (e *entries) expect(session string) <-chan entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan entry, 1)
	e.waiting[session] = c
	return c
}

// follow returns a channel that receives the entries of all sessions whose ids have a prefix, until stop is called. The channel holds at
// most n entries; more are dropped.
func (e *entries) follow(prefix string, n int) (arrived <-chan entry, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan entry, n)
	e.followed[prefix] = c
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.followed, prefix)
	}
}

// enter delivers an entry. It drops the entry if nobody waits for it.
func (e *entries) enter(one entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.waiting[one.Session]; ok {
		delete(e.waiting, one.Session)
		c <- one
	}
	for prefix, c := range e.followed {
		if !strings.HasPrefix(one.Session, prefix) {
			continue
		}
		select {
		case c <- one:
		default: // the channel is full
		}
	}
}
