package notify

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/tenancy"
)

// chatMessage is a message as incoming webhooks of chats take it: Slack shows the blocks, others the text.
type chatMessage struct {
	Text   string      `json:"text"`
	Blocks []chatBlock `json:"blocks"`
	// Links in the text are neither fetched nor shown with a preview.
	UnfurlLinks bool `json:"unfurl_links"`
	UnfurlMedia bool `json:"unfurl_media"`
}

type chatBlock struct {
	Type string   `json:"type"`
	Text chatText `json:"text"`
}

// chatText is a text of a block: plain_text has no markup at all, mrkdwn has links.
type chatText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// maxBlock bounds the text of a block, as Slack demands.
const maxBlock = 2900

// Chat posts words to the incoming webhook of a chat. No error contains the address, because anybody who knows it can write to the chat.
func (w *Webhooks) Chat(ctx context.Context, words Words, to tenancy.Message) error {
	if to.ChatURL == "" {
		return jig.Errorf(jig.CodeInvalidInput, "this worker does not know the address of the chat").WithField("messages.chat_env").
			WithHint("set " + to.ChatEnv + " on every worker")
	}
	if (tenancy.Webhook{URL: to.ChatURL}).Readable() {
		return jig.Errorf(jig.CodeInvalidInput, "the chat's address is http, so messages can be read in transit").WithField("messages.chat_env").
			WithHint("use https; http is only for this machine")
	}
	body, err := jsontext.Encode(chatOf(words))
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "the message cannot be written as JSON: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.ChatURL, bytes.NewReader(body))
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the chat's address cannot be used").WithField("messages.chat_env").WithHint("write it as https://host/path")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "jig")
	answer, err := w.client.Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) //nolint:errcheck // only the status counts
	return w.judge(answer)
}

func chatOf(words Words) chatMessage {
	facts := words.Subject + "\n" + strings.Join(words.Lines, "\n")
	m := chatMessage{Text: "```\n" + verbatim(facts) + "\n```", Blocks: []chatBlock{{"section", chatText{"plain_text", jig.Cut(facts, maxBlock)}}}}
	if words.Link != "" {
		link := "<" + escaped(words.Link) + "|Look at it and decide>"
		m.Text += "\n" + link
		m.Blocks = append(m.Blocks, chatBlock{"section", chatText{"mrkdwn", link}})
	}
	return m
}

// verbatim returns a text for a block of code, in which chats show no links. Mattermost and Rocket.Chat read Markdown, and show no blocks. Some
// chats look for mentions in code, too, so an invisible space follows each @.
func verbatim(text string) string {
	return strings.NewReplacer("`", "'", "@", "@\u200b").Replace(escaped(text))
}

// escaped returns a text in which nothing is a link or a mention to Slack.
func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// hostOf names an address in the log without its path, which may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
