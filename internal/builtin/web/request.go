package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/net/html/charset"
	"golang.org/x/net/http/httpguts"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/internal/preview"
)

type getInput struct {
	URL     string            `json:"url"               jsonschema:"address to fetch, http or https" minLength:"1" maxLength:"8192" destination:"true" url:"true"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"request headers by name; others are refused"`
}

type postInput struct {
	URL     string            `json:"url"               jsonschema:"address to send to, http or https" minLength:"1" maxLength:"8192" destination:"true" url:"true"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"request headers by name; Content-Type replaces the default, others are refused"`
	Body    json.RawMessage   `json:"body"              jsonschema:"a string is sent as text, anything else as JSON"`
}

func (f family) get(ctx context.Context, _ jig.Invocation, in getInput) (output, error) {
	request, err := f.request(ctx, http.MethodGet, in.URL, in.Headers, nil)
	if err != nil {
		return output{}, err
	}
	response, err := f.getter.Do(request)
	if err != nil {
		return output{}, failed(ctx, err)
	}
	defer response.Body.Close()
	out := head(response)
	text, err := body(response)
	out.Body, out.Truncated = text.content, text.more
	switch {
	case err != nil:
		return output{}, failed(ctx, err)
	case text.binary:
		return output{}, jig.Errorf(jig.CodeInvalidInput, "the answer (status %d, %s) is not text", out.Status, contentType(response)).
			WithField("/url").WithReason("binary_body").WithHint("only text can be fetched")
	}
	return out, nil
}

// post fails only if there was no response. If the body of the response cannot be shown, the response is returned without it.
func (f family) post(ctx context.Context, inv jig.Invocation, in postInput) (output, error) {
	request, _, err := f.postRequest(ctx, in)
	if err != nil {
		return output{}, unsent(err)
	}
	if inv.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", inv.IdempotencyKey)
	}
	request.GetBody = nil // the client must not send it again
	response, err := f.poster.Do(request)
	if err != nil {
		return output{}, failed(ctx, err)
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

// postRequest returns the request for a call of http.post, and its body.
func (f family) postRequest(ctx context.Context, in postInput) (*http.Request, []byte, error) {
	content, media := payload(in.Body)
	if len(content) > MaxRequestBody {
		return nil, nil, jig.Errorf(jig.CodeInvalidInput, "the body has %d bytes, at most %d are sent", len(content), MaxRequestBody).WithField("/body")
	}
	request, err := f.request(ctx, http.MethodPost, in.URL, in.Headers, content)
	if err != nil {
		return nil, nil, err
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", media)
	}
	return request, content, nil
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
	u, err := url.Parse(address)
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
	canonical, err := checkHeaders(headers)
	if err != nil {
		return nil, err
	}
	for name, value := range canonical {
		request.Header.Set(name, value)
	}
	return request, nil
}

// sentHeaders are the headers that a call may set. Others could carry data in their names, hold a credential, or control the connection.
var sentHeaders = []string{ // immutable
	"Accept", "Accept-Language", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "User-Agent",
}

// checkHeaders returns the headers under their canonical names. It returns INVALID_INPUT for a header that a call may not set, and for one that is
// given twice.
func checkHeaders(headers map[string]string) (map[string]string, error) {
	if headers == nil {
		return nil, nil
	}
	canonical := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		key := http.CanonicalHeaderKey(name)
		_, twice := canonical[key]
		hint := "use " + strings.Join(sentHeaders, ", ") + "; write a tool of your own for others"
		var why string
		switch value := headers[name]; {
		case !slices.Contains(sentHeaders, key):
			why = "is not one that a call may set"
		case twice:
			why, hint = "is given twice", "remove one of them"
		case !httpguts.ValidHeaderFieldValue(value):
			why, hint = "has no valid value", "remove control characters"
		case len(value) > maxHeaderValue:
			why, hint = fmt.Sprintf("is longer than %d bytes", maxHeaderValue), "shorten it"
		}
		if why != "" {
			return nil, jig.Errorf(jig.CodeInvalidInput, "the header %q %s", name, why).WithField("/headers/" + name).
				WithReason("header_refused").WithHint(hint)
		}
		canonical[key] = headers[name]
	}
	return canonical, nil
}

// normalize checks the headers when a call is admitted, before anybody is asked to approve it, and writes their names canonically.
func normalize(headers *map[string]string) (err error) {
	*headers, err = checkHeaders(*headers)
	return err
}

// nameHeaders gives the input schema the names of the headers that a call may set.
func nameHeaders(schema *jsonschema.Schema) {
	headers := schema.Properties["headers"]
	headers.Properties = make(map[string]*jsonschema.Schema, len(sentHeaders))
	for _, name := range sentHeaders {
		headers.Properties[name] = &jsonschema.Schema{Type: "string"}
	}
}

