package notify

import (
	"context"
	"crypto/tls"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/jig-run/jig"
)

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
