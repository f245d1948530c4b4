package worker

import (
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	sdkworker "go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/setting"
	"github.com/jig-run/jig/internal/startup"
	"github.com/jig-run/jig/internal/telemetry"
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
	EnvStartTimeout     = startup.EnvTimeout
	EnvStopTimeout      = "JIG_STOP_TIMEOUT"
	EnvRetryFor         = "JIG_RETRY_FOR"
	EnvWorkflowCache    = "JIG_WORKFLOW_CACHE"
	EnvDatabaseConns    = "JIG_DATABASE_MAX_CONNS"
	EnvWorkflowTasks    = "JIG_WORKFLOW_TASKS"
	EnvProof            = "JIG_APPROVALS_PROOF"
	EnvStarts           = "JIG_STARTS_PROOF"
	EnvSignals          = "JIG_APPROVALS_SIGNALS"
	EnvRootKey          = "JIG_ROOT_KEY"
	EnvRootKeyFile      = "JIG_ROOT_KEY_FILE"
	EnvOperatorKey      = "JIG_OPERATOR_KEY"
	EnvPermissions      = "JIG_PERMISSIONS"
	EnvMetrics          = "JIG_METRICS_ADDRESS"
	EnvTraceContent     = telemetry.EnvContent
	EnvPublicURL        = "JIG_PUBLIC_URL"
	EnvMailServer       = "JIG_SMTP_URL"
	EnvMailFrom         = "JIG_SMTP_FROM"
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
	// StartTimeout is how long [Run] waits for PostgreSQL and Temporal if they do not answer; 0, the default, means without limit.
	StartTimeout time.Duration
	// StopTimeout is how long running tools get to finish when the worker stops; default 20 s.
	StopTimeout time.Duration
	// RetryFor is how long after the first failure of a call another attempt may begin, if the failure may pass and the tool does not say; default 15 min.
	RetryFor time.Duration
	// WorkflowCache is how many sessions stay in memory between their workflow tasks; default 1,500.
	WorkflowCache int
	// WorkflowTasks bounds how many sessions a worker advances at the same time; 0 means the default (16 per CPU, at least 32).
	WorkflowTasks int
	// Proof says what decisions must prove in tenants whose documents do not say: claimed, vouched, key or passkey; default key.
	Proof jig.Proof
	// Starts says the same for starts, messages and reads: claimed or vouched; default claimed.
	Starts jig.Proof
	// Signals is the older way to say what decisions must prove: trusted, signed or off. Unless it is empty, it applies in place of Proof.
	Signals tenancy.SignalMode
	// RootKeys are the public root keys, which certify the keys of servers. There are several while one replaces another. Without any, no server can vouch
	// for anybody.
	RootKeys [][]byte
	// OperatorKey is a key that every tenant accepts, so that a tenant's first document can be approved; nil means no such key.
	OperatorKey *identity.Key
	// Permissions are the permissions of every principal in tenants without a document; default none.
	Permissions []string
	// MetricsAddress is the host:port that serves metrics; empty serves none.
	MetricsAddress string
	// Tracing says whether to write OpenTelemetry traces, and what they contain; default none.
	Tracing telemetry.Settings
	// PublicURL is the address of the server, for links in notices; empty means no links.
	PublicURL string
	// MailServer is the server that sends mail to people, smtp://user:password@host:port or smtps://…, and MailFrom the sender; empty means no
	// mail.
	MailServer, MailFrom string
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

// LoadSettings reads the settings from environ, which has the form of [os.Environ]. What is not set there comes from the file in which
// jig-dev writes the addresses of its servers, if there is one: see [client.FindDevEnv]. The error names every setting that
// is wrong.
func LoadSettings(environ []string) (Settings, error) {
	dev, path, err := client.FindDevEnv(environ)
	if err != nil {
		return Settings{}, err
	}
	return ReadSettings(client.SettingsRequest{Environ: environ, DevEnv: dev, DevEnvPath: path})
}

// ReadSettings is like [LoadSettings], for programs that have flags or that read the file of jig-dev themselves. A setting comes from the
// first source in r that has it.
func ReadSettings(r client.SettingsRequest) (Settings, error) {
	temporal, err := client.LoadSettings(r)
	if err != nil {
		return Settings{}, err
	}
	env := reader{setting.Reader{Env: client.ParseEnviron(r.Environ), Dev: r.DevEnv}}
	return env.settings(temporal)
}

// settings reads everything but the settings of Temporal.
func (r *reader) settings(temporal client.Settings) (Settings, error) {
	s := Settings{Temporal: temporal, Tracing: telemetry.ReadSettings(&r.Reader)}
	r.variables(&s)
	if r.Text(EnvSignals, "") != "" && r.Text(EnvProof, "") == "" {
		s.Signals = choice(r, tenancy.SignalsSigned, tenancy.SignalsTrusted, tenancy.SignalsOff)(EnvSignals)
	}
	if s.DefaultWorkdir = r.Text(EnvDefaultWorkdir, ""); r.Env[EnvWorkdir] != "" { // JIG_WORKDIR_DEFAULT from the dev file counts only together with the dev file's JIG_WORKDIR
		s.DefaultWorkdir = r.Env[EnvDefaultWorkdir]
	}
	return s, r.Err()
}

// variables reads the settings that need no others, and lists all settings for the help text: each variable with its meaning.
func (r *reader) variables(s *Settings) [][2]string {
	text := func(name string) string { return r.Text(name, "") }
	return [][2]string{
		{client.EnvAddress, "host:port of Temporal; default: Temporal's own environment and profile, then " + client.DefaultAddress},
		{client.EnvNamespace, "Temporal namespace; default: the same sources, then " + client.DefaultNamespace},
		{client.EnvCompression, "auto, on or off: gzip for requests to Temporal; default auto, which is off for addresses of this machine"},
		{client.EnvTaskQueue, "task queue to poll; default jig"},
		{client.EnvDevEnv, "file with settings that jig-dev wrote; default .jig/dev.env in this folder or above it, empty means none"},
		set(&s.DatabaseURL, text, EnvDatabaseURL, "PostgreSQL, as the application's role; required"),
		set(&s.DatabaseOwnerURL, text, EnvDatabaseOwnerURL, "PostgreSQL, as the owner of the schema; required by migrate"),
		set(&s.ServerDatabaseURL, text, EnvServerURL, "PostgreSQL, as the server's role, to which migrate gives its rights; default none"),
		set(&s.DatabaseMaxConns, r.number(0), EnvDatabaseConns, "maximum number of database connections; default 4 per CPU, at least 8"),
		set(&s.Installation, text, EnvInstallation, "id of this installation, part of every idempotency key; default: the id in the database"),
		set(&s.Deployment, r.deployment, EnvDeployment, "NAME:BUILD, the worker's version, which gets no work until it is made current; default none"),
		set(&s.Workdir, text, EnvWorkdir, "folder that holds one folder for each tenant's file tools; required"),
		set(&s.AllowLoopback, r.Flag, EnvAllowLoopback, "true lets the http tools connect to this machine; default false"),
		set(&s.AllowHosts, r.List, EnvAllowHosts, "internal hosts that the http tools may reach, as host or host:port, separated by commas; default none"),
		telemetry.Describe(),
		{EnvTraceContent, "true puts prompts, answers, inputs and outputs into traces; default false"},
		set(&s.LogLevel, r.Level, EnvLogLevel, "debug, info, warn or error; default info"),
		set(&s.LogJSON, func(name string) bool { return r.Choice(name, "text", "json") == "json" }, EnvLogFormat, "text or json; default text"),
		set(&s.StartTimeout, r.duration(0), EnvStartTimeout, "how long to wait for PostgreSQL and Temporal at the start, e.g. 5m; 0 for no limit; default 0"),
		set(&s.StopTimeout, r.duration(20*time.Second), EnvStopTimeout, "how long running tools may take to finish when the worker stops; default 20s"),
		set(&s.RetryFor, r.duration(jig.DefaultRetryFor), EnvRetryFor, "how long after its first failure a call is retried if the failure may pass and its tool does not say; default 15m"),
		set(&s.WorkflowCache, r.number(1500), EnvWorkflowCache, "sessions kept in memory between their tasks; default 1500"),
		set(&s.WorkflowTasks, r.number(0), EnvWorkflowTasks, "sessions that advance at the same time, not counting tools and models that take long; default 16 per CPU, at least 32"),
		set(&s.Model, text, EnvModel, "model for prompts that name no model, e.g. anthropic/claude-sonnet-4-5"),
		set(&s.Proof, choice(r, jig.ProofKey, jig.ProofClaimed, jig.ProofVouched, jig.ProofPasskey), EnvProof, "what decisions must prove: claimed, vouched, key or passkey; default key"),
		set(&s.Starts, choice(r, jig.ProofClaimed, jig.ProofVouched), EnvStarts, "what starts, messages and reads must prove: claimed or vouched; default claimed"),
		{EnvSignals, "instead of " + EnvProof + ": trusted (nothing), signed (a token) or off (a token, no raw signals); default none"},
		set(&s.RootKeys, r.rootKeys, EnvRootKey, "public root key, which certifies the keys of servers (`jig root-key new` prints it), or several with commas between them; default none"),
		set(&s.RootKeys, r.rootKeyFile(s), EnvRootKeyFile, "file with the same, in place of "+EnvRootKey+"; default none"),
		set(&s.OperatorKey, r.key, EnvOperatorKey, "PRINCIPAL:PUBLICKEY that every tenant accepts (`jig key new` prints both); default none"),
		set(&s.Permissions, r.List, EnvPermissions, "permissions of everybody in tenants without a document, separated by commas; default none"),
		set(&s.MetricsAddress, text, EnvMetrics, "host:port for Prometheus metrics; without it metrics are not served"),
		set(&s.PublicURL, text, EnvPublicURL, "address of the server, for links in mail and chats; default none"),
		set(&s.MailServer, text, EnvMailServer, "server for mail about approvals: smtp://user:password@host:587, or smtps:// for TLS from the start; default none"),
		set(&s.MailFrom, text, EnvMailFrom, "sender of that mail, e.g. jig@example.com"),
		set(&s.EntityURL, text, EnvEntityURL, "link that thin tools return; may contain {tenant}, {entity_id} and {session_id}; default /entities/{entity_id}"),
		set(&s.Anthropic.APIKey, text, EnvAnthropicKey, "key for models anthropic/…, which need it"),
		set(&s.Anthropic.BaseURL, text, EnvAnthropicURL, "base URL instead of Anthropic's own"),
		set(&s.OpenAI.APIKey, text, EnvOpenAIKey, "key for models openai/…; not needed by most local servers"),
		set(&s.OpenAI.BaseURL, text, EnvOpenAIURL, "base URL instead of OpenAI's own, e.g. of Ollama, vLLM or a gateway"),
		set(&s.Unstreamed, r.patterns, EnvUnstreamed, "models that cannot stream answers, e.g. openai/o3*, separated by commas; default none"),
	}
}

// set reads a setting, and returns its line of the help text.
func set[T any](into *T, read func(name string) T, name, meaning string) [2]string {
	*into = read(name)
	return [2]string{name, meaning}
}

func (r *reader) number(otherwise int) func(name string) int {
	return func(name string) int { return r.Number(name, otherwise) }
}

func (r *reader) duration(otherwise time.Duration) func(name string) time.Duration {
	return func(name string) time.Duration { return r.Duration(name, otherwise) }
}

// choice returns what reads one of the options, by default the first.
func choice[T ~string](r *reader, options ...T) func(name string) T {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = string(o)
	}
	return func(name string) T { return T(r.Choice(name, words...)) }
}

