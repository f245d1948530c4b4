package jig_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

var update = flag.Bool("update", false, "write docs/dependencies.md")

// dependenciesPage is the page that lists the modules.
const dependenciesPage = "docs/dependencies.md"

// purposes says what each module is for. It has exactly the modules that our code imports.
func purposes() map[string]string {
	return map[string]string{
		"cel.dev/expr":                               "The conformance suite of CEL, which our expressions must pass.",
		"charm.land/huh/v2":                          "Prompts on a terminal.",
		"charm.land/lipgloss/v2":                     "Colors and tables on a terminal.",
		"code.dny.dev/ssrf":                          "The list of addresses that tools and webhooks must not reach, kept in step with the registries.",
		"github.com/agenticenv/agent-sdk-go":         "The closest framework on Temporal, with which the benchmarks compare jig.",
		"github.com/aymanbagabas/go-udiff":           "Diffs of texts for previews: the implementation of Go's own tools, with bounded work.",
		"github.com/compose-spec/compose-go/v2":      "Loads `docker-compose.yml` as Compose does, so that a test finds what would fail on a user's machine.",
		"github.com/coreos/go-oidc/v3":               "Checks the tokens of identity providers: discovery, keys that rotate, and what a token must say.",
		"github.com/danielgtaylor/huma/v2":           "Makes the HTTP API and its OpenAPI 3.1 document from the same Go types, on net/http.",
		"github.com/emersion/go-sasl":                "Logs a mail program in at the mail server of the tests.",
		"github.com/emersion/go-smtp":                "The mail server to which tests send mail.",
		"github.com/fergusstrange/embedded-postgres": "Downloads PostgreSQL where none is installed.",
		"github.com/golang-jwt/jwt/v5":               "Signs and parses JSON Web Tokens, without dependencies of its own.",
		"github.com/google/cel-go":                   "Expressions that always end, are checked before they run and have a cost.",
		"github.com/google/jsonschema-go": "Derives JSON Schemas from Go types, so that a tool's contract and its code cannot disagree. Its copy of the " +
			"JSON Schema test suite tests our validation.",
		"github.com/google/licensecheck":                                  "Recognizes the license of a text and how much of the text it covers, as pkg.go.dev does.",
		"github.com/gowebpki/jcs":                                         "Canonical JSON (RFC 8785), which versions and the digests of approvals rest on. Formatting numbers is easy to get wrong.",
		"github.com/jackc/pgx/v5":                                         "The PostgreSQL driver with batches, LISTEN and typed rows; `database/sql` has none of the three.",
		"github.com/tmaxmax/go-sse":                                       "Reads streams of server-sent events as the standard says: line ends, byte order marks, events that break off.",
		"github.com/pressly/goose/v3":                                     "Numbered, embedded migrations, with a lock so that two processes cannot migrate at the same time.",
		"github.com/prometheus/client_golang":                             "Metrics in the format that Prometheus scrapes.",
		"github.com/prometheus/common":                                    "How Prometheus checks names, for its parser of rules.",
		"github.com/prometheus/prometheus":                                "Prometheus' own parser and engine, with which tests check the alert rules and let them fire.",
		"github.com/santhosh-tekuri/jsonschema/v6":                        "JSON Schema 2020-12. It passes every required case of the official suite; a partial validator would let through what a schema forbids.",
		"github.com/spf13/cobra":                                          "Commands, help, and completion for four shells.",
		"github.com/standard-webhooks/standard-webhooks/libraries":        "Signs webhooks in the way that their receivers' libraries verify.",
		"github.com/stretchr/testify":                                     "Assertions of tests; we use only `require`.",
		"github.com/temporalio/ui-server/v2":                              "Temporal's Web UI, in the same process as the development server.",
		"github.com/wI2L/jsondiff":                                        "What a reviewer changed in a call's arguments, as a short JSON Patch (RFC 6902).",
		"github.com/wneessen/go-mail":                                     "Sends mail, with STARTTLS and well-formed headers; the standard library's package is frozen.",
		"github.com/zalando/go-keyring":                                   "Keeps logins of the command line in the keyring of macOS, Windows, GNOME or KDE.",
		"go.opentelemetry.io/otel":                                        "The names and values of attributes, and how traces travel in headers.",
		"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": "Sends traces to collectors, by the standard environment variables.",
		"go.opentelemetry.io/otel/sdk":                                    "Samples, batches and limits spans.",
		"go.opentelemetry.io/otel/trace":                                  "Spans and their links.",
		"go.opentelemetry.io/proto/otlp":                                  "The messages that a collector receives, with which tests read traces.",
		"go.temporal.io/api":                                              "The messages of Temporal's API, for what the SDK does not wrap.",
		"go.temporal.io/sdk":                                              "Durable execution, which the engine is built on: timers, retries, signals and recovery.",
		"go.temporal.io/sdk/contrib/envconfig":                            "Reads Temporal's environment variables and profiles, so that TLS and API keys are set up in the usual way.",
		"go.temporal.io/server":                                           "The real Temporal server, so that tests meet what runs in production and newcomers need no Docker.",
		"go.yaml.in/yaml/v4":                                              "The maintained YAML parser, with positions, depth limits and a replaceable check of aliases.",
		"golang.org/x/mod":                                                "Reads `go.mod` files and compares versions as the `go` command does.",
		"golang.org/x/net":                                                "Character encodings of web pages, and which HTTP headers are valid.",
		"golang.org/x/oauth2":                                             "The client of logins with a browser and with the command line: authorization codes with PKCE, and codes for devices.",
		"golang.org/x/sync":                                               "Groups of tasks that end with the first error.",
		"golang.org/x/term":                                               "Tells whether a terminal is attached.",
		"golang.org/x/text":                                               "The printer that the schema validator needs for its messages, and the Unicode forms in which texts are compared.",
		"golang.org/x/time":                                               "Rate limits of requests: the token bucket of Go's own team.",
		"google.golang.org/protobuf":                                      "Reads the conformance suite of CEL, and makes the durations in Temporal's messages.",
		"k8s.io/api":                                                      "The types of the Kubernetes API, with which a test reads the manifests.",
		"k8s.io/apimachinery":                                             "Reads manifests as strictly as the Kubernetes API server.",
	}
}

