package worker

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"

	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy"
)

// newDispatcher returns the dispatcher that sends stored notices to the webhooks in the tenants' settings.
func newDispatcher(
	db *store.DB, settings func(ctx context.Context, tenant string) (tenancy.Settings, error), s Settings, logger *slog.Logger,
) *notify.Dispatcher {
	return &notify.Dispatcher{
		Outbox:   outbox{db},
		Settings: settings,
		Sender:   notify.NewWebhooks(notify.WebhookOptions{Transport: webhookTransport(s.AllowLoopback)}),
		Logger:   logger,
	}
}

// Limits of a webhook connection.
const (
	webhookDialTimeout = 10 * time.Second
	webhookIdleTimeout = 30 * time.Second
	webhookHeaderBytes = 16 << 10
)

// webhookTransport returns a transport that connects only to public addresses, and to loopback if allowed, whatever a host name resolves
// to: people who may write a tenant's document must not reach the worker's own network. It ignores proxies in the environment, because a
// proxy could reach addresses that the guard forbids.
func webhookTransport(allowLoopback bool) *http.Transport {
	options := []ssrf.Option{ssrf.WithAnyPort()}
	if allowLoopback {
		options = append(options,
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	dialer := &net.Dialer{Timeout: webhookDialTimeout, Control: ssrf.New(options...).Safe}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        webhookIdleTimeout,
		TLSHandshakeTimeout:    webhookDialTimeout,
		MaxResponseHeaderBytes: webhookHeaderBytes,
	}
}

// outbox gives the dispatcher access to the notices in the store.
type outbox struct{ *store.DB }

// TakeDeliveries takes deliveries that are due. Those in underWay are already being sent.
func (o outbox) TakeDeliveries(
	ctx context.Context, limit, perTenant int, underWay []notify.Delivery, lease time.Duration,
) ([]notify.Delivery, error) {
	busy := make([]store.Delivery, len(underWay))
	for i, d := range underWay {
		busy[i] = store.Delivery(d)
	}
	found, err := o.DB.TakeDeliveries(ctx, limit, perTenant, busy, lease)
	taken := make([]notify.Delivery, len(found))
	for i, d := range found {
		taken[i] = notify.Delivery(d)
	}
	return taken, err
}

// SettleDelivery records the result of a delivery attempt.
func (o outbox) SettleDelivery(ctx context.Context, d notify.Delivery, a notify.Attempt) error {
	return o.DB.SettleDelivery(ctx, store.Delivery(d), store.Attempt{
		Status: store.DeliveryStatus(a.Status), Held: a.Held, Error: a.Error, Wait: a.Wait, Rest: a.Rest, Settings: a.Settings,
	})
}
