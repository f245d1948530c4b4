package httpapi

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/openid"
)

// Names of cookies. Because of the prefix, a browser takes them only over a safe connection, and from no other host, neighbors included.
const (
	cookieLogin   = "__Host-jig_login"
	cookieAttempt = "__Host-jig_attempt"
)

const (
	// pathDevLogin is the page of development logins.
	pathDevLogin = "/v1/login/dev"
	// pathAfter is where a browser goes after a login that names no other path.
	pathAfter = "/v1/me"
)

// reasonOrigin is the reason of the problem with which requests of pages from elsewhere are refused.
const reasonOrigin = "cross_origin"

// serveLogins serves the operations with which people log in and out. They answer browsers with pages and redirects.
func (a *API) serveLogins() {
	serveWith(a, api.BeginLogin, a.beginLogin)
	serveWith(a, api.FinishLogin, a.finishLogin)
	serveWith(a, api.Logout, a.logout)
	serve(a, api.GetProtectedResource, a.getProtectedResource)
}

// serveDevLogins adds the page of development logins. It is no operation, because other servers have none.
func (a *API) serveDevLogins() {
	if a.options.DevLogin {
		a.mux.HandleFunc("GET "+pathDevLogin, a.askName)
		a.mux.HandleFunc("POST "+pathDevLogin, a.devLogin)
	}
}

// beginLogin sends a browser to the identity provider.
func (a *API) beginLogin(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	returnTo := pathAfter
	if query.Has("return_to") {
		returnTo = query.Get("return_to")
	}
	if a.options.Providers == nil && a.options.DevLogin {
		redirect(w, pathDevLogin+"?return_to="+url.QueryEscape(returnTo))
		return
	}
	if a.options.Providers == nil {
		a.showProblem(w, r, jig.Errorf(jig.CodeNotFound, "no identity provider is configured for logins").WithHint("set JIG_OIDC_FILE"))
		return
	}
	cookie, address, err := a.options.Providers.BeginLogin(r.Context(), query.Get("tenant"), a.address(r)+api.FinishLogin.Path, returnTo)
	if err != nil {
		a.showProblem(w, r, err)
		return
	}
	setCookie(w, cookieAttempt, cookie, openid.AttemptLifetime)
	redirect(w, address)
}

// finishLogin turns the answer of the identity provider into a login.
func (a *API) finishLogin(w http.ResponseWriter, r *http.Request) {
	setCookie(w, cookieAttempt, "", 0)
	cookie, _ := cookieOf(r, cookieAttempt)
	if a.options.Providers == nil {
		a.showProblem(w, r, notFound())
		return
	}
	who, err := a.options.Providers.FinishLogin(r.Context(), cookie, r.URL.Query())
	if err == nil {
		err = a.logIn(w, r, credential.Credential{
			Tenant: who.Tenant, Kind: identity.KindLogin, Issuer: who.Issuer, Subject: who.Subject, Name: who.Name, Groups: who.Groups,
		}, who.Attempt)
	}
	if err != nil {
		a.showProblem(w, r, err)
		return
	}
	redirect(w, who.ReturnTo)
}

// logIn stores a login and gives the browser its cookie. The browser's former login ends.
func (a *API) logIn(w http.ResponseWriter, r *http.Request, l credential.Credential, attempt []byte) error {
	cookie, id, hash := credential.LoginForm.New()
	l.ID, l.CreatedBy = id, a.whoLoggedIn(r.Context(), l)
	created, err := a.options.Credentials.CreateCredential(r.Context(), credential.New{Credential: l, Hash: hash, Attempt: attempt})
	if jig.CodeOf(err) == jig.CodeConflict {
		return jig.Errorf(jig.CodeNotPermitted, "the login is not valid: %w", err).WithReason("login")
	}
	if err != nil {
		return err
	}
	if err := a.endLogin(r); err != nil {
		return err
	}
	a.options.Logger.InfoContext(r.Context(), "somebody logged in", slog.String("request_id", exchangeOf(r.Context()).id),
		slog.String("tenant", created.Tenant), slog.String("login", created.ID), slog.String("issuer", created.Issuer), slog.String("subject", cmp.Or(created.Subject, created.Principal)))
	setCookie(w, cookieLogin, cookie, time.Until(*created.ExpiresAt))
	return nil
}

// logout ends the login of the browser.
func (a *API) logout(w http.ResponseWriter, r *http.Request) {
	err := a.sameOrigin(r)
	if err == nil {
		err = a.endLogin(r)
	}
	if err != nil {
		a.refuse(w, r, a.problemOf(r.Context(), err))
		return
	}
	setCookie(w, cookieLogin, "", 0)
	w.WriteHeader(http.StatusNoContent)
}

