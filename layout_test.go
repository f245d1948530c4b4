package jig_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the import path of the root package.
const module = "github.com/jig-run/jig"

// anything lets a package import every other package that may be imported at all.
const anything = "*"

// arrows lists, by folder, which of our packages each package may import. A folder that is not listed follows the rule of its nearest
// listed parent and may import that parent. Nothing may import the packages that put everything together (worker, dev), except the programs. Tests are exempt.
//
// The order is that of the layers: the root, leaves, the domains (types with their rules, no I/O), documents, the packages that
// evaluate documents, adapters, the engine, and the programs.
func arrows() map[string][]string {
	return map[string][]string{
		".": {},

		"internal/cache":      {},
		"internal/canonical":  {},
		"internal/clip":       {},
		"internal/confine":    {},
		"internal/costtest":   {},
		"internal/jsontext":   {},
		"internal/modeltest":  {},
		"internal/outbound":   {"internal/confine"},
		"internal/pattern":    {},
		"internal/suggest":    {},
		"internal/toolname":   {},
		"internal/visible":    {},
		"internal/jsonpath":   {"internal/clip", "internal/jsontext", "internal/pattern", "internal/strictjson"},
		"internal/seal":       {".", "internal/canonical"},
		"internal/duration":   {"."},
		"internal/setting":    {"."},
		"internal/expr":       {".", "internal/cache", "internal/jsontext", "internal/pattern", "internal/suggest"},
		"internal/argument":   {".", "internal/jsontext", "internal/pattern", "internal/strictjson"},
		"internal/strictjson": {"."},
		"internal/schema":     {".", "internal/pattern", "internal/strictjson", "internal/suggest"},
		"internal/preview":    {".", "internal/clip", "internal/visible"},
		"internal/stored":     {".", "internal/clip"},
		"internal/workdir":    {".", "internal/suggest"},

		"internal/dataflow":       {"internal/argument", "internal/clip"},
		"internal/identity":       {".", "internal/visible"},
		"internal/identity/token": {".", "internal/canonical", "internal/identity", "internal/strictjson"},
		// API keys, logins and embed tokens. Only the server and its store know them.
		"internal/identity/credential": {".", "internal/identity"},
		"internal/identity/vouch":      {".", "internal/protocol"},
		// What identity providers say about people. Only the server knows them.
		"internal/identity/openid": {".", "internal/strictjson"},
		"internal/audit":           {".", "internal/identity", "internal/jsontext"},
		"internal/protocol":        {".", "internal/audit", "internal/duration", "internal/jsontext", "internal/strictjson"},
		"internal/approval":        {".", "internal/audit", "internal/duration", "internal/identity", "internal/stored"},
		"internal/bundle":          {".", "internal/cache"},
		"internal/chat":            {"."},
		"internal/livetext":        {".", "internal/clip", "internal/protocol"},
		"internal/notify/outbox":   {"."},
		"internal/budget":          {".", "internal/chat"},
		"internal/ratelimit":       {".", "internal/duration"},
		"internal/entity":          {"."},
		"internal/ledger":          {".", "internal/approval", "internal/audit", "internal/chat", "internal/jsontext", "internal/stored"},
		"internal/tenancy":         {".", "internal/approval", "internal/identity", "internal/protocol"},
		"internal/plan":            {".", "internal/audit", "internal/entity", "internal/expr", "internal/ledger", "internal/protocol"},

		// The operations of the API as values, for whoever serves or calls them.
		"internal/api": {
			".", "internal/audit", "internal/bundle", "internal/entity", "internal/identity", "internal/identity/credential", "internal/jsontext", "internal/protocol", "internal/tenancy", "internal/toolname",
		},

		// Documents become values of the domains.
		"spec": {
			".", "internal/approval", "internal/budget", "internal/bundle", "internal/canonical", "internal/clip", "internal/duration",
			"internal/entity", "internal/expr", "internal/identity", "internal/identity/token", "internal/jsontext", "internal/pattern", "internal/schema", "internal/seal",
			"internal/suggest", "internal/tenancy", "internal/toolname",
		},

		"internal/loaded": {"internal/cache", "spec"},
		"internal/tenancy/current": {
			".", "internal/approval", "internal/bundle", "internal/cache", "internal/entity", "internal/identity", "internal/loaded", "internal/tenancy", "spec",
		},
		"internal/budget/meter": {
			".", "internal/budget", "internal/bundle", "internal/cache", "internal/chat", "internal/confine", "internal/expr",
			"internal/protocol", "internal/toolname", "spec",
		},
		"internal/ratelimit/limiter": {".", "internal/bundle", "internal/cache", "internal/expr", "internal/ratelimit", "internal/toolname", "spec"},
		"internal/entity/guarded":    {".", "internal/entity", "internal/suggest", "internal/toolname"},
		"internal/entity/retype":     {".", "internal/bundle", "internal/entity", "spec"},
		"internal/plan/docpreview":   {".", "internal/expr", "internal/plan", "spec"},
		"internal/plan/undoing":      {".", "internal/jsontext", "internal/ledger", "internal/plan"},
		"internal/plan/composition": {
			".", "internal/cache", "internal/duration", "internal/expr", "internal/jsontext", "internal/plan", "internal/plan/docpreview", "internal/toolname", "spec",
		},
		"internal/plan/extraction": {
			".", "internal/cache", "internal/canonical", "internal/entity", "internal/expr", "internal/jsontext", "internal/plan", "internal/protocol",
			"internal/toolname",
		},
		"internal/policy": {
			".", "internal/approval", "internal/argument", "internal/bundle", "internal/cache", "internal/clip", "internal/duration", "internal/expr",
			"internal/ledger", "internal/protocol", "internal/suggest", "internal/tenancy", "internal/toolname", "spec",
		},

		"tools":          {".", "internal/schema", "internal/seal", "internal/strictjson", "internal/suggest"},
		"tools/tooltest": {".", "internal/confine", "internal/modeltest", "internal/preview", "spec", "tools"},
		"internal/builtin": {
			".", "internal/audit", "internal/bundle", "internal/chat", "internal/clip", "internal/entity", "internal/entity/guarded",
			"internal/entity/retype", "internal/jsonpath", "internal/loaded", "internal/outbound", "internal/pattern", "internal/preview", "internal/protocol", "internal/schema",
			"internal/suggest", "internal/tenancy", "internal/toolname", "internal/workdir", "spec", "tools",
		},
		"internal/builtin/changes": {".", "internal/approval", "internal/bundle", "internal/entity", "internal/loaded", "internal/preview", "internal/tenancy", "spec"},
		// These packages connect plans with stored entities. Like the rest of internal/plan, they know no built-in tools.
		"internal/plan/thin": {
			".", "internal/cache", "internal/entity", "internal/entity/guarded", "internal/expr", "internal/plan", "internal/plan/docpreview", "internal/protocol",
			"internal/toolname", "spec", "tools",
		},
		"internal/plan/extractor": {
			".", "internal/bundle", "internal/cache", "internal/entity", "internal/entity/guarded", "internal/loaded", "internal/plan", "internal/plan/extraction",
			"internal/toolname", "spec",
		},
		"model":              {".", "internal/cache", "internal/chat", "internal/expr", "internal/jsontext", "internal/strictjson"},
		"internal/metrics":   {".", "internal/budget", "internal/chat", "internal/protocol"},
		"internal/telemetry": {".", "internal/chat", "internal/ledger", "internal/setting"},
		"internal/notify":    {".", "internal/approval", "internal/jsontext", "internal/notify/outbox", "internal/tenancy"},
		"internal/store": {
			".", "internal/api", "internal/approval", "internal/audit", "internal/budget", "internal/bundle", "internal/chat", "internal/confine", "internal/entity",
			"internal/identity", "internal/identity/credential", "internal/identity/vouch", "internal/ledger", "internal/livetext", "internal/notify/outbox", "internal/plan", "internal/preview", "internal/protocol",
			"internal/ratelimit",
			"internal/stored", "internal/suggest",
		},
		"internal/store/storetest": {".", "internal/store"},

		"activities": {
			".", "internal/approval", "internal/argument", "internal/audit", "internal/budget", "internal/bundle", "internal/cache", "internal/canonical", "internal/chat",
			"internal/confine", "internal/dataflow", "internal/duration", "internal/entity", "internal/expr", "internal/identity",
			"internal/identity/token", "internal/ledger", "internal/livetext", "internal/plan", "internal/plan/undoing", "internal/policy", "internal/preview", "internal/protocol",
			"internal/ratelimit", "internal/schema", "internal/strictjson", "internal/suggest", "internal/telemetry", "internal/tenancy", "internal/toolname",
			"spec",
		},
		// Of the domains, workflows needs only approval, for the text about missing approvals and for the times at which approvals are due.
		"workflows": {".", "activities", "internal/approval", "internal/protocol", "internal/strictjson", "internal/visible"},

		// The client stays light for the programs that use it.
		"client": {".", "internal/audit", "internal/cache", "internal/protocol", "internal/strictjson"},
		"starter": {
			".", "client", "internal/api", "internal/approval", "internal/argument", "internal/audit", "internal/bundle", "internal/clip", "internal/duration", "internal/entity",
			"internal/identity", "internal/identity/token", "internal/jsontext", "internal/policy", "internal/preview", "internal/protocol", "internal/remote", "internal/remote/signin", "internal/strictjson", "internal/suggest", "internal/tenancy",
			"internal/scaffold", "internal/toolname", "internal/visible", "spec",
		},
		// New projects. The project itself is a program like those of users.
		"internal/scaffold":         {},
		"internal/scaffold/project": {"internal/scaffold/shop", "worker"},
		"internal/scaffold/shop":    {".", "tools"},
		// The operations of the HTTP interface are thin: they know the client and what it sends, and neither the engine nor the store.
		"internal/httpapi": {
			".", "client", "internal/api", "internal/audit", "internal/bundle", "internal/cache", "internal/entity", "internal/identity", "internal/identity/credential", "internal/identity/openid",
			"internal/jsontext", "internal/preview", "internal/protocol", "internal/stored", "internal/strictjson", "internal/tenancy", "internal/toolname",
		},
		// Tests of a running server from outside, which know nothing but its OpenAPI document.
		"internal/selfcheck": {"."},
		// The client of the HTTP interface: the methods of the other client, over the operations. It knows neither the engine nor the store.
		"internal/remote": {
			".", "client", "internal/api", "internal/entity", "internal/identity", "internal/identity/credential", "internal/jsontext", "internal/protocol", "internal/remote/signin",
			"internal/toolname",
		},
		// The command line's logins at the identity provider of a server.
		"internal/remote/signin": {".", "internal/api"},
		// The server answers requests that read with the functions of the engine, on a store with a role that cannot change what tenants have.
		"server": {
			".", "activities", "client", "internal/httpapi", "internal/identity", "internal/identity/credential", "internal/identity/openid", "internal/identity/vouch",
			"internal/metrics", "internal/protocol", "internal/setting", "internal/startup", "internal/store", "internal/telemetry", "internal/tenancy/current",
		},
		"cmd/jig": {
			".", "client", "internal/duration", "internal/identity/credential", "internal/identity/vouch", "internal/selfcheck", "internal/setting", "internal/store",
			"server", "starter", "worker",
		},
		// How workers and servers wait for the servers that they need.
		"internal/startup": {".", "client", "internal/store"},
		"bundles":          {".", "spec"},
		// The tools that the bundle dependency-review needs.
		"bundles/deps": {".", "internal/workdir", "tools"},
		"deploy":       {},
		"worker":       {anything},
		"dev":          {anything},
		// Tests of the alert rules, in a module of their own.
		"dev/alerts": {},
		// Tests of the Kubernetes manifests, in a module of their own, too.
		"dev/manifests": {},
		// The Temporal server and its Web UI: a separate module and process, without anything from jig.
		"dev/temporal": {},
		// A separate module, too.
		"bench": {anything},
	}
}

