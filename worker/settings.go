package worker

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	sdkworker "go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/model"
)

// Environment variables of the settings. Those for Temporal are in package client.
const (
	EnvDatabaseURL      = "JIG_DATABASE_URL"
	EnvDatabaseOwnerURL = "JIG_DATABASE_OWNER_URL"
	EnvServerURL        = "JIG_SERVER_DATABASE_URL"
	EnvInstallation     = "JIG_INSTALLATION"
	EnvWorkdir          = "JIG_WORKDIR"
	EnvDefaultWorkdir   = "JIG_WORKDIR_DEFAULT"
	EnvAllowLoopback    = "JIG_HTTP_ALLOW_LOOPBACK"
	EnvAllowHosts       = "JIG_HTTP_ALLOW_HOSTS"
	EnvLogLevel         = "JIG_LOG_LEVEL"
	EnvLogFormat        = "JIG_LOG_FORMAT"
	EnvStopTimeout      = "JIG_STOP_TIMEOUT"
	EnvWorkflowCache    = "JIG_WORKFLOW_CACHE"
	EnvDatabaseConns    = "JIG_DATABASE_MAX_CONNS"
	EnvWorkflowTasks    = "JIG_WORKFLOW_TASKS"
	EnvSignals          = "JIG_APPROVALS_SIGNALS"
	EnvOperatorKey      = "JIG_OPERATOR_KEY"
	EnvPermissions      = "JIG_PERMISSIONS"
	EnvMetrics          = "JIG_METRICS_ADDRESS"
	EnvEntityURL        = "JIG_ENTITY_URL"
	EnvModel            = "JIG_MODEL"
	EnvDeployment       = "JIG_DEPLOYMENT"
	EnvUnstreamed       = model.EnvUnstreamed
	EnvAnthropicKey     = model.EnvAnthropicKey
	EnvAnthropicURL     = "ANTHROPIC_BASE_URL"
	EnvOpenAIKey        = model.EnvOpenAIKey
	EnvOpenAIURL        = "OPENAI_BASE_URL"
)

// Settings configure a worker.
type Settings struct {
	// Temporal says how to reach Temporal and which task queue to poll.
	Temporal client.Settings
	// DatabaseURL connects as the application's role. Required to run a worker.
	DatabaseURL string
	// DatabaseOwnerURL connects as the schema's owner. Required to migrate.
	DatabaseOwnerURL string
	// ServerDatabaseURL connects as the server's role. Migrating gives that role its rights; empty means that there is no server.
	ServerDatabaseURL string
	// DatabaseMaxConns bounds the number of database connections; 0 means the store's default (4 per CPU, at least 8).
	DatabaseMaxConns int
	// Installation replaces the installation id that the first migration stored in the database. A copy of a database that runs beside the
	// original, such as a staging system, needs an id of its own.
	Installation string
	// Deployment is the version of the worker in Temporal's worker versioning. A worker with a version gets no work until its version is made
	// current; see [Worker.MakeCurrent]. Empty means that the worker has no version.
	Deployment sdkworker.WorkerDeploymentVersion
	// Workdir holds one folder per tenant, in which the tenant's file tools work. Required, and not "/".
	Workdir string
	// DefaultWorkdir is the folder of the tenant "default", instead of the one in Workdir; default none. jig-dev sets it.
	DefaultWorkdir string
	// AllowLoopback lets the http tools connect to this machine; default false.
	AllowLoopback bool
	// AllowHosts lists internal hosts that the http tools may connect to, as host or host:port; default none.
	AllowHosts []string
	// LogLevel is debug, info, warn or error; default info.
	LogLevel slog.Level
	// LogJSON writes the log as JSON lines; default text.
	LogJSON bool
	// StopTimeout is how long running tools get to finish when the worker stops; default 20 s.
	StopTimeout time.Duration
	// WorkflowCache is how many sessions stay in memory between their workflow tasks; default 1,500.
	WorkflowCache int
	// WorkflowTasks bounds how many sessions a worker advances at the same time; 0 means the default (16 per CPU, at least 32).
	WorkflowTasks int
	// Signals says what proof decisions must carry in tenants whose document does not say: trusted, signed or off; default signed.
	Signals tenancy.SignalMode
	// OperatorKey is a key that every tenant accepts, so that a tenant's first document can be approved; nil means no such key.
	OperatorKey *identity.Key
	// Permissions are the permissions of every principal in tenants without a document; default none.
	Permissions []string
	// MetricsAddress is the host:port that serves metrics; empty serves none.
	MetricsAddress string
	// EntityURL is the link that a thin tool returns if its document names no link. It may contain {tenant}, {entity_id} and {session_id}; default
	// /entities/{entity_id}.
	EntityURL string
	// Model answers prompts that name no model, e.g. anthropic/claude-sonnet-4-5; empty means that prompts must name one.
	Model string
	// Anthropic and OpenAI configure the model providers. A provider without a key (for OpenAI: without a key or a base URL) is not available.
	Anthropic, OpenAI model.Provider
	// Unstreamed lists the models that cannot stream their answers, as provider/name or with a * at the end; default none.
	Unstreamed []string
}