// check returns an error if a setting is missing that every worker needs.
func (s Settings) check() error {
	if err := s.needsDatabase(); err != nil {
		return err
	}
	if _, err := s.mailer(); err != nil {
		return err
	}
	return s.dirs().Check()
}

// mailer returns what sends mail; nil if the settings name no mail server.
func (s Settings) mailer() (*notify.Mailer, error) {
	if s.MailServer == "" {
		return nil, nil // there need not be one
	}
	m, err := notify.NewMailer(notify.MailOptions{Server: s.MailServer, From: s.MailFrom})
	if err != nil {
		wrong := jig.AsError(err)
		return nil, wrong.WithField(map[string]string{"server": EnvMailServer, "from": EnvMailFrom}[wrong.Field])
	}
	return m, nil
}

func (s Settings) needsDatabase() error {
	if s.DatabaseURL == "" {
		return missing(EnvDatabaseURL, "the application's role")
	}
	return nil
}

// dirs returns the tenants' working directories.
func (s Settings) dirs() workdir.Dirs {
	return workdir.Dirs{Base: s.Workdir, Default: s.DefaultWorkdir}
}

// Describe lists the settings for the help text.
func Describe() string {
	var none reader
	return setting.Table(none.variables(&Settings{}))
}

// Logger returns a logger that writes to w with the configured level and format.
func (s Settings) Logger(w io.Writer) *slog.Logger {
	return setting.Logger(w, s.LogLevel, s.LogJSON)
}

