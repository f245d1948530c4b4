package wire

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/notify"
	"github.com/jig-run/jig/store"
)

// newDispatcher makes what sends the notices in a store to the webhooks that settings name.
func newDispatcher(
	db *store.DB, settings func(ctx context.Context, tenant string) (jig.TenantSettings, error), s Settings, logger *slog.Logger,
) *notify.Dispatcher {
	return &notify.Dispatcher{
		Outbox:   outbox{db},
		Settings: settings,
		Sender:   notify.NewWebhooks(notify.WebhookOptions{Transport: webhookTransport(s.AllowLoopback)}),
		Logger:   logger,
	}
}

// Limits of a webhook's connections.
const (
	webhookDialTimeout = 10 * time.Second
	webhookIdleTimeout = 30 * time.Second
	webhookHeaderBytes = 16 << 10
)

// webhookTransport reaches public addresses alone, whatever a name resolves to: who may write a tenant's document must not
// reach the network of the worker. It takes no proxy from the environment, which would reach what the guard forbids.
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

// outbox gives a dispatcher the store's notices.
type outbox struct{ *store.DB }

// TakeDeliveries takes deliveries that are due.
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

// SettleDelivery writes down what became of a delivery.
func (o outbox) SettleDelivery(ctx context.Context, d notify.Delivery, a notify.Attempt) error {
	return o.DB.SettleDelivery(ctx, store.Delivery(d), store.Attempt{
		Status: store.DeliveryStatus(a.Status), Held: a.Held, Error: a.Error, Wait: a.Wait, Rest: a.Rest, Settings: a.Settings,
	})
}
