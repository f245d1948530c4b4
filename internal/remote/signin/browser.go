package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/oauth2"

	"github.com/jig-run/jig"
)

// CanOpen reports whether a browser can probably be opened on the user's screen. env is the environment.
func CanOpen(env map[string]string) bool {
	switch {
	case env["BROWSER"] != "":
		return true
	case env["SSH_CONNECTION"] != "" || env["SSH_TTY"] != "":
		return false
	case runtime.GOOS == "darwin" || runtime.GOOS == "windows":
		return true
	}
	return env["DISPLAY"] != "" || env["WAYLAND_DISPLAY"] != ""
}

// Open opens an address in the user's browser: the program in BROWSER, or the system's own.
func Open(env map[string]string, address string) error {
	program, args := "xdg-open", []string{address}
	switch {
	case env["BROWSER"] != "":
		program = env["BROWSER"]
	case runtime.GOOS == "darwin":
		program = "open"
	case runtime.GOOS == "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // the browser outlives the command
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() //nolint:errcheck // its exit code does not matter
	return nil
}

// patience is how long a person may take to log in at the identity provider.
const patience = 10 * time.Minute

// Browser logs in with a browser on this machine, by an authorization code with PKCE that the provider sends to a local port (RFC 8252). show gets
// the address to open.
func (p *Provider) Browser(ctx context.Context, show func(address string)) (Login, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Login{}, jig.Errorf(jig.CodeUnavailable, "cannot listen on a local port for the browser: %w", err).WithHint("use --device")
	}
	config, state, verifier := p.config, rand.Text(), oauth2.GenerateVerifier()
	config.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	answers := make(chan url.Values, 1)
	server := &http.Server{Handler: callback(state, answers), ReadHeaderTimeout: fetchTimeout, ReadTimeout: fetchTimeout}
	go func() { _ = server.Serve(listener) }() //nolint:errcheck // it ends when it is shut down
	defer func() {                             // the browser still gets its page
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(closing) //nolint:errcheck // the process ends anyway
	}()
	show(config.AuthCodeURL(state, append(p.options, oauth2.S256ChallengeOption(verifier))...))
	var answer url.Values
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return Login{}, fmt.Errorf("wait for the browser: %w", ctx.Err())
	}
	switch {
	case answer.Has("iss") && answer.Get("iss") != p.issuer, p.NamesIssuer && !answer.Has("iss"):
		return Login{}, jig.Errorf(jig.CodeNotPermitted, "the response does not come from the identity provider %s", p.issuer).WithReason("login")
	case answer.Has("error"):
		return Login{}, jig.Errorf(jig.CodeNotPermitted, "the identity provider %s did not log you in: %q", p.issuer, jig.Cut(answer.Get("error"), maxCode)).WithReason("login")
	}
	token, err := config.Exchange(p.context(ctx), answer.Get("code"), append(p.options, oauth2.VerifierOption(verifier))...)
	if err != nil {
		return Login{}, refusal(ctx, p.issuer, err)
	}
	return p.login(token)
}

// maxCode is the maximum length, in bytes, of the provider's error code that is shown.
const maxCode = 100

// context returns a context with the client for requests to the provider.
func (p *Provider) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.http)
}

// callback returns the handler that the provider redirects the browser to. It accepts the first response with the right state and refuses all
// others, because any page or program on the machine can send one.
func callback(state string, answers chan<- url.Values) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		query := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintln(w, "This does not belong to the login that was started on the command line.")
			return
		}
		select {
		case answers <- query:
		default:
		}
		_, _ = fmt.Fprintln(w, "Go back to the command line. You can close this page.")
	})
	return mux
}

// Code is a code for logging in on any device: the person opens the address and enters the code there.
type Code struct {
	Address, Code string
	// Complete is the address with the code in it; empty if the provider does not send one.
	Complete string
}

// TakesDevices reports whether the provider supports the device flow.
func (p *Provider) TakesDevices() bool { return p.config.Endpoint.DeviceAuthURL != "" }

// Device logs in with a browser on any device (RFC 8628). show tells the person what to open and enter there.
func (p *Provider) Device(ctx context.Context, show func(Code)) (Login, error) {
	if !p.TakesDevices() {
		return Login{}, jig.Errorf(jig.CodeInvalidInput, "the identity provider %s does not support logging in on another device", p.issuer).WithField("device").WithHint("leave out --device")
	}
	asked, err := p.config.DeviceAuth(p.context(ctx), p.options...)
	if err != nil {
		return Login{}, refusal(ctx, p.issuer, err)
	}
	show(Code{Address: asked.VerificationURI, Code: asked.UserCode, Complete: asked.VerificationURIComplete})
	token, err := p.config.DeviceAccessToken(p.context(ctx), asked, p.options...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return Login{}, jig.Errorf(jig.CodeNotPermitted, "nobody entered the code in time").WithReason("login").WithHint("run `jig login` again")
	}
	if err != nil {
		return Login{}, refusal(ctx, p.issuer, err)
	}
	return p.login(token)
}