// keepers lists the only packages that may import a library, so that it can be replaced in one place. Programs only put packages together
// and test kits only test, so they may import more.
func keepers() map[string][]string {
	return map[string][]string{
		"github.com/google/cel-go":                   {"internal/expr", "bench"},
		"github.com/aymanbagabas/go-udiff":           {"internal/preview"},
		"github.com/gowebpki/jcs":                    {"internal/canonical"},
		"github.com/danielgtaylor/huma/v2":           {"internal/httpapi"},
		"github.com/jackc/pgx/v5":                    {"internal/store", "dev", "bench"},
		"github.com/pressly/goose/v3":                {"internal/store"},
		"github.com/tmaxmax/go-sse":                  {"model"},
		"go.temporal.io/sdk/workflow":                {"workflows", "internal/telemetry", "dev", "bench"},
		"go.opentelemetry.io/otel":                   {"internal/telemetry"},
		"go.temporal.io/server":                      {"dev/temporal"},
		"github.com/temporalio/ui-server":            {"dev/temporal"},
		"github.com/spf13/cobra":                     {"starter", "cmd/jig", "dev"},
		"github.com/stretchr/testify":                {"internal/store/storetest", "internal/modeltest", "tools/tooltest"},
		"go.yaml.in/yaml":                            {"spec"},
		"github.com/google/licensecheck":             {"bundles/deps"},
		"github.com/golang-jwt/jwt":                  {"internal/identity/token", "internal/identity/vouch"},
		"github.com/coreos/go-oidc/v3":               {"internal/identity/openid", "internal/remote/signin"},
		"github.com/zalando/go-keyring":              {"internal/remote/signin"},
		"github.com/fergusstrange/embedded-postgres": {"dev"},
		"github.com/standard-webhooks/":              {"internal/notify"},
		"github.com/prometheus/client_golang":        {"internal/metrics"},
		"github.com/prometheus/prometheus":           {"dev/alerts"},
		"code.dny.dev/ssrf":                          {"internal/outbound"},
		"k8s.io/":                                    {"dev/manifests"},
		"github.com/wneessen/go-mail":                {"internal/notify"},
		"golang.org/x/time":                          {"internal/httpapi"},
	}
}