// endLogin ends the login whose cookie a request has, if there is one.
func (a *API) endLogin(r *http.Request) error {
	cookie, _ := cookieOf(r, cookieLogin)
	id, hash, ok := credential.LoginForm.Parse(cookie)
	if !ok {
		return nil
	}
	l, err := a.options.Credentials.Credential(r.Context(), id, hash)
	if err == nil {
		err = a.options.Credentials.RevokeCredential(r.Context(), l.Tenant, l.Ref(), a.whoLoggedIn(r.Context(), l))
	}
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil
	}
	return err
}

// sameOrigin refuses a request that changes something and comes from a page of another origin. Browsers send cookies along on their own.
func (a *API) sameOrigin(r *http.Request) error {
	if a.crossOrigin.Check(r) == nil {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "the request comes from a page of another origin").WithReason(reasonOrigin).
		WithHint("programs send Authorization: Bearer instead of a cookie")
}

// address returns the address of the server as the browser sees it.
func (a *API) address(r *http.Request) string {
	switch {
	case a.options.PublicURL != "":
		return strings.TrimSuffix(a.options.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// askName shows the page of development logins.
func (a *API) askName(w http.ResponseWriter, r *http.Request) {
	showPage(w, http.StatusOK, devPage, map[string]string{"ReturnTo": r.URL.Query().Get("return_to"), "Tenant": jig.DefaultTenant})
}

// devLogin logs a person in under any name, without proof.
func (a *API) devLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	name, tenant, returnTo := r.PostFormValue("name"), r.PostFormValue("tenant"), r.PostFormValue("return_to")
	if returnTo == "" {
		returnTo = pathAfter
	}
	err := a.sameOrigin(r)
	switch {
	case err != nil:
	case name == "" || len(name) > maxDevName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		err = jig.Errorf(jig.CodeInvalidInput, "a name has 1 to %d bytes and no control characters", maxDevName).WithField("name")
	case !openid.LocalPath(returnTo):
		err = jig.Errorf(jig.CodeInvalidInput, "the address to return to is not a path of this server").WithField("return_to")
	default:
		err = jig.CheckTenant(tenant)
	}
	if err == nil {
		attempt := make([]byte, 32)
		_, _ = rand.Read(attempt) // it never fails
		err = a.logIn(w, r, credential.Credential{Tenant: tenant, Kind: identity.KindDevLogin, Principal: name, Name: name}, attempt)
	}
	if err != nil {
		a.showProblem(w, r, err)
		return
	}
	redirect(w, returnTo)
}

// maxDevName bounds the name of a development login, in bytes.
const maxDevName = 200

// The pages of logins. They have neither scripts nor styles.
var (
	devPage = template.Must(template.New("dev").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>jig: development login</title>
<h1>Development login</h1><p>This is a development server: everybody on this machine may act as anybody.</p>
<form method="post" action="` + pathDevLogin + `"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<p><label>Name <input name="name" required autofocus></label></p><p><label>Tenant <input name="tenant" value="{{.Tenant}}" required></label></p><p><button>Log in</button></p></form></html>
`))
	problemPage = template.Must(template.New("problem").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>jig: {{.Title}}</title>
<h1>{{.Title}}</h1><p>{{.Detail}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}<p><a href="` + api.BeginLogin.Path + `">Log in</a></p><p>Request {{.RequestID}}</p></html>
`))
)

// showProblem writes what is wrong with a login: a page for browsers, problem details for others. Only the log says why a login does not count.
func (a *API) showProblem(w http.ResponseWriter, r *http.Request, err error) {
	if e := jig.AsError(err); e.Code == jig.CodeNotPermitted && e.Reason == "login" {
		a.options.Observer.Refused(reasonCredential)
		a.options.Logger.InfoContext(r.Context(), "a login was refused", slog.String("request_id", exchangeOf(r.Context()).id), slog.String("why", e.Message))
		err = jig.Errorf(jig.CodeNotPermitted, "the login is not valid").WithReason("login").WithHint("log in again; an address like this one works once, and only for ten minutes")
	}
	var p *problem
	if !errors.As(err, &p) {
		p = a.problemOf(r.Context(), err)
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		a.refuse(w, r, p)
		return
	}
	for name, values := range p.Headers {
		w.Header()[name] = values
	}
	showPage(w, p.Status, problemPage, within(exchangeOf(r.Context()), p))
}

func showPage(w http.ResponseWriter, status int, page *template.Template, data any) {
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) //nolint:errcheck // the client is gone
}

// redirect sends a browser to an address with a GET request.
func redirect(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// setCookie sets a cookie that no script can read; no lifetime removes it. It comes along when somebody follows a link from elsewhere, so GET
// requests must change nothing.
func setCookie(w http.ResponseWriter, name, value string, lifetime time.Duration) {
	seconds := int(lifetime / time.Second)
	if seconds <= 0 {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookieOf returns the value of a cookie. ok is false if there is none, or more than one.
func cookieOf(r *http.Request, name string) (value string, ok bool) {
	all := r.CookiesNamed(name)
	if len(all) != 1 {
		return "", false
	}
	return all[0].Value, true
}