// Defaults of the settings.
const (
	defaultStopTimeout   = 20 * time.Second
	defaultWorkflowCache = 1500
)

// LoadSettings reads the settings from environ, which has the form of [os.Environ]. What is not set there comes from the file in which
// `make dev` and jig-dev write the addresses of their servers, if there is one: see [client.FindDevEnv]. The error names every setting that
// is wrong.
func LoadSettings(environ []string) (Settings, error) {
	dev, path, err := client.FindDevEnv(environ)
	if err != nil {
		return Settings{}, err
	}
	return ReadSettings(client.SettingsRequest{Environ: environ, DevEnv: dev, DevEnvPath: path})
}

// ReadSettings is like [LoadSettings], for programs that have flags or that read the file of `make dev` themselves. A setting comes from the
// first source in r that has it.
func ReadSettings(r client.SettingsRequest) (Settings, error) {
	temporal, err := client.LoadSettings(r)
	if err != nil {
		return Settings{}, err
	}
	env := reader{env: client.ParseEnviron(r.Environ), dev: r.DevEnv}
	return env.settings(temporal)
}

// settings reads everything but the settings of Temporal.
func (r *reader) settings(temporal client.Settings) (Settings, error) {
	s := Settings{
		Temporal:          temporal,
		DatabaseURL:       r.text(EnvDatabaseURL, ""),
		DatabaseOwnerURL:  r.text(EnvDatabaseOwnerURL, ""),
		ServerDatabaseURL: r.text(EnvServerURL, ""),
		DatabaseMaxConns:  r.number(EnvDatabaseConns, 0),
		Installation:      r.text(EnvInstallation, ""),
		Deployment:        r.deployment(EnvDeployment),
		Workdir:           r.text(EnvWorkdir, ""),
		AllowLoopback:     r.flag(EnvAllowLoopback),
		AllowHosts:        r.list(EnvAllowHosts),
		LogLevel:          r.level(EnvLogLevel),
		LogJSON:           r.choice(EnvLogFormat, "text", "json") == "json",
		StopTimeout:       r.duration(EnvStopTimeout, defaultStopTimeout),
		WorkflowCache:     r.number(EnvWorkflowCache, defaultWorkflowCache),
		WorkflowTasks:     r.number(EnvWorkflowTasks, 0),
		Signals:           tenancy.SignalMode(r.choice(EnvSignals, string(tenancy.SignalsSigned), string(tenancy.SignalsTrusted), string(tenancy.SignalsOff))),
		OperatorKey:       r.key(EnvOperatorKey),
		Permissions:       r.list(EnvPermissions),
		MetricsAddress:    r.text(EnvMetrics, ""),
		EntityURL:         r.text(EnvEntityURL, ""),
		Model:             r.text(EnvModel, ""),
		Anthropic:         model.Provider{APIKey: r.text(EnvAnthropicKey, ""), BaseURL: r.text(EnvAnthropicURL, "")},
		OpenAI:            model.Provider{APIKey: r.text(EnvOpenAIKey, ""), BaseURL: r.text(EnvOpenAIURL, "")},
		Unstreamed:        r.patterns(EnvUnstreamed),
	}
	if s.DefaultWorkdir = r.text(EnvDefaultWorkdir, ""); r.env[EnvWorkdir] != "" { // JIG_WORKDIR_DEFAULT from the dev file counts only together with the dev file's JIG_WORKDIR
		s.DefaultWorkdir = r.env[EnvDefaultWorkdir]
	}
	return s, r.err()
}

// check returns an error if a setting is missing that every worker needs.
func (s Settings) check() error {
	if err := s.needsDatabase(); err != nil {
		return err
	}
	return s.dirs().Check()
}

func (s Settings) needsDatabase() error {
	if s.DatabaseURL == "" {
		return missing(EnvDatabaseURL, "the database as the application's role")
	}
	return nil
}

// dirs returns the tenants' working directories.
func (s Settings) dirs() workdir.Dirs {
	return workdir.Dirs{Base: s.Workdir, Default: s.DefaultWorkdir}
}