// reader reads the settings of a worker.
type reader struct{ setting.Reader }

// patterns reads a list of models, each as provider/name or with a * at the end.
func (r *reader) patterns(name string) []string {
	list := r.List(name)
	for _, one := range list {
		if provider, model, ok := strings.Cut(strings.TrimSuffix(one, "*"), "/"); !ok || provider == "" || strings.Contains(model, "*") {
			r.Refuse(name, "a list of models as provider/name, or with a * at the end, e.g. openai/o3*")
		}
	}
	return list
}

func (r *reader) rootKeys(name string) [][]byte { return r.publicKeys(name, r.Text(name, "")) }

// rootKeyFile returns the root keys in a file, unless there are some already or the setting is empty.
func (r *reader) rootKeyFile(s *Settings) func(name string) [][]byte {
	return func(name string) [][]byte {
		file := r.Text(name, "")
		if file == "" || len(s.RootKeys) > 0 {
			return s.RootKeys
		}
		content, err := os.ReadFile(file) //nolint:gosec // it is the operator's own file
		if err != nil || strings.TrimSpace(string(content)) == "" {
			r.Refuse(name, "a file with a public key, as `jig server-key setup` writes it")
			return nil
		}
		return r.publicKeys(name, string(content))
	}
}

func (r *reader) publicKeys(name, text string) (keys [][]byte) {
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, ",") {
		public, err := base64.StdEncoding.DecodeString(strings.TrimSpace(one))
		if err != nil || len(public) != ed25519.PublicKeySize {
			r.Refuse(name, "a public key, as `jig root-key new` prints it, or several with commas between them")
			return nil
		}
		keys = append(keys, public)
	}
	return keys
}

func (r *reader) key(name string) *identity.Key {
	v := r.Text(name, "")
	if v == "" {
		return nil
	}
	principal, encoded, _ := strings.Cut(v, ":")
	public, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(public) != ed25519.PublicKeySize || principal == "" {
		r.Refuse(name, "PRINCIPAL:PUBLICKEY, as `jig key new` prints them")
		return nil
	}
	return &identity.Key{ID: token.KeyID(principal, public), Algorithm: identity.AlgorithmEd25519, Principal: principal, Material: public}
}