// source is a parsed file and its folder.
type source struct {
	folder, file string
	test         bool
	generated    bool
	syntax       *ast.File
}

// sources parses every Go file of all modules.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && file != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		syntax, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{
			folder: filepath.ToSlash(filepath.Dir(file)), file: file, test: strings.HasSuffix(file, "_test.go"),
			generated: ast.IsGenerated(syntax), syntax: syntax,
		})
		return nil
	}))
	require.NotEmpty(t, all)
	return all
}

// imports returns the paths that a file imports.
func imports(t *testing.T, s source) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		paths = append(paths, p)
	}
	return paths
}

// ruleOf returns the folder itself or the nearest parent that has a rule.
func ruleOf[V any](rules map[string]V, folder string) (string, bool) {
	for at := folder; ; at = path.Dir(at) {
		if _, ok := rules[at]; ok && (at != "." || folder == ".") {
			return at, true
		}
		if at == "." {
			return "", false
		}
	}
}

func TestArrows_PointDown(t *testing.T) {
	t.Parallel()
	rules := arrows()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		rule, ok := ruleOf(rules, s.folder)
		require.True(t, ok, "%s: the folder has no rule; see the design's layout", s.file)
		for _, imported := range imports(t, s) {
			target, ours := cutModule(imported)
			if !ours {
				continue
			}
			below := target == rule || strings.HasPrefix(target, rule+"/")
			allowed := below || slices.Contains(rules[rule], anything) || slices.Contains(rules[rule], target)
			require.True(t, allowed, "%s must not import %s", s.file, imported)
			kit, fromKit := strings.HasSuffix(target, "test"), strings.HasSuffix(s.folder, "test")
			require.True(t, !kit || fromKit || rule == "bench", "%s imports the test kit %s", s.file, imported)
		}
	}
}

