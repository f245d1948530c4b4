// Package attack plays a tenant that does to a server whatever a single API key can do, while another tenant starts calls and decides them. It
// measures how long the other tenant waits.
package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Options say whom to attack, and how hard.
type Options struct {
	// URL is the address of the server.
	URL string
	// Attacker is a key with the scopes read and run of one tenant, and Other a key with read, run and decide of another tenant.
	Attacker, Other string
	// Calls is how many calls the other tenant makes while nothing else happens, and again during each attack.
	Calls int
	// Streams is how many streams the attacker opens, Waits how many requests wait, Bodies how many large requests are sent at a time, Starts from how
	// many clients sessions are started, and Idle how many connections are opened.
	Streams, Waits, Bodies, Starts, Idle int
	// Report is called after each attack; nil if nobody wants to know before the end.
	Report func(p Phase)
	// Only is the attack to try; empty tries each of them.
	Only string
}

// Phase holds the measurements of one attack.
type Phase struct {
	Name string
	// Starts and Decisions are how long the requests of the other tenant took.
	Starts, Decisions []time.Duration
	// Answers counts the responses to the attacker, by status.
	Answers map[int]int
}

// Everything is the attack that does all others at the same time.
const Everything = "everything"

// origin is the origin of the attacker's embed tokens.
const origin = "https://attacker.example.com"

// side is one of the two tenants. Each has an address of its own.
type side struct {
	client *http.Client
	dialer net.Dialer
	url    string
	key    string

	mu      sync.Mutex
	answers map[int]int
}

func newSide(o Options, key string, address net.IP) *side {
	s := &side{dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}, url: o.URL, key: key, answers: map[int]int{}}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: s.dialer.DialContext}}
	return s
}

// send makes a request. The caller closes the body.
func (s *side) send(ctx context.Context, method, path, key, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says enough
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[answer.StatusCode]++
	return answer, nil
}

// do makes a request, and decodes the response into an answer unless that is nil. The error names the status if it is none of success.
func (s *side) do(ctx context.Context, method, path, key, body string, into any, headers ...string) error {
	answer, err := s.send(ctx, method, path, key, body, headers...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read a response: %w", err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %d: %s", method, path, answer.StatusCode, content)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into) //nolint:wrapcheck // it says enough
}

// Run measures the other tenant while nothing else happens, and during each attack. An error means that a request of the other tenant failed.
func Run(ctx context.Context, o Options) (phases []Phase, err error) {
	attacks := []struct {
		name string
		run  func(ctx context.Context, s *side, o Options)
	}{
		{"nothing", func(context.Context, *side, Options) {}},
		{"streams", streams},
		{"waits", waits},
		{"bodies", bodies},
		{"starts", starts},
		{"idle connections", idle},
		{Everything, func(ctx context.Context, s *side, o Options) {
			for _, one := range []func(context.Context, *side, Options){streams, waits, bodies, starts, idle} {
				one(ctx, s, o)
			}
		}},
	}
	other := newSide(o, o.Other, net.IPv4(127, 0, 0, 1))
	for _, a := range attacks {
		if o.Only != "" && o.Only != a.name {
			continue
		}
		attacker := newSide(o, o.Attacker, net.IPv4(127, 0, 0, 2))
		attacking, stop := context.WithCancel(ctx)
		a.run(attacking, attacker, o)
		p := Phase{Name: a.name}
		err := other.works(ctx, o.Calls, &p)
		stop()
		attacker.client.CloseIdleConnections()
		attacker.mu.Lock()
		p.Answers = maps.Clone(attacker.answers)
		attacker.mu.Unlock()
		phases = append(phases, p)
		if o.Report != nil {
			o.Report(p)
		}
		if err != nil {
			return phases, fmt.Errorf("during %s: %w", a.name, err)
		}
	}
	return phases, nil
}