// previewPost shows the request that would be sent, after the same checks. It connects to nothing, so it cannot say what the other system
// will do with the request.
func (f family) previewPost(ctx context.Context, _ jig.Invocation, in postInput) (jig.Preview, error) {
	request, content, err := f.postRequest(ctx, in)
	if err != nil {
		return jig.Preview{}, err
	}
	p := jig.Preview{Title: fmt.Sprintf("Sends %d bytes to %s", len(content), request.URL.Host), Changes: []string{"POST " + request.URL.String()}}
	for _, name := range slices.Sorted(maps.Keys(request.Header)) {
		p.Changes = append(p.Changes, name+": "+request.Header.Get(name))
	}
	p.Changes = append(p.Changes, preview.All("body", "+", string(content)))
	return p, nil
}

type output struct {
	Status    int               `json:"status"    jsonschema:"HTTP status code"`
	Headers   map[string]string `json:"headers"   jsonschema:"response headers by name, cookies left out"`
	Body      string            `json:"body"      jsonschema:"the text, cut after 1 MiB"`
	Truncated bool              `json:"truncated" jsonschema:"the body is longer than this"`
}

// Summary implements tools.Summarizer.
func (o output) Summary() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", o.Status, http.StatusText(o.Status))) + fmt.Sprintf(", %d bytes", len(o.Body))
}

// head returns the output for a response, without the body.
func head(response *http.Response) output {
	out := output{Status: response.StatusCode, Headers: map[string]string{}}
	var names []string
	for name := range response.Header {
		if name != "Set-Cookie" && name != "Set-Cookie2" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(maxHeaders, len(names))] {
		value := strings.ToValidUTF8(strings.Join(response.Header[name], ", "), "\uFFFD")
		out.Headers[name] = clip.Bytes(value, maxShownHeader)
	}
	return out
}

// text is the part of a body that was read.
type text struct {
	content      string
	more, binary bool
}

// body reads at most MaxBody bytes and converts them to UTF-8 from the declared character set.
func body(response *http.Response) (text, error) {
	reader := io.Reader(response.Body)
	if _, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil {
		if label := parameters["charset"]; label != "" && !strings.EqualFold(label, "utf-8") {
			if converted, err := charset.NewReaderLabel(label, reader); err == nil {
				reader = converted
			}
		}
	}
	b, err := io.ReadAll(io.LimitReader(reader, MaxBody+1))
	t := text{more: len(b) > MaxBody}
	if t.more || err != nil {
		b = clip.Whole(b[:min(MaxBody, len(b))])
	}
	t.binary = bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b)
	t.content = string(b)
	if err != nil {
		return t, fmt.Errorf("read body: %w", err)
	}
	return t, nil
}

func contentType(response *http.Response) string {
	if t, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil {
		return t
	}
	return "of unknown type"
}

func unsent(err error) error {
	e := *jig.AsError(err)
	e.NotExecuted = true
	return &e
}

// failed translates an error of the HTTP client.
func failed(ctx context.Context, err error) error {
	e := explain(ctx, err)
	e.NotExecuted = jig.AsError(err).NotExecuted
	return e
}

func explain(ctx context.Context, err error) *jig.Error {
	var dns *net.DNSError
	var network net.Error
	switch {
	case outbound.Forbidden(err):
		return jig.Errorf(jig.CodeNotPermitted, "the address belongs to an internal network").WithField("/url").
			WithReason("address_not_allowed").WithHint("only public addresses can be reached; the operator can allow others")
	case errors.Is(err, errRedirects):
		return jig.Errorf(jig.CodeUnavailable, "there are more than %d redirects", MaxRedirects).WithField("/url").WithReason("too_many_redirects")
	case errors.Is(err, errRefused):
		return jig.Errorf(jig.CodeNotPermitted, "the server redirects to an address that is not allowed: %w", cause(err)).WithField("/url").
			WithReason("redirect_refused")
	case errors.Is(ctx.Err(), context.Canceled):
		return jig.Errorf(jig.CodeCanceled, "the request was canceled")
	case errors.As(err, &dns) && dns.IsNotFound:
		return jig.Errorf(jig.CodeUnavailable, "there is no host %q", dns.Name).WithField("/url").WithReason("host_not_found")
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return jig.Errorf(jig.CodeTimeout, "the server did not answer in time").WithField("/url")
	}
	return jig.Errorf(jig.CodeUnavailable, "the request failed: %w", cause(err)).WithField("/url")
}

// cause strips the address that net/http puts in front of its errors, because it may contain a key, and the code of [tools.Transport].
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var unsent *jig.Error
	if errors.As(err, &unsent) && unsent.Cause != nil {
		return unsent.Cause
	}
	return err
}
