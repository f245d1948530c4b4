package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// retryingClients makes requests as good clients do: to any of its servers, and again if no server could answer.
type retryingClients struct {
	servers []string
	keys    []string
	http    *http.Client
	// These count the requests that were made again, by the reason.
	refused, limited, broken atomic.Int64
}

func newRetryingClients(keys []string, servers ...*serverProcess) *retryingClients {
	c := &retryingClients{keys: keys, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
	for _, s := range servers {
		c.servers = append(c.servers, s.url)
	}
	return c
}

// Bounds of the requests of retrying clients.
const (
	crowdPause   = 200 * time.Millisecond
	crowdTimeout = 90 * time.Second
)

// again reports whether a good client repeats a request that got a status, and after which time.
func (c *retryingClients) again(status int, h http.Header) (after time.Duration, again bool) {
	switch status {
	case http.StatusTooManyRequests:
		c.limited.Add(1)
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout, http.StatusBadGateway:
		c.refused.Add(1)
	default:
		return 0, false
	}
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		return crowdPause, true
	}
	return time.Duration(seconds) * time.Second, true
}

// retriedResponse is an answer with its body. repeated says that the request was made more than once, so that an earlier one may have been carried out.
type retriedResponse struct {
	status   int
	header   http.Header
	body     []byte
	repeated bool
}

// do makes a request, first to a server of the client's own, until a server answers it.
func (c *retryingClients) do(ctx context.Context, client int, method, path string, body any, headers ...string) (retriedResponse, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return retriedResponse{}, fmt.Errorf("the body: %w", err)
	}
	for try := 0; ; try++ {
		said, err := c.once(ctx, client, try, method, path, text, headers...)
		after := crowdPause
		if err == nil {
			var again bool
			if after, again = c.again(said.status, said.header); !again {
				said.repeated = try > 0
				return said, nil
			}
		} else {
			c.broken.Add(1)
		}
		if !paused(ctx, after) {
			return retriedResponse{}, errors.Join(err, context.Cause(ctx))
		}
	}
}

func (c *retryingClients) once(ctx context.Context, client, try int, method, path string, text []byte, headers ...string) (retriedResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, crowdTimeout)
	defer cancel()
	answer, err := c.open(ctx, client, try, method, path, text, headers...)
	if err != nil {
		return retriedResponse{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	return retriedResponse{status: answer.StatusCode, header: answer.Header, body: content}, err
}

func (c *retryingClients) open(ctx context.Context, client, try int, method, path string, text []byte, headers ...string) (*http.Response, error) {
	var content io.Reader
	if method == http.MethodPost {
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.servers[(client+try)%len(c.servers)]+path, content)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.keys[client%len(c.keys)])
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return c.http.Do(request)
}

func paused(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// follow reads the events of a session, from server to server, until a server says that no more will come. It returns the sequence numbers in the
// order in which they came, and how often it connected.
func (c *retryingClients) follow(ctx context.Context, client int, session string) (seqs []int64, connects int, err error) {
	after := int64(0)
	for try := 0; ; try++ {
		answer, err := c.open(ctx, client, try, http.MethodGet, "/v1/sessions/"+session+"/events", nil,
			"Accept", "text/event-stream", "Last-Event-ID", strconv.FormatInt(after, 10))
		wait := crowdPause
		switch {
		case err != nil:
			c.broken.Add(1)
		case answer.StatusCode == http.StatusNoContent:
			return seqs, connects, answer.Body.Close()
		case answer.StatusCode == http.StatusOK:
			connects++
			readStream(answer.Body, func(seq int64) { seqs, after = append(seqs, seq), seq })
			_ = answer.Body.Close()
		default:
			var again bool
			if wait, again = c.again(answer.StatusCode, answer.Header); !again {
				text, err := io.ReadAll(answer.Body)
				return seqs, connects, errors.Join(fmt.Errorf("status %d: %s", answer.StatusCode, text), err, answer.Body.Close())
			}
			_ = answer.Body.Close()
		}
		if !paused(ctx, wait) {
			return seqs, connects, fmt.Errorf("after event %d: %w", after, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// readStream calls each for every whole event that has an id, until the stream ends or breaks.
func readStream(body io.Reader, each func(seq int64)) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	var seq int64
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return
			}
			seq = n
		case "":
			if seq > 0 {
				each(seq)
			}
			seq = 0
		}
	}
}
