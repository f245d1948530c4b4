package model

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// refused is a response with an error status.
type refused struct {
	status int
	header http.Header
	body   string
	// env is the environment variable that holds the provider's key; key is the key itself.
	env, key string
}

func (r refused) jig(now time.Time) *jig.Error {
	message := providerMessage(r.body)
	if message == "" {
		message = http.StatusText(r.status)
	}
	message = redact(message, r.key)
	switch {
	case r.status == http.StatusTooManyRequests:
		e := jig.Errorf(jig.CodeRateLimited, "the model's provider limits the rate: %s", message)
		e.RetryAfter = retryAfter(r.header, now)
		return e
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden || r.status == http.StatusPaymentRequired:
		return jig.Errorf(jig.CodeNotPermitted, "the model's provider refuses the key (%d): %s", r.status, message).
			WithHint("check " + r.env + " in the worker's environment")
	case r.status >= http.StatusInternalServerError || r.status == http.StatusRequestTimeout || r.status == http.StatusConflict:
		e := jig.Errorf(jig.CodeUnavailable, "the model's provider failed (%d): %s", r.status, message)
		e.RetryAfter = retryAfter(r.header, now)
		return e
	}
	e := jig.Errorf(jig.CodeInvalidInput, "the model's provider refuses the request (%d): %s", r.status, message)
	if strings.Contains(strings.ToLower(message), "stream") {
		return e.WithHint("if the model cannot stream its answers, list it in " + EnvUnstreamed + " in the worker's environment")
	}
	return e
}

// streamFailure returns the error for an error event within a stream.
func streamFailure(data []byte, key string) *jig.Error {
	kind := struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}{}
	_ = json.Unmarshal(data, &kind) //nolint:errcheck // an error in another format leaves the type empty
	message := redact(providerMessage(string(data)), key)
	switch kind.Error.Type {
	case "rate_limit_error":
		return jig.Errorf(jig.CodeRateLimited, "the model's provider limits the rate: %s", message)
	case "invalid_request_error", "not_found_error", "request_too_large":
		return jig.Errorf(jig.CodeInvalidInput, "the model's provider refuses the request: %s", message)
	case "authentication_error", "permission_error", "billing_error":
		return jig.Errorf(jig.CodeNotPermitted, "the model's provider refuses the key: %s", message)
	}
	return jig.Errorf(jig.CodeUnavailable, "the model's provider failed: %s", message)
}

// providerMessage extracts the message from the body of an error: {"error": {"message"}}, {"error": "…"}, {"message"}, {"detail"}, or plain
// text.
func providerMessage(body string) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal([]byte(body), &shape) != nil {
		return shorten(body)
	}
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(shape.Error, &inner) == nil && inner.Message != "":
		return shorten(inner.Message)
	case json.Unmarshal(shape.Error, &text) == nil && text != "":
		return shorten(text)
	case shape.Message != "":
		return shorten(shape.Message)
	case shape.Detail != "":
		return shorten(shape.Detail)
	}
	return ""
}

func shorten(s string) string {
	const most = 500
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "<") { // the HTML page of a proxy
		return ""
	}
	return jig.Cut(strings.ToValidUTF8(s, ""), most)
}

// keyForm matches anything that looks like a provider's key, including keys that the provider itself masks in part.
var keyForm = regexp.MustCompile(`\bsk-[A-Za-z0-9_*.-]+`)

func redact(s, key string) string {
	if key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	return keyForm.ReplaceAllString(s, "[key]")
}

// retryAfter returns how long the provider asks to wait: Retry-After-Ms, or Retry-After in seconds or as a date; 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