// cutModule returns the folder of an import path within our modules.
func cutModule(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func TestRoot_UsesOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.folder != "." || s.test {
			continue
		}
		for _, imported := range imports(t, s) {
			require.NotContains(t, strings.Split(imported, "/")[0], ".", "%s imports %s", s.file, imported)
		}
	}
}

func TestLibraries_StayWithTheirKeepers(t *testing.T) {
	t.Parallel()
	rules := keepers()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, imported := range imports(t, s) {
			for library, who := range rules {
				if !strings.HasPrefix(imported, library) {
					continue
				}
				keeps := slices.ContainsFunc(who, func(folder string) bool { return s.folder == folder || strings.HasPrefix(s.folder, folder+"/") })
				require.True(t, keeps, "%s imports %s, which %v keep to themselves", s.file, imported, who)
			}
		}
	}
}

// The root is the public vocabulary. A type that only packages below internal/ share belongs to one of them. The limits apply to the root and to
// all public packages together.
func TestPublicTypes_StayFew(t *testing.T) {
	t.Parallel()
	root, all := []string{}, []string{}
	for _, s := range sources(t) {
		if s.test || s.syntax.Name.Name == "main" || isPrivate(s.folder) {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				all = append(all, path.Join(s.folder, spec.Name.Name))
				if s.folder == "." {
					root = append(root, spec.Name.Name)
				}
			}
			return true
		})
	}
	require.LessOrEqual(t, len(root), 60, "%v", root)
	require.LessOrEqual(t, len(all), 200, "%v", all)
}

