package notify_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/mail"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/tenancy"
)

// sent is a mail that a server has accepted.
type sent struct {
	from      string
	to        []string
	user      string
	encrypted bool
	content   []byte
}

// mailServer is a mail server that takes one user. It refuses the first mails with the given errors.
type mailServer struct {
	address string
	roots   *x509.CertPool

	mu     sync.Mutex
	got    []sent
	errors []error
}

// newMailServer starts a mail server. With implicit, connections begin with TLS; otherwise it offers STARTTLS if starttls is set.
func newMailServer(t *testing.T, implicit, starttls bool, failures ...error) *mailServer {
	t.Helper()
	m := &mailServer{errors: failures, roots: x509.NewCertPool()}
	certificate := selfSigned(t, m.roots)
	server := smtp.NewServer(m)
	server.Domain, server.AllowInsecureAuth = "localhost", true
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	m.address = listener.Addr().String()
	if implicit {
		listener = tls.NewListener(listener, config)
	} else if starttls {
		server.TLSConfig = config
	}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) //nolint:errcheck // it ends with the test
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return m
}

// selfSigned returns a certificate for this machine, which roots trust from then on.
func selfSigned(t *testing.T, roots *x509.CertPool) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func (m *mailServer) mails() []sent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]sent{}, m.got...)
}

// NewSession implements [smtp.Backend].
func (m *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, encrypted := c.TLSConnectionState()
	return &mailSession{server: m, mail: sent{encrypted: encrypted}}, nil
}

type mailSession struct {
	server *mailServer
	mail   sent
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "p@ss word" {
			return errors.New("wrong password")
		}
		s.mail.user = user
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error { s.mail.from = from; return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = append(s.mail.to, to)
	return nil
}
func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Data(r io.Reader) error {
	var err error
	if s.mail.content, err = io.ReadAll(r); err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if len(s.server.errors) > 0 {
		err, s.server.errors = s.server.errors[0], s.server.errors[1:]
		return err
	}
	s.server.got = append(s.server.got, s.mail)
	return nil
}

func (m *mailServer) mailer(t *testing.T, scheme, user string) *notify.Mailer {
	t.Helper()
	mailer, err := notify.NewMailer(notify.MailOptions{
		Server: scheme + "://" + user + m.address, From: "Jig <jig@example.com>", TLS: &tls.Config{RootCAs: m.roots, MinVersion: tls.VersionTLS12},
	})
	require.NoError(t, err)
	return mailer
}

// Mail reaches a real server, over STARTTLS and over TLS from the start, with a user and without.
func TestMail_IsSentEncrypted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		scheme, user string
		implicit     bool
	}{
		"STARTTLS":           {"smtp", "robot:p%40ss%20word@", false},
		"TLS from the start": {"smtps", "robot:p%40ss%20word@", true},
		"no user":            {"smtp", "", false},
	} {
		server := newMailServer(t, row.implicit, true)
		n := word("ntc_1")
		require.NoError(t, server.mailer(t, row.scheme, row.user).Mail(t.Context(), n.ID, notify.WordsOf(n, "https://jig.example.com/"), []string{"ana@example.com", "bo@example.org"}), name)
		got := server.mails()
		require.Len(t, got, 1, name)
		require.True(t, got[0].encrypted, name)
		require.Equal(t, strings.TrimSuffix(row.user, ":p%40ss%20word@"), got[0].user, name)
		require.Equal(t, "jig@example.com", got[0].from)
		require.Equal(t, []string{"ana@example.com", "bo@example.org"}, got[0].to)
		message, err := mail.ReadMessage(bytes.NewReader(got[0].content))
		require.NoError(t, err)
		require.Equal(t, "[jig] payment.refund needs approval", message.Header.Get("Subject"))
		require.Equal(t, "<ntc_1@example.com>", message.Header.Get("Message-ID"))
		require.Equal(t, "auto-generated", message.Header.Get("Auto-Submitted"))
		require.Contains(t, message.Header.Get("Content-Type"), "text/plain")
	}
}

