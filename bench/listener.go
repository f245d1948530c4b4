package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// listenerCommand is the argument that makes this program the bare listener, the baseline of P13.
	listenerCommand = "listener"
	// listenerChannel is the channel on which it listens.
	listenerChannel = "bench_bare"
)

// bareListener is a server of events as one writes it by hand: a connection that listens, and a stream for each subscriber. It keeps and reads no
// log, checks no credential, and sends nothing again that was missed.
type bareListener struct {
	mu sync.Mutex
	// streams are the subscribers by session.
	streams map[string]map[chan string]struct{}
}

// serveListener runs a bare listener until ctx ends.
func serveListener(ctx context.Context, stdout io.Writer) error {
	e, err := readEnvironment()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, e.database)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "listen "+listenerChannel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on a port: %w", err)
	}
	b := &bareListener{streams: map[string]map[chan string]struct{}{}}
	s := &http.Server{Handler: http.HandlerFunc(b.stream), ReadHeaderTimeout: 10 * time.Second}
	defer func() { _ = s.Close() }()
	go func() { _ = s.Serve(listener) }() //nolint:errcheck // it ends when the server is closed
	if _, err := fmt.Fprintf(stdout, "%s http://%s\n", ready, listener.Addr()); err != nil {
		return fmt.Errorf("report that the server is ready: %w", err)
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return nil // it was killed
		}
		b.send(n.Payload)
	}
}

// send sends an event to its subscribers.
func (b *bareListener) send(payload string) {
	var e struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(payload), &e) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for stream := range b.streams[e.SessionID] {
		select {
		case stream <- payload:
		default: // a slow subscriber misses it
		}
	}
}

// stream sends the events of the session that the path names.
func (b *bareListener) stream(w http.ResponseWriter, r *http.Request) {
	session := strings.TrimPrefix(r.URL.Path, "/")
	events := make(chan string, 100)
	b.mu.Lock()
	if b.streams[session] == nil {
		b.streams[session] = map[chan string]struct{}{}
	}
	b.streams[session][events] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.streams[session], events)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for {
		if control.Flush() != nil {
			return
		}
		select {
		case payload := <-events:
			_, _ = fmt.Fprintf(w, "data: %s\n\n", payload) // the next flush reports an error
		case <-r.Context().Done():
			return
		}
	}
}
