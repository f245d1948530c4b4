package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/tenancy"
)

// Sender sends a notice to a webhook. After an error with [ReasonGone], the webhook gets no further notices until the settings change.
// After any other error the delivery is retried, but not before the error's RetryAfter.
type Sender interface {
	Send(ctx context.Context, n jig.Notice, to tenancy.Webhook) error
}

// ReasonGone is the reason of the error for a webhook that does not want further messages.
const ReasonGone = "gone"

// Limits of a message.
const (
	// SendTimeout is how long a webhook has to answer, including the connection.
	SendTimeout = 15 * time.Second
	// maxAnswer is the number of bytes read from an answer. It is enough to reuse the connection in most cases.
	maxAnswer = 4 << 10
	// minSecret is the shortest secret that Standard Webhooks allows, in bytes.
	minSecret = 24
)

// WebhookOptions are the settings of Webhooks.
type WebhookOptions struct {
	// Transport makes the connections. It must refuse addresses that webhooks are not allowed to reach. Required.
	Transport http.RoundTripper
	// Timeout limits one attempt. Default: SendTimeout.
	Timeout time.Duration
	// PublicURL is the address of the server, for links; empty means no links.
	PublicURL string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Webhooks sends notices in the Standard Webhooks format. It is safe for concurrent use.
type Webhooks struct {
	client    http.Client
	publicURL string
	now       func() time.Time
}

// NewWebhooks returns a sender.
func NewWebhooks(options WebhookOptions) *Webhooks {
	if options.Timeout <= 0 {
		options.Timeout = SendTimeout
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Webhooks{now: options.Now, publicURL: options.PublicURL, client: http.Client{
		Transport: options.Transport,
		Timeout:   options.Timeout,
		// A message is signed for one address and must not go anywhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// message is the body of a webhook call, as Standard Webhooks recommends it.
type message struct {
	Type      jig.NoticeKind `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	Data      jig.Notice     `json:"data"`
}

// Send posts a notice with a fresh signature. No error contains the address, because its path can be a secret.
func (w *Webhooks) Send(ctx context.Context, n jig.Notice, to tenancy.Webhook) error {
	request, err := w.request(ctx, n, to)
	if err != nil {
		return err
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) //nolint:errcheck // only the status counts
	return w.judge(answer)
}

func (w *Webhooks) request(ctx context.Context, n jig.Notice, to tenancy.Webhook) (*http.Request, error) {
	hook, err := signer(to.Secret)
	if err != nil {
		return nil, err
	}
	if to.Readable() {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the webhook's address is http, so messages can be read in transit").
			WithField("webhooks.url").WithHint("use https; http is only for this machine")
	}
	n.URL, n.Approval.PolicyVersion = linkOf(n, w.publicURL), jig.ShortVersion(n.Approval.PolicyVersion)
	body, err := json.Marshal(message{Type: n.Kind, Timestamp: n.At.UTC(), Data: n})
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the notice cannot be written as JSON: %w", err)
	}
	now := w.now()
	signature, err := hook.Sign(n.ID, now, body)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the notice cannot be signed: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the webhook's address cannot be used").WithField("webhooks.url").
			WithHint("write it as https://host/path")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "jig")
	request.Header.Set(standardwebhooks.HeaderWebhookID, n.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

// signer returns the signer for a secret, and refuses a secret that is too short to protect anything.
func signer(secret []byte) (*standardwebhooks.Webhook, error) {
	if len(secret) < minSecret {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the webhook's secret has %d bytes", len(secret)).WithField("webhooks.secret").
			WithHint("use at least 24 random bytes")
	}
	hook, err := standardwebhooks.NewWebhookRaw(secret)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the webhook's secret cannot be used: %w", err).WithField("webhooks.secret")
	}
	return hook, nil
}

// judge returns nil if the answer means that the webhook has accepted the message, and an error otherwise.
func (w *Webhooks) judge(answer *http.Response) error {
	status := answer.StatusCode
	code := jig.CodeUnavailable
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return jig.Errorf(jig.CodeNotFound, "the webhook answered 410: it wants no more messages").WithReason(ReasonGone)
	case status >= 300 && status < 400:
		return jig.Errorf(code, "the webhook answered %d: redirects are not followed", status).WithField("webhooks.url").
			WithHint("use the address of the redirect in the tenant's document")
	case status == http.StatusTooManyRequests:
		code = jig.CodeRateLimited
	}
	failure := jig.Errorf(code, "the webhook answered %d", status)
	failure.RetryAfter = w.retryAfter(answer.Header.Get("Retry-After"))
	return failure
}

// retryAfter parses a Retry-After header: seconds or a date (RFC 9110, section 10.2.3). Anything else is 0.
func (w *Webhooks) retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(w.now()))
	}
	return 0
}

// unreachable returns the error for a webhook that gave no answer, without its address.
func unreachable(err error) error {
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		if wrapper.Timeout() {
			return jig.Errorf(jig.CodeTimeout, "the webhook did not answer in time")
		}
		err = wrapper.Err
	}
	return jig.Errorf(jig.CodeUnavailable, "the webhook cannot be reached: %w", err)
}

// receiver is a place to which the notices of a tenant go.
type receiver struct {
	// target identifies it in the outbox, and host names it in the log.
	target, host string
	events       []jig.NoticeKind
	send         func(ctx context.Context, n jig.Notice) error
}

// wants reports whether a receiver gets a kind of notice.
func (r receiver) wants(kind jig.NoticeKind) bool {
	return len(r.events) == 0 || slices.Contains(r.events, kind)
}

// receivers lists the webhooks of a tenant and the mailboxes and chats.
func (d *Dispatcher) receivers(s tenancy.Settings) []receiver {
	var list []receiver
	for _, w := range s.Webhooks {
		list = append(list, receiver{Target(w), hostOf(w.URL), w.Events, func(ctx context.Context, n jig.Notice) error { return d.Sender.Send(ctx, n, w) }})
	}
	for _, m := range s.Messages {
		list = append(list, receiver{MessageTarget(m), messageHost(m), m.Events, func(ctx context.Context, n jig.Notice) error {
			if d.Messenger == nil {
				return jig.Errorf(jig.CodeUnavailable, "this worker cannot send mail or write to chats")
			}
			return d.Messenger.Send(ctx, n, m)
		}})
	}
	return list
}

// Target identifies a webhook by a hash of its address (32 hex digits), so that a new secret does not change it.
func Target(w tenancy.Webhook) string {
	sum := sha256.Sum256([]byte(w.URL))
	return hex.EncodeToString(sum[:16])
}

// MessageTarget identifies mailboxes by a hash of their addresses and a chat by one of the variable that has its address.
func MessageTarget(m tenancy.Message) string {
	sum := sha256.Sum256([]byte("chat:" + m.ChatEnv))
	if len(m.Mail) > 0 {
		sum = sha256.Sum256([]byte("mail:" + strings.Join(slices.Sorted(slices.Values(m.Mail)), ",")))
	}
	return hex.EncodeToString(sum[:16])
}

// messageHost names mailboxes by the domain of the first, and a chat by its host.
func messageHost(m tenancy.Message) string {
	if len(m.Mail) > 0 {
		return domainOf(m.Mail[0])
	}
	return hostOf(m.ChatURL)
}

// Messenger writes to people by mail and in chats.
type Messenger struct {
	// Chats posts to chats. Required.
	Chats *Webhooks
	// Mailer sends mail; nil if the worker has no mail server.
	Mailer *Mailer
	// PublicURL is the address of the server, for links; empty means no links.
	PublicURL string
}

// Send sends a notice to mailboxes or a chat. Its errors mean the same as those of a [Sender].
func (p *Messenger) Send(ctx context.Context, n jig.Notice, to tenancy.Message) error {
	words := WordsOf(n, p.PublicURL)
	if len(to.Mail) == 0 {
		return p.Chats.Chat(ctx, words, to)
	}
	if p.Mailer == nil {
		return jig.Errorf(jig.CodeUnavailable, "this worker has no mail server").WithField("JIG_SMTP_URL").WithHint("set JIG_SMTP_URL and JIG_SMTP_FROM on every worker")
	}
	return p.Mailer.Mail(ctx, n.ID, words, to.Mail)
}