// dependency says which of our modules import another module.
type dependency struct {
	importers map[string]bool
	// shipped means that the module is part of the programs that users run, because a package of the root module imports it outside tests.
	shipped bool
}

// dependencies returns the modules that our code imports, by path.
func dependencies(t *testing.T) map[string]dependency {
	t.Helper()
	all := map[string]dependency{}
	required := map[string]*modfile.File{}
	for _, s := range sources(t) {
		folder := moduleOf(t, s.folder)
		if required[folder] == nil {
			required[folder] = readModule(t, folder)
		}
		if _, ours := cutModule(required[folder].Module.Mod.Path); !ours {
			continue // a stand-in for a module of others
		}
		for _, imported := range imports(t, s) {
			if _, ours := cutModule(imported); ours || !strings.Contains(strings.Split(imported, "/")[0], ".") {
				continue
			}
			name := providerOf(required[folder], imported)
			require.NotEmpty(t, name, "%s imports %s, which go.mod does not require", s.file, imported)
			d := all[name]
			if d.importers == nil {
				d.importers = map[string]bool{}
			}
			d.importers[folder] = true
			d.shipped = d.shipped || folder == "." && !s.test && !strings.HasSuffix(s.folder, "test")
			all[name] = d
		}
	}
	require.NotEmpty(t, all)
	return all
}

// moduleOf returns the folder of the module that a folder belongs to.
func moduleOf(t *testing.T, folder string) string {
	t.Helper()
	for at := folder; ; at = path.Dir(at) {
		if _, err := os.Stat(filepath.Join(filepath.FromSlash(at), "go.mod")); err == nil {
			return at
		}
		require.NotEqual(t, ".", at, "%s: no folder above it has a go.mod", folder)
	}
}

func readModule(t *testing.T, folder string) *modfile.File {
	t.Helper()
	file := filepath.Join(filepath.FromSlash(folder), "go.mod")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := modfile.Parse(file, content, nil)
	require.NoError(t, err)
	return parsed
}

// providerOf returns the required module that an imported package belongs to: the one with the longest path, as for the go command.
func providerOf(file *modfile.File, imported string) string {
	name := ""
	for _, r := range file.Require {
		if p := r.Mod.Path; (imported == p || strings.HasPrefix(imported, p+"/")) && len(p) > len(name) {
			name = p
		}
	}
	return name
}

// renderDependencies returns the text of the page.
func renderDependencies(list map[string]dependency, purposes map[string]string) string {
	var b strings.Builder
	b.WriteString("# Dependencies\n\n" +
		"<!-- `make dependencies` writes this page; the sentences are in dependencies_test.go. -->\n\n" +
		"These are the Go modules that jig imports, and what each is for. Exact versions are in the `go.mod` of the module that imports them.\n")
	table := func(title string, shipped bool) {
		b.WriteString("\n## " + title + "\n| module | what it is for | imported by |\n| --- | --- | --- |\n")
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if list[name].shipped != shipped {
				continue
			}
			var importers []string
			for _, folder := range slices.Sorted(maps.Keys(list[name].importers)) {
				if folder == "." {
					folder = "root"
				}
				importers = append(importers, folder)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, purposes[name], strings.Join(importers, ", "))
		}
	}
	table("In the programs that users run", true)
	table("Only in development, tests and benchmarks", false)
	b.WriteString("\nOnly `dev/alerts` requires Prometheus, only `dev/manifests` Kubernetes, and only `dev/temporal` the Temporal server. A program that uses the client does not download it, and jig's versions do not depend on the\n" +
		"server's ([decision](decisions/006-temporal-server-as-a-child-process.md)). golangci-lint, workflowcheck and the `temporal` command are not\n" +
		"requirements either: `make` builds them at the versions that the Makefile names.\n")
	return b.String()
}

func TestDependencies_HaveAPurpose(t *testing.T) {
	t.Parallel()
	imported, sentences := dependencies(t), purposes()
	for name := range imported {
		require.NotEmpty(t, sentences[name], "%s: say in purposes() what it is for, then run make dependencies", name)
	}
	for name := range sentences {
		require.Contains(t, imported, name, "nothing imports %s: remove it from purposes(), then run make dependencies", name)
	}
}

func TestDependenciesPage_IsUpToDate(t *testing.T) {
	t.Parallel()
	want := renderDependencies(dependencies(t), purposes())
	if *update {
		require.NoError(t, os.WriteFile(dependenciesPage, []byte(want), 0o600))
		return
	}
	page, err := os.ReadFile(dependenciesPage)
	require.NoError(t, err)
	require.Equal(t, want, string(page), "run make dependencies")
}