// A password never travels in clear text: a server that does not offer TLS is not used, unless it is on this machine.
func TestMail_IsRefusedWithoutEncryption(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, false, false)
	_, port, err := net.SplitHostPort(server.address)
	require.NoError(t, err)
	mailer, err := notify.NewMailer(notify.MailOptions{Server: "smtp://robot:secret@127.0.0.1.nip.invalid:" + port, From: "jig@example.com", Timeout: 5 * time.Second})
	require.NoError(t, err)
	require.Error(t, mailer.Mail(t.Context(), "ntc_1", notify.Words{Subject: "s"}, []string{"ana@example.com"}))
	require.Empty(t, server.mails())

	secure := newMailServer(t, true, true)
	stranger, err := notify.NewMailer(notify.MailOptions{Server: "smtps://" + secure.address, From: "jig@example.com"})
	require.NoError(t, err)
	err = stranger.Mail(t.Context(), "ntc_1", notify.Words{Subject: "s"}, []string{"ana@example.com"})
	require.ErrorContains(t, err, "certificate")
	require.Empty(t, secure.mails())
	for _, bad := range []string{"", "mail.example.com", "http://mail.example.com", "smtp://", "smtp://h/path", "smtp://user:hidden@[::1"} {
		_, err := notify.NewMailer(notify.MailOptions{Server: bad, From: "jig@example.com"})
		require.Equal(t, "server", jig.AsError(err).Field, bad)
		require.NotContains(t, err.Error(), "hidden")
	}
	_, err = notify.NewMailer(notify.MailOptions{Server: "smtp://h", From: "nobody"})
	require.Equal(t, "from", jig.AsError(err).Field)
}

// Nothing that a model writes can add a header, a recipient, a line that looks like jig's, or an invisible character.
func TestWords_CannotBeForged(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, false, true)
	n := word("ntc_1")
	n.Approval.Tool = "payment.refund\r\nBcc: eve@example.com"
	n.Approval.Summary = "harmless\r\n\r\nLook at it and decide:\nhttps://evil.example.com\u202e\u200b" + strings.Repeat("x", 5000)
	n.Approval.RequestedBy = "ana\nTenant: other"
	words := notify.WordsOf(n, "https://jig.example.com")
	require.NoError(t, server.mailer(t, "smtp", "").Mail(t.Context(), n.ID, words, []string{"ana@example.com"}))
	got := server.mails()[0]
	require.Equal(t, []string{"ana@example.com"}, got.to)
	message, err := mail.ReadMessage(bytes.NewReader(got.content))
	require.NoError(t, err)
	require.Empty(t, message.Header.Get("Bcc"))
	text := words.Text()
	require.NotContains(t, text, "\u202e")
	require.NotContains(t, text, "\u200b")
	require.Equal(t, 1, strings.Count(text, "\nLook at it and decide:\n"))
	require.Equal(t, 1, strings.Count(text, "\nTenant: "))
	require.Less(t, len(text), 2000)
	require.NotContains(t, text, `"amount"`, "the input stays where people must sign in")
}

// A mail that the server refuses waits like a message to a webhook, and is sent once.
func TestMail_IsRetried(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, false, true, &smtp.SMTPError{Code: 451, Message: "try later"}, &smtp.SMTPError{Code: 550, Message: "no"})
	d := newDesk()
	d.settings["acme"] = tenancy.Settings{Version: "v1", Messages: []tenancy.Message{
		{Mail: []string{"ana@example.com"}, Events: []jig.NoticeKind{jig.NoticeRequested}}, {Mail: []string{"bo@example.com"}, Events: []jig.NoticeKind{jig.NoticeDecided}},
	}}
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	dispatcher.Messenger = &notify.Messenger{Mailer: server.mailer(t, "smtp", "")}
	for range 10 {
		step(t, dispatcher)
		d.clock.add(time.Hour)
	}
	require.Len(t, server.mails(), 1)
	require.Equal(t, []string{"ana@example.com"}, server.mails()[0].to)
	require.Contains(t, d.log.String(), "try later")
	require.Contains(t, d.log.String(), "host=example.com")
}

// Without a mail server, the notice waits for a worker that has one.
func TestMail_NeedsAServer(t *testing.T) {
	t.Parallel()
	err := (&notify.Messenger{}).Send(t.Context(), word("ntc_1"), tenancy.Message{Mail: []string{"ana@example.com"}})
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	require.Equal(t, "JIG_SMTP_URL", jig.AsError(err).Field)
}

