package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/tenancy"
)

// noticeHandler passes verified notices to act, which must ignore an id that it has seen before.
func noticeHandler(secret []byte, act func(kind string, n jig.Notice) error) (http.Handler, error) {
	verifier, err := standardwebhooks.NewWebhookRaw(secret)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = verifier.Verify(body, r.Header) // checks the signature over the raw bytes, and an age of at most 5 minutes
		}
		var message struct {
			Type string     `json:"type"`
			Data jig.Notice `json:"data"`
		}
		if err == nil {
			err = json.Unmarshal(body, &message)
		}
		if err != nil {
			http.Error(w, "not a message for us", http.StatusBadRequest)
			return
		}
		if err := act(message.Type, message.Data); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}), nil
}

// A server that receives notices verifies them and remembers the ids it has seen.
func Example_receiving() {
	ctx, secret := context.Background(), []byte("what JIG_SECRET_HOOK holds")
	seen := map[string]bool{} // a real server keeps them in its database
	handler, err := noticeHandler(secret, func(kind string, n jig.Notice) error {
		if !seen[n.ID] {
			seen[n.ID] = true
			fmt.Println(kind, n.Approval.Call, n.Approval.Summary)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: http.DefaultTransport})
	notice := jig.Notice{
		ID: "ntc_5f0c", Tenant: "acme", Kind: jig.NoticeRequested, At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Approval: jig.Pending{SessionID: "ses_1", Call: "3.2", Tool: "payment.refund", Summary: "refunds 120 EUR"},
	}
	for range 2 { // a second delivery is ignored
		err := sender.Send(ctx, notice, tenancy.Webhook{URL: server.URL, Secret: secret})
		fmt.Println("delivered:", err == nil)
	}
	err = sender.Send(ctx, notice, tenancy.Webhook{URL: server.URL, Secret: []byte("what somebody else made up")})
	fmt.Println("with another secret:", err == nil)
	// Output:
	// approval.requested 3.2 refunds 120 EUR
	// delivered: true
	// delivered: true
	// with another secret: false
}