// isPrivate reports whether other modules cannot or should not import a package: those below internal/, and those of the development server and the
// benchmarks, which are modules of their own.
func isPrivate(folder string) bool {
	parts := strings.Split(folder, "/")
	return slices.Contains(parts, "internal") || parts[0] == "dev" || parts[0] == "bench"
}

// An interface has at most ten methods, with those of the interfaces that it embeds. A larger one is split into parts, so that a function can ask
// for the part that it uses. Only the store of the activities is composed of all its parts (decision 22).
func TestInterfaces_AreSmall(t *testing.T) {
	t.Parallel()
	all := interfaces(t)
	require.Greater(t, all.methods("activities.Store"), 10)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		require.True(t, name == "activities.Store" || all.methods(name) <= 10, "%s has %d methods", name, all.methods(name))
	}
}

// declared holds the interfaces of our modules by folder and name, e.g. activities.Store.
type declared map[string]declaration

// declaration is an interface with the names that it embeds and the number of methods that it declares itself.
type declaration struct {
	embeds []string
	own    int
}

func (d declared) methods(name string) int {
	n := d[name].own
	for _, embedded := range d[name].embeds {
		n += d.methods(embedded)
	}
	return n
}

func interfaces(t *testing.T) declared {
	t.Helper()
	all := declared{}
	for _, s := range sources(t) {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			i, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			var of declaration
			for _, m := range i.Methods.List {
				of.own += len(m.Names)
				switch embedded := m.Type.(type) {
				case *ast.Ident:
					of.embeds = append(of.embeds, s.folder+"."+embedded.Name)
				case *ast.SelectorExpr:
					of.embeds = append(of.embeds, s.folderOf(t, embedded.X)+"."+embedded.Sel.Name)
				}
			}
			all[s.folder+"."+spec.Name.Name] = of
			return true
		})
	}
	return all
}

// folderOf returns the folder of the package that an identifier stands for in a file; "" if it is not one of ours.
func (s source) folderOf(t *testing.T, pkg ast.Expr) string {
	t.Helper()
	for i, imported := range imports(t, s) {
		name := path.Base(imported)
		if as := s.syntax.Imports[i].Name; as != nil {
			name = as.Name
		}
		if folder, ours := cutModule(imported); ours && name == pkg.(*ast.Ident).Name { //nolint:errcheck // the caller has looked
			return folder
		}
	}
	return ""
}

func TestPackages_HaveAComment(t *testing.T) {
	t.Parallel()
	commented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			commented[s.folder] = commented[s.folder] || s.syntax.Doc != nil
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(commented)) {
		require.True(t, commented[folder], "%s: the package has no comment", folder)
	}
}

func TestPackages_HaveNoInit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, decl := range s.syntax.Decls {
			f, ok := decl.(*ast.FuncDecl)
			require.False(t, ok && f.Recv == nil && f.Name.Name == "init", "%s has an init function", s.file)
		}
	}
}

// Tests must not assert how long something took or that a time is close to now, because they would fail on a busy machine. Inside a
// testing/synctest bubble, time is virtual, so such assertions are fine.
func TestTests_DoNotAssertTheClock(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if !s.test || slices.Contains(imports(t, s), "testing/synctest") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !calls(call, "require", "") {
				return true
			}
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					inner, ok := n.(*ast.CallExpr)
					timed := ok && (calls(inner, "time", "Since") || calls(inner, "time", "Until"))
					near := ok && calls(call, "require", "WithinDuration") && calls(inner, "time", "Now")
					require.False(t, timed || near, "%s compares times of the machine", s.file)
					return true
				})
			}
			return true
		})
	}
}

// calls reports whether a call is to a function of the package; an empty name matches any function.
func calls(call *ast.CallExpr, pkg, name string) bool {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || name != "" && selected.Sel.Name != name {
		return false
	}
	from, ok := selected.X.(*ast.Ident)
	return ok && from.Name == pkg
}

func TestPackages_AreNamedForTheirSubject(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, part := range strings.Split(s.folder, "/") {
			require.NotContains(t, []string{"pkg", "util", "utils", "common", "helpers", "misc"}, part, s.file)
		}
		within := strings.TrimPrefix(strings.TrimPrefix(s.folder, moduleOf(t, s.folder)), "/")
		require.LessOrEqual(t, strings.Count(within, "/"), 2, "%s: folders of a module are at most three deep", s.file)
	}
}
