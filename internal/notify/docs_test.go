package notify_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
)

// block returns the first fenced block of a language in the documentation.
func block(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/notifications.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, found, language)
	return string(found[1])
}

// The documentation shows the body that is sent, and the program from the example.
func TestPage_ShowsEveryKindOfNotice(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := word("ntc_1f6a9c0b52d84e77a3c1d2e4f5061728")
	n.Approval.Terms.Remind, n.Approval.PolicyVersion = jig.Duration(4*time.Hour), "money@"+strings.Repeat("0123456789abcdef", 4)
	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: &http.Transport{}, PublicURL: "https://jig.example.com/"})
	require.NoError(t, sender.Send(t.Context(), n, r.webhook()))
	require.JSONEq(t, block(t, "json"), string(r.messages()[0].body))

	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	require.Contains(t, string(example), strings.TrimSpace(block(t, "go")))

	text, err := os.ReadFile("../../docs/notifications.md")
	require.NoError(t, err)
	for _, kind := range jig.NoticeKinds() {
		require.Contains(t, string(text), "| `"+string(kind)+"` |")
	}
	require.Equal(t, 15*time.Second, notify.SendTimeout)
	require.Contains(t, string(text), "within 15 s")
}
