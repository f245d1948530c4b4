package server

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/setting"
	"github.com/jig-run/jig/internal/startup"
	"github.com/jig-run/jig/internal/telemetry"
)

// Environment variables of the settings. Those for Temporal are in package client.
const (
	EnvAddress       = "JIG_HTTP_ADDR"
	EnvPublicURL     = "JIG_PUBLIC_URL"
	EnvTLSCert       = "JIG_TLS_CERT"
	EnvTLSKey        = "JIG_TLS_KEY"
	EnvProxies       = "JIG_PROXIES"
	EnvRateKey       = "JIG_HTTP_RATE_KEY"
	EnvRateAddress   = "JIG_HTTP_RATE_ADDRESS"
	EnvRateStarts    = "JIG_HTTP_RATE_STARTS"
	EnvStreams       = "JIG_HTTP_STREAMS"
	EnvRequests      = "JIG_HTTP_REQUESTS"
	EnvMetrics       = "JIG_SERVER_METRICS_ADDRESS"
	EnvDatabaseURL   = "JIG_SERVER_DATABASE_URL"
	EnvDatabaseConns = "JIG_DATABASE_MAX_CONNS"
	EnvInstallation  = "JIG_INSTALLATION"
	EnvLogLevel      = "JIG_LOG_LEVEL"
	EnvLogFormat     = "JIG_LOG_FORMAT"
	EnvStartTimeout  = startup.EnvTimeout
	EnvStopTimeout   = "JIG_STOP_TIMEOUT"
	EnvServerKey     = "JIG_SERVER_KEY"
	EnvProviders     = "JIG_OIDC_FILE"
	EnvPermissions   = "JIG_PERMISSIONS"
)

// Settings configure a server.
type Settings struct {
	// Temporal says how to reach Temporal and which task queue the workers poll.
	Temporal client.Settings
	// DatabaseURL connects as the server's role, which reads what tenants have and writes only the server's own tables. Required.
	DatabaseURL string
	// DatabaseMaxConns bounds the number of database connections; 0 means the store's default (4 per CPU, at least 8).
	DatabaseMaxConns int
	// Installation replaces the installation id in the database, as for workers.
	Installation string
	// Address is the host:port to listen on; default 127.0.0.1:8480. Port 0 picks a free one.
	Address string
	// PublicURL is the address under which clients reach the server; requests for other hosts are refused. It may be empty if only this
	// machine can reach Address.
	PublicURL string
	// TLSCert and TLSKey are the files of a certificate and its key. Both or neither.
	TLSCert, TLSKey string
	// Proxies are the networks of the proxies in front of the server, which take care of TLS and add the addresses of clients to X-Forwarded-For.
	// From anybody else, that header does not count.
	Proxies []netip.Prefix
	// KeyFile is the file of the key with which the server vouches for the principals of requests; empty means that it does not.
	KeyFile string
	// RatePerKey and RatePerAddress are how many requests a second each API key and each client's address may make, twice as many at once;
	// 0 means no limit.
	RatePerKey, RatePerAddress int
	// StartsPerTenant is how many sessions and calls a second each tenant may start, twice as many at once; 0 for no limit, the default.
	StartsPerTenant int
	// MaxStreams is how many streams the server serves at a time, and MaxRequests how many other requests; tenants share them. 0 means 5,000 and 500.
	MaxStreams, MaxRequests int
	// MetricsAddress is the host:port that serves metrics; empty serves none.
	MetricsAddress string
	// DevLogin lets people log in with a browser as anybody, without proof. It is for jig-dev only, so no variable sets it.
	DevLogin bool
	// Tracing says whether to write OpenTelemetry traces, and what they contain; default none.
	Tracing telemetry.Settings
	// Providers are the identity providers whose tokens count; none by default.
	Providers []openid.Binding
	// Permissions are those of everybody in tenants without a document.
	Permissions []string
	// LogLevel is debug, info, warn or error; default info.
	LogLevel slog.Level
	// LogJSON writes the log as JSON lines; default text.
	LogJSON bool
	// StartTimeout is how long [Run] waits for PostgreSQL and Temporal if they do not answer; 0, the default, means without limit.
	StartTimeout time.Duration
	// StopTimeout is how long requests get to finish when the server stops; default 20 s.
	StopTimeout time.Duration
}

// Defaults of the settings.
const (
	defaultAddress     = "127.0.0.1:8480"
	defaultStopTimeout = 20 * time.Second
	defaultRateKey     = 100
	defaultRateAddress = 200
)

