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
	"github.com/jig-run/jig/notify"
)

// A server that receives notices verifies the signature over the body as it came, and remembers the ids that it has seen.
func Example_receiving() {
	verifier, err := standardwebhooks.NewWebhookRaw([]byte("the secret that JIG_SECRET_WEBHOOK holds"))
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := map[string]bool{} // of a real server: in its database
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = verifier.Verify(body, r.Header)
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
		if !seen[message.Data.ID] {
			seen[message.Data.ID] = true
			fmt.Println(message.Type, message.Data.Approval.Call, message.Data.Approval.Summary)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()

	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: http.DefaultTransport})
	notice := jig.Notice{
		ID: "ntc_5f0c", Tenant: "acme", Kind: jig.NoticeRequested, At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Approval: jig.Pending{SessionID: "ses_1", Call: "3.2", Tool: "payment.refund", Summary: "refunds 120 EUR"},
	}
	for range 2 { // what is delivered twice is acted on once
		err := sender.Send(context.Background(), notice, jig.Webhook{URL: server.URL, Secret: []byte("the secret that JIG_SECRET_WEBHOOK holds")})
		fmt.Println("delivered:", err == nil)
	}
	err = sender.Send(context.Background(), notice, jig.Webhook{URL: server.URL, Secret: []byte("the secret of somebody else entirely")})
	fmt.Println("with another secret:", err == nil)
	// Output:
	// approval.requested 3.2 refunds 120 EUR
	// delivered: true
	// delivered: true
	// with another secret: false
}