// works makes calls that wait for approval, and approves them.
func (s *side) works(ctx context.Context, n int, p *Phase) error {
	for i := range n {
		var started struct {
			Session string `json:"session_id"`
			Call    string `json:"call"`
		}
		began := time.Now()
		err := s.do(ctx, http.MethodPost, "/v1/tools/file.write/calls", s.key, fmt.Sprintf(`{"input":{"path":"note-%d.txt","content":"hello"}}`, i), &started)
		if err != nil {
			return err
		}
		p.Starts = append(p.Starts, time.Since(began))
		var shown struct {
			Pending struct {
				Digest string `json:"digest"`
			} `json:"pending"`
			Digest string `json:"digest"`
		}
		path := "/v1/approvals/" + started.Session
		for shown.Digest == "" && shown.Pending.Digest == "" {
			if err := s.do(ctx, http.MethodGet, path+"?call="+url.QueryEscape(started.Call), s.key, "", &shown); err != nil && !strings.Contains(err.Error(), ": 404:") {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err() //nolint:wrapcheck // the caller's own
			case <-time.After(10 * time.Millisecond):
			}
		}
		digest := shown.Digest + shown.Pending.Digest
		began = time.Now()
		if err := s.do(ctx, http.MethodPost, path+"/decision", s.key, fmt.Sprintf(`{"call":%q,"answer":"approve","digest":%q}`, started.Call, digest), nil); err != nil {
			return err
		}
		p.Decisions = append(p.Decisions, time.Since(began))
	}
	return nil
}

// repeat calls one from n clients at the same time, again and again, until ctx ends. It returns at once.
func repeat(ctx context.Context, n int, one func(ctx context.Context, client int)) {
	for client := range n {
		go func() {
			for ctx.Err() == nil {
				one(ctx, client)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
	}
}

// holding is a composition that waits for an hour.
func holding(client int) string {
	return fmt.Sprintf(`{"id":"hold-%d","document":%q}`, client/10, "kind: composition\nname: hold.on\nsteps: [{id: w, wait: 1h}]\noutput: {}\n")
}

// held starts a composition that waits, and returns its session.
func (s *side) held(ctx context.Context, client int) string {
	var started struct {
		Session string `json:"session_id"`
	}
	if err := s.do(ctx, http.MethodPost, "/v1/calls", s.key, holding(client), &started); err != nil {
		return ""
	}
	return started.Session
}

// streams opens streams with embed tokens, a new one for every hundred.
func streams(ctx context.Context, s *side, o Options) {
	session := s.held(ctx, 0)
	var mu sync.Mutex
	used, token := 0, ""
	repeat(ctx, o.Streams, func(ctx context.Context, _ int) {
		mu.Lock()
		if used++; used%100 == 1 || token == "" {
			var made struct {
				Token string `json:"embed_token"`
			}
			if s.do(ctx, http.MethodPost, "/v1/embed-tokens", s.key, fmt.Sprintf(`{"session":%q,"origin":%q}`, session, origin), &made) == nil {
				token = made.Token
			}
		}
		with := token
		mu.Unlock()
		answer, err := s.send(ctx, http.MethodGet, "/v1/sessions/"+session+"/events", with, "", "Accept", "text/event-stream", "Origin", origin)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body) //nolint:errcheck // it ends when it ends
		_ = answer.Body.Close()
	})
}

// waits waits for compositions that do not end, as starts that are repeated and as results.
func waits(ctx context.Context, s *side, o Options) {
	repeat(ctx, o.Waits, func(ctx context.Context, client int) {
		if client%2 == 0 {
			_ = s.do(ctx, http.MethodPost, "/v1/calls", s.key, holding(client), nil, "Prefer", "wait=60") //nolint:errcheck // only statuses count
			return
		}
		session := s.held(ctx, client)
		_ = s.do(ctx, http.MethodGet, "/v1/sessions/"+session+"/result?wait=60", s.key, "", nil) //nolint:errcheck // see above
	})
}

// bodies sends large requests, some of which arrive slowly.
func bodies(ctx context.Context, s *side, o Options) {
	large := fmt.Sprintf(`{"input":{"items":[%q]}}`, bytes.Repeat([]byte("x"), 1_000_000))
	repeat(ctx, o.Bodies, func(ctx context.Context, _ int) {
		_ = s.do(ctx, http.MethodPost, "/v1/tools/todo.write/calls", s.key, large, nil) //nolint:errcheck // only statuses count
	})
}

// starts starts calls as fast as it can.
func starts(ctx context.Context, s *side, o Options) {
	repeat(ctx, o.Starts, func(ctx context.Context, _ int) {
		_ = s.do(ctx, http.MethodPost, "/v1/tools/todo.write/calls", s.key, `{"input":{"items":[]}}`, nil) //nolint:errcheck // only statuses count
	})
}

// idle opens connections and sends the beginning of a request on them.
func idle(ctx context.Context, s *side, o Options) {
	address := strings.TrimPrefix(s.url, "http://")
	repeat(ctx, o.Idle, func(ctx context.Context, _ int) {
		conn, err := s.dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_, err = io.WriteString(conn, "GET /v1/me HTTP/1.1\r\n")
		if _, read := conn.Read(make([]byte, 1)); errors.Join(err, read) != nil {
			_ = conn.Close()
		}
	})
}
