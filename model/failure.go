package model

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// errorResponse is a response with an error status.
type errorResponse struct {
	status int
	header http.Header
	body   string
	// env is the environment variable that holds the provider's key; key is the key itself.
	env, key string
}

func (r errorResponse) jig(now time.Time) *jig.Error {
	message := providerMessage(r.body)
	if message == "" {
		message = http.StatusText(r.status)
	}
	message = redact(message, r.key)
	e := failed(r.status, kindsOf([]byte(r.body)), message)
	switch {
	case e.Code.Retryable():
		return afterWait(e, retryAfter(r.header, now))
	case e.Code == jig.CodeNotPermitted:
		return e.WithHint("check " + r.env + " in the worker's environment")
	case e.Code == jig.CodeInvalidInput && strings.Contains(strings.ToLower(message), "stream"):
		return e.WithHint("if the model cannot stream its answers, list it in " + EnvUnstreamed + " in the worker's environment")
	}
	return e
}

// maxWait is the longest wait that a provider may ask for. A longer one fails the session.
const maxWait = time.Hour

// afterWait returns the error of a provider that asks for a wait before the next attempt.
func afterWait(e *jig.Error, wait time.Duration) *jig.Error {
	if wait > maxWait {
		return jig.Errorf(jig.CodeBudgetExhausted, "the model's provider asks to wait %s, which is too long: %s", wait.Round(time.Second), e.Message).
			WithReason(jig.ReasonProviderWait).WithHint("send a message to continue the session when the provider answers again, or use another model")
	}
	e.RetryAfter = wait
	return e
}

// errorKinds are the words and the number with which a provider says what kind an error is.
type errorKinds struct {
	Type   scalar `json:"type"`
	Code   scalar `json:"code"`
	Status scalar `json:"status"`
}

// kindsOf returns the kinds of an error {"error": {…}}, or of one without that envelope.
func kindsOf(data []byte) errorKinds {
	var shape struct {
		Error json.RawMessage `json:"error"`
	}
	var kinds errorKinds
	if json.Unmarshal(data, &shape) != nil || json.Unmarshal(shape.Error, &kinds) != nil {
		_ = json.Unmarshal(data, &kinds) //nolint:errcheck // an error in another format has no kinds
	}
	return kinds
}

// has reports whether one of the kinds is one of these words.
func (k errorKinds) has(words ...string) bool {
	return slices.Contains(words, strings.ToLower(string(k.Type))) || slices.Contains(words, strings.ToLower(string(k.Code)))
}

// number returns the HTTP status that the error names, or 0.
func (k errorKinds) number() int {
	for _, text := range []scalar{k.Code, k.Status} {
		if n, err := strconv.Atoi(string(text)); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return 0
}

// failed returns the error for a failure that a provider reports: with a status, or in an answer with the status 0. Its kinds are more
// precise than its status, which some gateways make up.
func failed(status int, kinds errorKinds, message string) *jig.Error {
	if status == 0 {
		status = kinds.number()
	}
	switch {
	case kinds.has("insufficient_quota", "billing_hard_limit_reached", "quota_exceeded", "billing_error"), status == http.StatusPaymentRequired:
		return jig.Errorf(jig.CodeBudgetExhausted, "the quota at the model's provider is used up: %s", message).WithReason(jig.ReasonProviderQuota).
			WithHint("raise the quota of the provider's account, and send a message to continue the session")
	case status == http.StatusTooManyRequests, status == 0 && kinds.has("rate_limit_error", "rate_limit_exceeded"):
		return jig.Errorf(jig.CodeRateLimited, "the model's provider limits the rate: %s", message)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == 0 && kinds.has("authentication_error", "permission_error"):
		return jig.Errorf(jig.CodeNotPermitted, "the model's provider refuses the key%s: %s", inBrackets(status), message)
	case status == 0 && kinds.has("invalid_request_error", "not_found_error", "request_too_large"),
		status != 0 && status < http.StatusInternalServerError && status != http.StatusRequestTimeout && status != http.StatusConflict:
		return jig.Errorf(jig.CodeInvalidInput, "the model's provider refuses the request%s: %s", inBrackets(status), message)
	}
	return jig.Errorf(jig.CodeUnavailable, "the model's provider failed%s: %s", inBrackets(status), message)
}

func inBrackets(status int) string {
	if status == 0 {
		return ""
	}
	return " (" + strconv.Itoa(status) + ")"
}

// streamFailure returns the error for an error within an answer. Unless it says that the provider is overloaded, the answer is broken.
func streamFailure(data []byte, key string) *jig.Error {
	kinds := kindsOf(data)
	e := failed(0, kinds, redact(providerMessage(string(data)), key))
	if e.Code == jig.CodeUnavailable && !kinds.has("overloaded_error") {
		e.Reason = jig.ReasonBrokenAnswer
	}
	return e
}

// errorMember returns the error for a member error of an answer.
func errorMember(raw json.RawMessage, key string) *jig.Error {
	return streamFailure([]byte(`{"error":`+string(raw)+`}`), key)
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
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
