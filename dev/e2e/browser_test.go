package e2e_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// browser is a browser without scripts: it has cookies, follows redirects and submits forms.
type browser struct {
	t *testing.T
	// cookies are the cookies by origin and name. Browsers keep __Host- cookies of this machine without TLS, which Go's cookie jar does not.
	cookies map[string]map[string]*http.Cookie
	// visited are the addresses that it went to, the last one at the end.
	visited []*url.URL
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	return &browser{t: t, cookies: map[string]map[string]*http.Cookie{}}
}

// page is a page as a browser shows it.
type page struct {
	status int
	body   string
	at     *url.URL
}

// open goes to an address, and on to where it redirects.
func (b *browser) open(address string) page { return b.request(http.MethodGet, address, nil) }

func (b *browser) request(method, address string, form url.Values) page {
	b.t.Helper()
	for range 20 {
		u, err := url.Parse(address)
		require.NoError(b.t, err)
		b.visited = append(b.visited, u)
		request, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode()))
		require.NoError(b.t, err)
		request.Header.Set("Accept", "text/html,application/json;q=0.9,*/*;q=0.8")
		if form != nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		if cookies := b.header(address); cookies != "" {
			request.Header.Set("Cookie", cookies)
		}
		answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
		require.NoError(b.t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(b.t, err)
		require.NoError(b.t, answer.Body.Close())
		b.keep(u, answer.Cookies())
		next, err := answer.Location()
		if err != nil {
			return page{answer.StatusCode, string(text), u}
		}
		method, address, form = http.MethodGet, next.String(), nil
	}
	require.Fail(b.t, "too many redirects")
	return page{}
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (b *browser) keep(from *url.URL, cookies []*http.Cookie) {
	jar := b.cookies[origin(from)]
	if jar == nil {
		jar = map[string]*http.Cookie{}
		b.cookies[origin(from)] = jar
	}
	for _, c := range cookies {
		if jar[c.Name] = c; c.MaxAge < 0 || c.Value == "" {
			delete(jar, c.Name)
		}
	}
}

// header returns the Cookie header for an address.
func (b *browser) header(address string) string {
	u, err := url.Parse(address)
	require.NoError(b.t, err)
	var parts []string
	for _, c := range b.cookies[origin(u)] {
		if c.Path == "" || strings.HasPrefix(u.Path, c.Path) {
			parts = append(parts, c.Name+"="+c.Value)
		}
	}
	return strings.Join(parts, "; ")
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	hidden     = regexp.MustCompile(`<input[^>]* type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// submit fills in the form of a page and sends it.
func (b *browser) submit(on page, fields ...string) page {
	b.t.Helper()
	action := formAction.FindStringSubmatch(on.body)
	require.NotNil(b.t, action, "%s has no form: %s", on.at, on.body)
	to, err := on.at.Parse(action[1])
	require.NoError(b.t, err)
	form := url.Values{}
	for _, pair := range hidden.FindAllStringSubmatch(on.body, -1) {
		form.Set(pair[1], pair[2])
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.request(http.MethodPost, to.String(), form)
}

// signIn goes through the pages of the identity provider as a person, from where the provider first asks. It returns where that leads.
func (b *browser) signIn(p *identityProvider, from page, person string) page {
	b.t.Helper()
	for range 5 {
		switch {
		case origin(from.at) != p.url:
			return from
		case strings.Contains(from.body, `name="login"`):
			from = b.submit(from, "login", person, "password", "x")
		default:
			from = b.submit(from)
		}
	}
	require.Fail(b.t, "the identity provider keeps asking", from.body)
	return page{}
}

// as returns a caller with the browser's cookies.
func (b *browser) as(r *serverProcess) cookied {
	return cookied{apiClient{r, ""}, b.header(r.url + "/")}
}

// cookied makes requests with cookies.
type cookied struct {
	apiClient

	cookies string
}

func (c cookied) send(method, path string, body any, headers ...string) (response, []byte) {
	c.t.Helper()
	return c.apiClient.send(method, path, body, append([]string{"Cookie", c.cookies}, headers...)...)
}
