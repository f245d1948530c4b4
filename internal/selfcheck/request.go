package selfcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

const (
	requestTimeout = time.Minute
	// maxAnswer bounds how much of an answer is read.
	maxAnswer = 16 << 20
	// settleAttempts is how often an unfinished session is looked at, and settlePause the time between.
	settleAttempts = 20
	settlePause    = 250 * time.Millisecond
	// expireAttempts is how often a credential is tried that should expire.
	expireAttempts = 100
	// busyAttempts is how often a request is repeated that a rate limit refused.
	busyAttempts = 100
)

// answer is a server's answer.
type answer struct {
	status  int
	headers http.Header
	body    []byte
	// suggested reports that a hint was left out of the body, see withoutSuggestions.
	suggested bool
}

// fresh matches what is different in each answer: the ids of requests, of sessions that a request starts without naming them and of new embed
// tokens with their texts, digests of calls, and times.
var fresh = regexp.MustCompile(`"(request_id":"req_|session_id":"ses_|id":"emb_|embed_token":"jig_embed_|digest":"|(?:[a-z]+_)?at":"20)[^"]*"`)

// plain returns the body without what is different in each answer.
func (a answer) plain() []byte { return fresh.ReplaceAll(a.body, []byte(`"$1"`)) }

// said returns the plain body, cut.
func (a answer) said() string { return jig.Cut(string(a.plain()), 400) }

// differs returns how an answer differs from another one, apart from what is different in each; empty if it does not.
func (a answer) differs(b answer) string {
	if a.status != b.status || !bytes.Equal(a.plain(), b.plain()) {
		return fmt.Sprintf("%d %s instead of %d %s", b.status, b.said(), a.status, a.said())
	}
	names := map[string]bool{}
	for _, headers := range []http.Header{a.headers, b.headers} {
		for name := range headers {
			names[name] = true
		}
	}
	for _, name := range []string{"Date", "X-Request-Id", "Content-Length"} {
		delete(names, name)
	}
	if a.status < http.StatusMultipleChoices { // the address of a new session
		delete(names, "Location")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.Equal(a.headers[name], b.headers[name]) {
			return fmt.Sprintf("the header %s is %q instead of %q", name, b.headers[name], a.headers[name])
		}
	}
	return ""
}

// do makes a prepared request with Authorization headers.
func (r *run) do(ctx context.Context, p prepared, authorization ...string) (answer, error) {
	return r.send(ctx, p.method, p.path, p.body, p.headers, authorization...)
}

// ask makes a request with a credential, or without one if it is empty. The answer must be a success.
func (r *run) ask(ctx context.Context, method, path string, body any, credential string) (answer, error) {
	var authorization []string
	if credential != "" {
		authorization = []string{"Bearer " + credential}
	}
	got, err := r.send(ctx, method, path, body, nil, authorization...)
	if err == nil && got.status >= http.StatusMultipleChoices {
		err = jig.Errorf(jig.CodeUnavailable, "%s %s is answered %d: %s", method, path, got.status, got.said())
	}
	return got, err
}

// read decodes what a path has.
func (r *run) read(ctx context.Context, path, credential string, into any) error {
	got, err := r.ask(ctx, http.MethodGet, path, nil, credential)
	if err != nil {
		return err
	}
	return decode(got.body, into)
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return jig.Errorf(jig.CodeInvalidOutput, "the server's answer is not the JSON that its document describes: %w", err)
	}
	return nil
}

// send makes a request. It waits and tries again while a rate limit refuses it.
func (r *run) send(ctx context.Context, method, path string, body any, headers http.Header, authorization ...string) (answer, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return answer{}, jig.Errorf(jig.CodeInternal, "encoding a request: %w", err)
		}
	}
	for attempt := 1; ; attempt++ {
		got, err := r.once(ctx, method, path, content, headers, authorization)
		if err != nil || got.status != http.StatusTooManyRequests || attempt == busyAttempts {
			return got, err
		}
		seconds, err := strconv.Atoi(got.headers.Get("Retry-After"))
		if err != nil {
			r.found("%s %s is answered 429 without a time in Retry-After", method, path)
			return got, nil //nolint:nilerr // it is a finding
		}
		if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
			return answer{}, err
		}
	}
}

func (r *run) once(ctx context.Context, method, path string, body []byte, headers http.Header, authorization []string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, jig.Errorf(jig.CodeInvalidInput, "the server's address cannot be used: %w", err).WithField("JIG_URL")
	}
	if body == nil {
		request.Body, request.ContentLength = nil, 0
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(request.Header, headers)
	if len(authorization) > 0 {
		request.Header["Authorization"] = authorization
	}
	got, err := r.Client.Do(request)
	if err != nil {
		return answer{}, jig.Errorf(jig.CodeUnavailable, "the server does not answer: %w", err).WithField("JIG_URL")
	}
	defer func() { _ = got.Body.Close() }()
	r.report.Requests++
	content, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	if err != nil {
		return answer{}, jig.Errorf(jig.CodeUnavailable, "the server's answer ended early: %w", err)
	}
	return answer{got.StatusCode, got.Header, content, false}, nil
}

// settled waits a moment for unfinished sessions. It returns true if it cannot wait any longer.
func (r *run) settled(ctx context.Context) bool { return pause(ctx, settlePause) != nil }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the server: %w", ctx.Err())
	}
}
