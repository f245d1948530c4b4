package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/outbound"
)

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
