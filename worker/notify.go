package worker

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy"
)

// newDispatcher returns the dispatcher that sends stored notices to the webhooks in the tenants' settings.
func newDispatcher(
	db *store.DB, settings func(ctx context.Context, tenant string) (tenancy.Settings, error), s Settings,
	m *metrics.Metrics, logger *slog.Logger,
) *notify.Dispatcher {
	mailer, err := s.mailer()
	if err != nil { // the settings were checked
		logger.Error("mail cannot be sent", slog.Any("error", err))
	}
	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: webhookTransport(s.AllowLoopback)})
	return &notify.Dispatcher{
		Outbox:   db,
		Settings: settings,
		Sender:   sender,
		Teller:   notify.People{Chats: sender, Mailer: mailer, PublicURL: s.PublicURL},
		Counted:  m.Delivered,
		Logger:   logger,
	}
}

// Limits of a webhook connection.
const (
	webhookIdleTimeout = 30 * time.Second
	webhookHeaderBytes = 16 << 10
)

// webhookTransport returns a guarded transport, because people who may write a tenant's document must not reach the worker's own network.
func webhookTransport(allowLoopback bool) *http.Transport {
	t := outbound.Transport(outbound.Options{AllowLoopback: allowLoopback})
	t.ForceAttemptHTTP2 = true
	t.IdleConnTimeout = webhookIdleTimeout
	t.MaxResponseHeaderBytes = webhookHeaderBytes
	return t
}
