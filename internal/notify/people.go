package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/tenancy"
)

const (
	// maxSummary and maxShown bound, in characters, the summary of a call and the other values in a message to people.
	maxSummary = 600
	maxShown   = 120
)

// Words are a notice in words, for mail and chats. They say what happened and where to decide; nobody can decide by replying to them.
type Words struct {
	Subject string
	// Lines are the facts, without the link.
	Lines []string
	// Link is the address of the approval; empty if the server's address is not known.
	Link string
}

// WordsOf returns the words of a notice. publicURL is the address of the server; it may be empty. The call's input is not part of them,
// because mail and chats are read in more places than approvals.
func WordsOf(n jig.Notice, publicURL string) Words {
	a := n.Approval
	w := Words{Subject: subject(n)}
	if s := shown(a.Summary, maxSummary); s != "" {
		w.Lines = append(w.Lines, s, "")
	}
	add := func(label, value string) {
		if value = shown(value, maxShown); value != "" {
			w.Lines = append(w.Lines, label+": "+value)
		}
	}
	add("Tool", a.Tool)
	add("Requested by", strings.TrimPrefix(approval.Requesters(a), "requested by "))
	add("Tenant", n.Tenant)
	add("Session", a.SessionID+", call "+a.Call)
	switch n.Kind {
	case jig.NoticeDecided, jig.NoticeExpired:
		add("Status", string(n.Status))
		add("Decided by", n.By+n.Proof.Text(false, n.Key))
		add("Reason", n.Reason)
	case jig.NoticeWithdrawn:
		add("Approved before by", approvers(n))
		add("Reason", n.Reason)
	case jig.NoticeRequested, jig.NoticeReminder, jig.NoticeEscalated, jig.NoticeDelegated:
		add("Who may decide", approvers(n))
		if a.Kind == jig.PendingApproval {
			w.Lines = append(w.Lines, "Terms: "+shown(strings.Join(approval.Conditions(a), "; "), maxSummary))
		}
		if a.ExpiresAt.Year() > 1 {
			add("Until", a.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"))
		}
		w.Lines = append(w.Lines, "How to decide: jig approvals show "+shown(a.SessionID+" "+a.Call, maxSummary))
	}
	w.Link = linkOf(n, publicURL)
	return w
}

// linkOf returns the address of an approval; "" if that of the server is not known.
func linkOf(n jig.Notice, publicURL string) string {
	if publicURL == "" {
		return ""
	}
	return strings.TrimSuffix(publicURL, "/") + "/approvals/" + url.PathEscape(n.Approval.SessionID) + "?call=" + url.QueryEscape(n.Approval.Call)
}

// subject says in one line what a notice is about.
func subject(n jig.Notice) string {
	tool := shown(n.Approval.Tool, maxShown)
	what := tool + " needs approval"
	switch n.Approval.Kind {
	case jig.PendingQuestion:
		what = tool + " asks a question"
	case jig.PendingReconcile:
		what = "did " + tool + " take effect?"
	case jig.PendingApproval:
	}
	switch n.Kind {
	case jig.NoticeReminder:
		return "Reminder: " + what
	case jig.NoticeEscalated:
		return "Escalated: " + what
	case jig.NoticeDelegated:
		return "Handed on: " + what
	case jig.NoticeDecided:
		return "Decided: " + tool
	case jig.NoticeExpired:
		return "Expired: nobody decided about " + tool + " in time"
	case jig.NoticeWithdrawn:
		return "Withdrawn: the approval of " + tool + " does not count any more"
	case jig.NoticeRequested:
	}
	return what
}

// Text returns the words as plain text.
func (w Words) Text() string {
	text := strings.Join(w.Lines, "\n")
	if w.Link != "" {
		text += "\n\nLook at it and decide:\n" + w.Link
	}
	return text + "\n\nThis message is for information only. Replying to it decides nothing.\n"
}

// shown returns a text on one line, cut, without characters that could make it look like something else.
func shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// tellTimeout is how long telling people may take, like [SendTimeout] for webhooks.
const tellTimeout = SendTimeout + 5*time.Second

// MailOptions say how mail is sent.
type MailOptions struct {
	// Server is smtp://user:password@host:port, which must offer STARTTLS unless it is on this machine, or smtps:// with TLS from the start.
	// The user is optional, and so is the port: 587 and 465.
	Server string
	// From is the address of the sender.
	From string
	// TLS verifies the server; default: the system's certificates.
	TLS *tls.Config
	// Timeout limits one mail. Default: tellTimeout.
	Timeout time.Duration
}

// Mailer sends mail. It is safe for concurrent use.
type Mailer struct {
	host    string
	from    string
	options []gomail.Option
}

// NewMailer returns a mailer. Its errors name the field server or from, and never contain the password.
func NewMailer(o MailOptions) (*Mailer, error) {
	refused := func(message string) error {
		return jig.Errorf(jig.CodeInvalidInput, "%s", message).WithField("server").WithHint("write it as smtp://user:password@mail.example.com:587, or smtps:// for TLS from the start")
	}
	u, err := url.Parse(o.Server)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, refused("this is not the address of a mail server")
	}
	from, err := mail.ParseAddress(o.From)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the sender is not a mail address").WithField("from").WithHint("write it as jig@example.com")
	}
	if o.TLS == nil {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config := o.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	if o.Timeout <= 0 {
		o.Timeout = tellTimeout
	}
	port := map[string]string{"smtp": "587", "smtps": "465"}[u.Scheme]
	if u.Port() != "" {
		port = u.Port()
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, refused("the port of the mail server is not a number")
	}
	m := &Mailer{host: u.Hostname(), from: from.String(), options: []gomail.Option{
		gomail.WithPort(number), gomail.WithTimeout(o.Timeout), gomail.WithTLSConfig(config), gomail.WithHELO(domainOf(from.Address)),
	}}
	switch {
	case u.Scheme == "smtps":
		m.options = append(m.options, gomail.WithSSL())
	case thisMachine(u.Hostname()):
		m.options = append(m.options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	default:
		m.options = append(m.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if password, ok := u.User.Password(); ok {
		m.options = append(m.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	return m, nil
}

// Mail sends words to mailboxes, as one mail. Its id is that of the notice, so that mailboxes recognize a mail that was sent twice.
func (m *Mailer) Mail(ctx context.Context, notice string, words Words, to []string) error {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.From(m.from); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the sender of mail cannot be used: %w", err)
	}
	if err := message.To(to...); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "a mail address cannot be used: %w", err).WithField("messages.mail")
	}
	message.Subject("[jig] " + words.Subject)
	message.SetMessageIDWithValue(notice + "@" + domainOf(m.from))
	message.SetDate()
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, words.Text())
	client, err := gomail.NewClient(m.host, m.options...)
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "the mail server cannot be used: %w", err)
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		return jig.Errorf(jig.CodeUnavailable, "the mail was not accepted: %w", err)
	}
	return nil
}

// domainOf returns the domain of a mail address.
func domainOf(address string) string {
	at := strings.LastIndex(address, "@")
	return strings.TrimSuffix(address[at+1:], ">")
}

// thisMachine reports whether a host is this machine.
func thisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

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