// Describe lists the settings for the help text.
func Describe() string {
	rows := [][2]string{
		{client.EnvAddress, "host:port of Temporal; default: Temporal's own environment and profile, then " + client.DefaultAddress},
		{client.EnvNamespace, "Temporal namespace; default: the same sources, then " + client.DefaultNamespace},
		{client.EnvCompression, "auto, on or off: gzip for requests to Temporal; default auto, which is off for addresses of this machine"},
		{client.EnvTaskQueue, "task queue to poll; default jig"},
		{client.EnvDevEnv, "file with settings that make dev wrote; default .jig/dev.env in this folder or above it, empty means none"},
		{EnvDatabaseURL, "PostgreSQL, as the application's role; required"},
		{EnvDatabaseOwnerURL, "PostgreSQL, as the owner of the schema; required by migrate"},
		{EnvServerURL, "PostgreSQL, as the server's role, to which migrate gives its rights; default none"},
		{EnvDatabaseConns, "most database connections at once; default 4 per CPU, at least 8"},
		{EnvInstallation, "id of this installation, part of every idempotency key; default: the id in the database"},
		{EnvDeployment, "NAME:BUILD, the worker's version, which gets no work until it is made current; default none"},
		{EnvWorkdir, "folder that holds one folder for each tenant's file tools; required"},
		{EnvAllowLoopback, "true lets the http tools connect to this machine; default false"},
		{EnvAllowHosts, "internal hosts that the http tools may reach, as host or host:port, separated by commas; default none"},
		{EnvLogLevel, "debug, info, warn or error; default info"},
		{EnvLogFormat, "text or json; default text"},
		{EnvStopTimeout, "how long running tools may take to finish when the worker stops; default 20s"},
		{EnvWorkflowCache, "sessions kept in memory between their tasks; default 1500"},
		{EnvWorkflowTasks, "sessions that advance at the same time, not counting tools and models that take long; default 16 per CPU, at least 32"},
		{EnvModel, "model for prompts that name no model, e.g. anthropic/claude-sonnet-4-5"},
		{EnvSignals, "what decisions must prove: trusted (nothing), signed (a token) or off (a token, no raw signals); default signed"},
		{EnvOperatorKey, "PRINCIPAL:PUBLICKEY that every tenant accepts (`jig key new` prints both); default none"},
		{EnvPermissions, "permissions of everybody in tenants without a document, separated by commas; default none"},
		{EnvMetrics, "host:port for Prometheus metrics; without it metrics are not served"},
		{EnvEntityURL, "link that thin tools return; may contain {tenant}, {entity_id} and {session_id}; default /entities/{entity_id}"},
		{EnvAnthropicKey, "key for models anthropic/…, which need it"},
		{EnvAnthropicURL, "base URL instead of Anthropic's own"},
		{EnvOpenAIKey, "key for models openai/…; not needed by most local servers"},
		{EnvOpenAIURL, "base URL instead of OpenAI's own, e.g. of Ollama, vLLM or a gateway"},
		{EnvUnstreamed, "models that cannot stream answers, e.g. openai/o3*, separated by commas; default none"},
	}
	var b strings.Builder
	for _, row := range rows {
		_, _ = fmt.Fprintf(&b, "  %-24s %s\n", row[0], row[1])
	}
	return strings.TrimRight(b.String(), "\n")
}

// Logger returns a logger that writes to w with the configured level and format.
func (s Settings) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// reader reads settings and remembers which ones are wrong.
type reader struct {
	env, dev map[string]string
	// wrong lists the names of wrong settings, and problems says the same in words.
	wrong, problems []string
}

// err returns an error that names all settings that are wrong, or nil if none is.
func (r *reader) err() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s", strings.Join(r.problems, "; ")).WithField(r.wrong[0])
}

func (r *reader) text(name, otherwise string) string {
	for _, v := range []string{r.env[name], r.dev[name]} {
		if v != "" {
			return v
		}
	}
	return otherwise
}

func (r *reader) list(name string) []string {
	var list []string
	for _, one := range strings.Split(r.text(name, ""), ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// patterns reads a list of models, each as provider/name or with a * at the end.
func (r *reader) patterns(name string) []string {
	list := r.list(name)
	for _, one := range list {
		if provider, model, ok := strings.Cut(strings.TrimSuffix(one, "*"), "/"); !ok || provider == "" || strings.Contains(model, "*") {
			r.refuse(name, "a list of models as provider/name, or with a * at the end, e.g. openai/o3*")
		}
	}
	return list
}

func (r *reader) refuse(name, want string) {
	r.wrong = append(r.wrong, name)
	r.problems = append(r.problems, name+" is not "+want) // the value is not repeated, because it may be a secret
}

func (r *reader) number(name string, otherwise int) int {
	v := r.text(name, "")
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		r.refuse(name, "a whole number of at least 1")
	}
	return n
}

func (r *reader) duration(name string, otherwise time.Duration) time.Duration {
	v := r.text(name, "")
	if v == "" {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		r.refuse(name, "a duration such as 20s or 1m")
	}
	return d
}

func (r *reader) flag(name string) bool {
	v := r.text(name, "")
	if v == "" {
		return false
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		r.refuse(name, "true or false")
	}
	return on
}

func (r *reader) choice(name string, options ...string) string {
	v := r.text(name, options[0])
	for _, o := range options {
		if v == o {
			return v
		}
	}
	r.refuse(name, strings.Join(options, " or "))
	return options[0]
}

func (r *reader) key(name string) *identity.Key {
	v := r.text(name, "")
	if v == "" {
		return nil
	}
	principal, encoded, _ := strings.Cut(v, ":")
	public, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(public) != ed25519.PublicKeySize || principal == "" {
		r.refuse(name, "PRINCIPAL:PUBLICKEY, as `jig key new` prints them")
		return nil
	}
	return &identity.Key{ID: token.KeyID(principal, public), Algorithm: identity.AlgorithmEd25519, Principal: principal, Material: public}
}

func (r *reader) level(name string) slog.Level {
	switch r.choice(name, "info", "debug", "warn", "error") {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