// ReadSettings reads the settings. A setting comes from the first source in r that has it.
func ReadSettings(r client.SettingsRequest) (Settings, error) {
	temporal, wrongTemporal := client.LoadSettings(r)
	env := setting.Reader{Env: client.ParseEnviron(r.Environ), Dev: r.DevEnv}
	s := Settings{
		Temporal:         temporal,
		DatabaseURL:      env.Text(EnvDatabaseURL, ""),
		DatabaseMaxConns: env.Number(EnvDatabaseConns, 0),
		Installation:     env.Text(EnvInstallation, ""),
		Address:          env.Text(EnvAddress, defaultAddress),
		PublicURL:        env.Text(EnvPublicURL, ""),
		TLSCert:          env.Text(EnvTLSCert, ""),
		TLSKey:           env.Text(EnvTLSKey, ""),
		Proxies:          readProxies(&env),
		KeyFile:          env.Text(EnvServerKey, ""),
		RatePerKey:       env.Count(EnvRateKey, defaultRateKey),
		RatePerAddress:   env.Count(EnvRateAddress, defaultRateAddress),
		StartsPerTenant:  env.Count(EnvRateStarts, 0),
		MaxStreams:       env.Number(EnvStreams, 0),
		MaxRequests:      env.Number(EnvRequests, 0),
		MetricsAddress:   env.Text(EnvMetrics, ""),
		LogLevel:         env.Level(EnvLogLevel),
		LogJSON:          env.Choice(EnvLogFormat, "text", "json") == "json",
		StartTimeout:     env.Duration(EnvStartTimeout, 0),
		StopTimeout:      env.Duration(EnvStopTimeout, defaultStopTimeout),
	}
	s.Tracing = telemetry.ReadSettings(&env)
	s.Permissions = env.List(EnvPermissions)
	var wrongProviders error
	s.Providers, wrongProviders = readProviders(env.Text(EnvProviders, ""), func(name string) string { return env.Text(name, "") })
	err := setting.Together(wrongTemporal, env.Err(), wrongProviders)
	if err != nil { // those that a start would report, too
		err = setting.Together(err, s.check())
	}
	return s, err
}