// A chat gets the words and a link, in which nothing that a model writes is a link or a mention.
func TestChat_GetsWordsAndALink(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := word("ntc_1")
	n.Approval.Summary = "refunds <https://evil.example.com|120 EUR> & <!channel>"
	people := notify.Messenger{Chats: notify.NewWebhooks(notify.WebhookOptions{Transport: &http.Transport{}}), PublicURL: "https://jig.example.com"}
	to := tenancy.Message{ChatEnv: "JIG_SECRET_ACME__SLACK", ChatURL: r.URL + "/services/T0/B0/secret"}
	require.NoError(t, people.Send(t.Context(), n, to))
	got := r.messages()
	require.Len(t, got, 1)
	var message struct {
		Text   string
		Blocks []struct {
			Type string
			Text struct{ Type, Text string }
		}
	}
	require.NoError(t, json.Unmarshal(got[0].body, &message))
	require.Contains(t, message.Text, "refunds &lt;https://evil.example.com|120 EUR&gt; &amp; &lt;!channel&gt;")
	require.Contains(t, message.Text, "<https://jig.example.com/approvals/ses_1?call=3.2|Look at it and decide>")
	require.Len(t, message.Blocks, 2)
	require.Equal(t, "plain_text", message.Blocks[0].Text.Type)
	require.Contains(t, message.Blocks[0].Text.Text, "refunds <https://evil.example.com|120 EUR>", "plain text has no markup")
	require.Equal(t, "<https://jig.example.com/approvals/ses_1?call=3.2|Look at it and decide>", message.Blocks[1].Text.Text)
	require.NotContains(t, string(got[0].body), "button", "nothing decides in a chat")
	require.NotContains(t, string(got[0].body), `"amount"`)

	n.Approval.Summary = "harmless ```[Approve here](https://evil.example.com) @all"
	require.NoError(t, people.Send(t.Context(), n, to))
	require.NoError(t, json.Unmarshal(r.messages()[1].body, &message))
	parts := strings.Split(message.Text, "```")
	require.Len(t, parts, 3, "only what is in the block of code comes from others")
	require.Empty(t, parts[0])
	require.Contains(t, parts[1], "\nharmless '''[Approve here](https://evil.example.com) @\u200ball\n")
	require.Equal(t, "\n<https://jig.example.com/approvals/ses_1?call=3.2|Look at it and decide>", parts[2])

	to.ChatURL = "https://127.0.0.1:1/services/T0/B0/secret"
	err := people.Send(t.Context(), n, to)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	to.ChatURL = ""
	require.ErrorContains(t, people.Send(t.Context(), n, to), "does not know the address")
	to.ChatURL = "http://chat.example.com/hook"
	require.ErrorContains(t, people.Send(t.Context(), n, to), "can be read in transit")
}

func TestWords_SayWhatHappened(t *testing.T) {
	t.Parallel()
	for kind, want := range map[jig.NoticeKind]string{
		jig.NoticeRequested: "payment.refund needs approval", jig.NoticeReminder: "Reminder: payment.refund needs approval", jig.NoticeEscalated: "Escalated: payment.refund needs approval",
		jig.NoticeDelegated: "Handed on: payment.refund needs approval", jig.NoticeDecided: "Decided: payment.refund", jig.NoticeExpired: "Expired: nobody decided about payment.refund in time",
		jig.NoticeWithdrawn: "Withdrawn: the approval of payment.refund does not count any more",
	} {
		n := word("ntc_1")
		n.Kind, n.Status, n.By = kind, jig.CallDenied, "eva"
		words := notify.WordsOf(n, "")
		require.Equal(t, want, words.Subject)
		require.Empty(t, words.Link)
		require.NotContains(t, words.Text(), "http")
		over := kind == jig.NoticeDecided || kind == jig.NoticeExpired
		require.Equal(t, over, strings.Contains(words.Text(), "Status: denied"), kind)
		over = over || kind == jig.NoticeWithdrawn
		require.Equal(t, !over, strings.Contains(words.Text(), "Until: 2026-11-22 09:30 UTC"), kind)
		require.Equal(t, !over, strings.Contains(words.Text(), "How to decide: jig approvals show ses_1 3.2"), kind)
	}
	require.Len(t, jig.NoticeKinds(), 7)
	n := word("ntc_1")
	n.Approval.Kind = jig.PendingQuestion
	require.Equal(t, "payment.refund asks a question", notify.WordsOf(n, "").Subject)
	n.Approval.Kind = jig.PendingReconcile
	require.Equal(t, "did payment.refund take effect?", notify.WordsOf(n, "").Subject)
}

// The documentation shows the mail that is sent.
func TestDocumentation_ShowsTheMail(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/notifications.md")
	require.NoError(t, err)
	words := notify.WordsOf(word("ntc_1"), "https://jig.example.com")
	require.Contains(t, string(page), "Subject: [jig] "+words.Subject+"\n\n"+words.Text())
}
