package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/tenancy"
)

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

// receivers lists the webhooks of a tenant and the people who are told in words.
func (d *Dispatcher) receivers(s tenancy.Settings) []receiver {
	var list []receiver
	for _, w := range s.Webhooks {
		list = append(list, receiver{Target(w), hostOf(w.URL), w.Events, func(ctx context.Context, n jig.Notice) error { return d.Sender.Send(ctx, n, w) }})
	}
	for _, m := range s.Messages {
		list = append(list, receiver{MessageTarget(m), messageHost(m), m.Events, func(ctx context.Context, n jig.Notice) error {
			if d.Teller == nil {
				return jig.Errorf(jig.CodeUnavailable, "this worker cannot send mail or write to chats")
			}
			return d.Teller.Tell(ctx, n, m)
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

// Teller tells people about notices. Its errors mean the same as those of a [Sender].
type Teller interface {
	Tell(ctx context.Context, n jig.Notice, to tenancy.Message) error
}

// People tells people by mail and in chats.
type People struct {
	// Chats posts to chats. Required.
	Chats *Webhooks
	// Mailer sends mail; nil if the worker has no mail server.
	Mailer *Mailer
	// PublicURL is the address of the server, for links; empty means no links.
	PublicURL string
}

// Tell implements [Teller].
func (p People) Tell(ctx context.Context, n jig.Notice, to tenancy.Message) error {
	words := WordsOf(n, p.PublicURL)
	if len(to.Mail) == 0 {
		return p.Chats.Chat(ctx, words, to)
	}
	if p.Mailer == nil {
		return jig.Errorf(jig.CodeUnavailable, "this worker has no mail server").WithField("JIG_SMTP_URL").WithHint("set JIG_SMTP_URL and JIG_SMTP_FROM on every worker")
	}
	return p.Mailer.Mail(ctx, n.ID, words, to.Mail)
}