// readProxies reads the addresses and networks of proxies.
func readProxies(env *setting.Reader) []netip.Prefix {
	var proxies []netip.Prefix
	for _, text := range env.List(EnvProxies) {
		network, err := netip.ParsePrefix(text)
		if ip, single := netip.ParseAddr(text); single == nil {
			ip = ip.Unmap()
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil || network.Bits() == 0 {
			env.Refuse(EnvProxies, "a list of the addresses or networks of proxies, such as 10.0.0.5 or 10.0.0.0/24")
			return nil
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies
}

// readProviders reads the file with the identity providers; environ returns the variables that it names.
func readProviders(file string, environ func(name string) string) ([]openid.Binding, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file) //nolint:gosec // it is the operator's own file
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the file of identity providers cannot be read: %w", err).WithField(EnvProviders)
	}
	return openid.ReadBindings(content, environ)
}

// Describe lists the settings for the help text.
func Describe() string {
	rows := [][2]string{
		{client.EnvAddress, "host:port of Temporal; default: Temporal's own environment and profile, then " + client.DefaultAddress},
		{client.EnvNamespace, "Temporal namespace; default: the same sources, then " + client.DefaultNamespace},
		{client.EnvTaskQueue, "task queue of the workers; default jig"},
		{EnvDatabaseURL, "PostgreSQL, as the server's role; required"},
		{EnvDatabaseConns, "maximum number of database connections; default 4 per CPU, at least 8"},
		{EnvInstallation, "id of this installation, the same as for workers; default: the id in the database"},
		{EnvAddress, "host:port to listen on; default " + defaultAddress},
		{EnvPublicURL, "address under which clients reach the server, e.g. https://jig.example.com; required unless only this machine can reach it"},
		{EnvTLSCert, "file of the certificate; default none"},
		{EnvTLSKey, "file of the certificate's key; default none"},
		{EnvServerKey, "file of the key with which the server vouches for principals (`jig server-key new` makes one); default none"},
		{EnvProxies, "addresses or networks of the proxies in front, which take care of TLS; only their X-Forwarded-For counts; default none"},
		{EnvProviders, "file that lists the identity providers whose access tokens are accepted (docs/identity.md); default none"},
		{EnvPermissions, "permissions of everybody in tenants without a document, separated by commas, as for workers; default none"},
		{EnvRateKey, "requests per second that each credential may make, with bursts of twice as many; 0 for no limit; default 100"},
		{EnvRateAddress, "requests per second from each client's address, with bursts of twice as many; 0 for no limit; default 200"},
		{EnvRateStarts, "sessions and calls per second that each tenant may start, with bursts of twice as many; 0 for no limit; default 0"},
		{EnvStreams, "event streams at a time, which tenants share; default 5000"},
		{EnvRequests, "other requests at a time, which tenants share; with all servers fewer than Temporal's frontends take; default 500"},
		{EnvMetrics, "host:port for Prometheus metrics; without it metrics are not served"},
		telemetry.Describe(),
		{EnvLogLevel, "debug, info, warn or error; default info"},
		{EnvLogFormat, "text or json; default text"},
		{EnvStartTimeout, "how long to wait for PostgreSQL and Temporal at the start, e.g. 5m; 0 for no limit; default 0"},
		{EnvStopTimeout, "how long requests may take to finish when the server stops; default 20s"},
	}
	return setting.Table(rows)
}

// Logger returns a logger that writes to w with the configured level and format.
func (s Settings) Logger(w io.Writer) *slog.Logger {
	return setting.Logger(w, s.LogLevel, s.LogJSON)
}

// check returns an error that names all reasons why the settings do not allow a safe start.
func (s Settings) check() error {
	return setting.Together(s.needsDatabase(), s.checkAddress(), s.checkPublicURL())
}

func (s Settings) checkAddress() error {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s is not host:port", EnvAddress).WithField(EnvAddress)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return jig.Errorf(jig.CodeInvalidInput, "a certificate and its key belong together").WithField(EnvTLSCert).
			WithHint("set both " + EnvTLSCert + " and " + EnvTLSKey)
	}
	if s.DevLogin && (!loopback(host) || s.PublicURL != "" || len(s.Proxies) > 0) {
		return jig.Errorf(jig.CodeInvalidInput, "a server with development logins must not be reachable by others").WithField(EnvAddress).
			WithHint("use an address like " + defaultAddress + ", without " + EnvPublicURL + " and " + EnvProxies)
	}
	if loopback(host) {
		return nil
	}
	var unsafe, unnamed error
	if len(s.Proxies) == 0 && s.TLSCert == "" {
		unsafe = jig.Errorf(jig.CodeInvalidInput, "others can reach %s, and the server has no TLS: API keys would travel in clear text", s.Address).
			WithField(EnvAddress).WithHint("set " + EnvTLSCert + " and " + EnvTLSKey + ", or " + EnvProxies + " to the addresses of the proxies that take care of TLS")
	}
	if s.PublicURL == "" {
		unnamed = jig.Errorf(jig.CodeInvalidInput, "%s is not set, and others can reach the server", EnvPublicURL).WithField(EnvPublicURL).
			WithHint("set it to the address that clients use, e.g. https://jig.example.com")
	}
	return setting.Together(unsafe, unnamed)
}

func (s Settings) needsDatabase() error {
	if s.DatabaseURL == "" {
		return jig.Errorf(jig.CodeInvalidInput, "%s is not set: it is the URL of the database, with the server's role", EnvDatabaseURL).WithField(EnvDatabaseURL).
			WithHint("jig-dev starts a database and writes its URL to " + client.DevEnvFile)
	}
	return nil
}

func (s Settings) checkPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s is not an address like https://jig.example.com, without a path", EnvPublicURL).WithField(EnvPublicURL)
	}
	return nil
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hosts returns the values of the Host header that requests may have, given the port on which the server listens.
func (s Settings) hosts(port string) []string {
	if s.PublicURL == "" {
		return []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil { // check refuses it
		return nil
	}
	host := strings.ToLower(u.Host)
	if u.Port() != "" {
		return []string{host}
	}
	return []string{host, host + ":" + map[string]string{"http": "80", "https": "443"}[u.Scheme]}
}

// probeTimeout is how long a server may take to answer whether it is ready. It is longer than the server waits for the database and Temporal.
const probeTimeout = 2 * readyTimeout

// Probe asks the server with these settings, on this machine, whether it is ready.
func (s Settings) Probe(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s is not host:port", EnvAddress).WithField(EnvAddress)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s cannot be asked: %w", EnvAddress, err).WithField(EnvAddress)
	}
	// The certificate has the public name, and nothing secret is sent.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: probeTimeout + time.Second}).Do(request)
	if err != nil {
		return jig.Errorf(jig.CodeUnavailable, "no server answers on %s: %w", s.Address, err).WithField(EnvAddress)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return jig.Errorf(jig.CodeUnavailable, "the server on %s is not ready; its log says why", s.Address)
	}
	return nil
}
