package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/jig-run/jig"
)

type getInput struct {
	URL     string            `json:"url"               jsonschema:"address to fetch, http or https" minLength:"1" maxLength:"8192" destination:"true"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"request headers by name"`
}

type postInput struct {
	URL     string            `json:"url"               jsonschema:"address to send to, http or https" minLength:"1" maxLength:"8192" destination:"true"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"request headers by name; Content-Type replaces the default"`
	Body    json.RawMessage   `json:"body"              jsonschema:"a string is sent as text, anything else as JSON"`
}

func (f family) get(ctx context.Context, _ jig.Invocation, in getInput) (output, error) {
	request, err := f.request(ctx, http.MethodGet, in.URL, in.Headers, nil)
	if err != nil {
		return output{}, err
	}
	sent := &trace{}
	response, err := f.getter.Do(sent.watch(request))
	if err != nil {
		return output{}, failed(ctx, err, sent)
	}
	defer response.Body.Close()
	out := head(response)
	text, err := body(response)
	out.Body, out.Truncated = text.content, text.more
	switch {
	case err != nil:
		return output{}, failed(ctx, err, sent)
	case text.binary:
		return output{}, jig.Errorf(jig.CodeInvalidInput, "the answer (status %d, %s) is not text", out.Status, contentType(response)).
			WithField("/url").WithReason("binary_body").WithHint("only text can be fetched")
	}
	return out, nil
}

// post fails only if there was no response. If the body of the response cannot be shown, the response is returned without it.
func (f family) post(ctx context.Context, inv jig.Invocation, in postInput) (output, error) {
	content, media := payload(in.Body)
	if err := checkBody(content); err != nil {
		return output{}, unsent(err)
	}
	request, err := f.request(ctx, http.MethodPost, in.URL, in.Headers, content)
	if err != nil {
		return output{}, unsent(err)
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", media)
	}
	if inv.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", inv.IdempotencyKey)
	}
	request.GetBody = nil // the client must not send it again
	sent := &trace{}
	response, err := f.poster.Do(sent.watch(request))
	if err != nil {
		return output{}, failed(ctx, err, sent)
	}
	defer response.Body.Close()
	out := head(response)
	text, err := body(response)
	out.Body, out.Truncated = text.content, text.more
	if err != nil || text.binary {
		out.Truncated = true
	}
	if text.binary {
		out.Body = ""
	}
	return out, nil
}

func checkBody(content []byte) error {
	if len(content) > MaxRequestBody {
		return jig.Errorf(jig.CodeInvalidInput, "the body has %d bytes, at most %d are sent", len(content), MaxRequestBody).WithField("/body")
	}
	return nil
}

// payload returns the body as it is sent, with its media type.
func payload(raw json.RawMessage) ([]byte, string) {
	var text string
	if json.Unmarshal(raw, &text) == nil && !bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return []byte(text), "text/plain; charset=utf-8"
	}
	return raw, "application/json"
}

// request checks everything that can be checked before a connection is made.
func (f family) request(ctx context.Context, method, address string, headers map[string]string, content []byte) (*http.Request, error) {
	if len(address) > maxURL {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the URL is longer than %d bytes", maxURL).WithField("/url")
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the URL cannot be parsed").WithField("/url").WithHint("give it as https://host/path")
	}
	if err := checkURL(u); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%w", err).WithField("/url").WithHint("give it as https://host/path")
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(content))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the request cannot be made: %w", err).WithField("/url")
	}
	request.Header.Set("User-Agent", f.userAgent)
	if len(headers) > maxHeaders {
		return nil, jig.Errorf(jig.CodeInvalidInput, "at most %d headers are sent", maxHeaders).WithField("/headers")
	}
	if err := checkCredentials(headers); err != nil {
		return nil, err
	}
	for name, value := range headers {
		if why := checkHeader(name, value); why != "" {
			return nil, jig.Errorf(jig.CodeInvalidInput, "the header %q %s", name, why).WithField("/headers/" + name).WithReason("header_refused")
		}
		request.Header.Set(name, value)
	}
	return request, nil
}

// checkCredentials refuses headers whose names show that they hold credentials. The input of a call is stored: in the ledger, in approvals
// and notices, in the model's conversation and in workflow histories.
func checkCredentials(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch http.CanonicalHeaderKey(strings.TrimSpace(name)) {
		case "Authorization", "Proxy-Authorization", "Cookie", "Cookie2":
			return jig.Errorf(jig.CodeInvalidInput, "the header %q would put a credential into the input of a call, where it is stored forever", name).
				WithField("/headers/" + name).WithReason("header_refused").
				WithHint("write a tool of your own that adds the header with the credential")
		}
	}
	return nil
}

// refuseCredentials refuses a call with such headers at admission, before anybody is asked to approve it.
func (in getInput) refuseCredentials() error  { return checkCredentials(in.Headers) }
func (in postInput) refuseCredentials() error { return checkCredentials(in.Headers) }

// checkHeader returns why a header cannot be sent, or "" if it can. Headers that control the connection are reserved for jig.
func checkHeader(name, value string) string {
	refused := []string{
		"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect", "Idempotency-Key",
		"X-Idempotency-Key", "Accept-Encoding", "Http2-Settings",
	}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return "has no valid name"
	case slices.Contains(refused, canonical) || strings.HasPrefix(canonical, "Proxy-"):
		return "is reserved for jig"
	case !httpguts.ValidHeaderFieldValue(value):
		return "has no valid value"
	case len(value) > maxHeaderValue:
		return fmt.Sprintf("is longer than %d bytes", maxHeaderValue)
	}
	return ""
}
