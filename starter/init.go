package starter

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/scaffold"
)

// initFlags are the flags of `init`.
type initFlags struct{ module, jig string }

func (a *app) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write a project: a worker with a tool of your own, an agent and a policy",
		Long: `Write a project to FOLDER (default: the current folder): go.mod, a worker with one tool that has a preview and a test, an agent whose
model is a script, a policy with cases, and a README with the next commands. A file that exists is never replaced: then nothing is written.

The project uses the jig that this program belongs to. If it is a released program, or "go install" built it from a released version, go.mod
requires that version. Otherwise go.mod has a "replace" that points to the checkout: the folder with jig's source code that is found above this program,
in the path where it was compiled, or above the current folder. --jig names another one.

JSON output: {"folder", "module", "files", "jig": {"version"?, "checkout"?}, "commands"}.`,
		Example: `  jig init shop
  jig init --module example.com/shop --jig ~/src/jig`,
		Args: arguments(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.initProject(dir, f)
		},
	}
	cmd.Flags().StringVar(&f.module, "module", "", "name of the Go `MODULE` (default: the folder's name)")
	cmd.Flags().StringVar(&f.jig, "jig", "", "`FOLDER` with jig's source code")
	_ = cmd.MarkFlagDirname("jig") //nolint:errcheck // fails only for an unknown flag
	return cmd
}

// initReport is the JSON output of `init`.
type initReport struct {
	Folder   string   `json:"folder"`
	Module   string   `json:"module"`
	Files    []string `json:"files"`
	Jig      initJig  `json:"jig"`
	Commands []string `json:"commands"`
}

// initJig says which jig a project uses.
type initJig struct {
	Version  string `json:"version,omitempty"`
	Checkout string `json:"checkout,omitempty"`
}

func (a *app) initProject(dir string, f initFlags) error {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return usage(err)
	}
	if f.module == "" {
		f.module = scaffold.ModuleOf(whole)
	}
	if err := scaffold.CheckModule(f.module); err != nil {
		return usagef("--module: %w", err)
	}
	source, err := jigSource(f.jig)
	if err != nil {
		return usage(err)
	}
	files, err := scaffold.Files(f.module, source)
	if err != nil {
		return err
	}
	if err := scaffold.Write(dir, files); err != nil {
		return notWritten(err)
	}
	r := initReport{Folder: whole, Module: f.module, Jig: initJig(source), Commands: nextCommands(dir, whole, source)}
	for _, file := range files {
		r.Files = append(r.Files, file.Name)
	}
	if a.json() {
		return a.printJSON(r)
	}
	a.line("%s", strings.Join(r.Files, "\n"))
	a.say("%s: %s in %s", a.err.green("ok"), plural(len(files), "file", "files"), whole)
	a.say("\nNext, and explained in its README.md:\n\n  %s", strings.Join(r.Commands, "\n  "))
	return nil
}

// jigSource returns where the project finds jig: in the given checkout, or where this program comes from.
func jigSource(checkout string) (scaffold.Source, error) {
	if checkout != "" {
		whole, err := filepath.Abs(checkout)
		if err != nil || !scaffold.IsCheckout(whole) {
			return scaffold.Source{}, jig.Errorf(jig.CodeInvalidInput, "--jig: %s is not jig's source code: it has no go.mod of %s", checkout, scaffold.Module)
		}
		return scaffold.Source{Checkout: whole}, nil
	}
	p := scaffold.Program{Release: release}
	p.Build, _ = debug.ReadBuildInfo()
	if file, err := os.Executable(); err == nil {
		p.Folders = append(p.Folders, filepath.Dir(file))
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		p.Folders = append(p.Folders, filepath.Dir(file))
	}
	if dir, err := os.Getwd(); err == nil {
		p.Folders = append(p.Folders, dir)
	}
	source, err := scaffold.Find(p)
	if err != nil {
		return source, jig.Errorf(jig.CodeInvalidInput, "%w", err).WithHint("name the folder of a checkout with --jig")
	}
	return source, nil
}

// notWritten returns the error for a project that could not be written.
func notWritten(err error) error {
	var there *scaffold.ExistError
	if errors.As(err, &there) {
		return usage(jig.Errorf(jig.CodeInvalidInput, "%w", err).WithHint("choose another folder, or move these files away"))
	}
	return err
}

// nextCommands lists the commands that test the new project and start its worker.
func nextCommands(dir, whole string, source scaffold.Source) []string {
	var list []string
	if filepath.Clean(dir) != "." {
		list = append(list, shellLine("cd", dir))
	}
	if _, ok := above(whole, "go.work"); ok {
		list = append(list, "export GOWORK=off  # the folder lies in a Go workspace that does not contain it")
	}
	if source.Version != "" {
		list = append(list, "go mod tidy")
	}
	return append(list,
		"go test ./...",
		"jig policy test policy.yaml",
		`go build -ldflags="-s -w" -o bin/worker .`,
		"jig-dev --no-worker  # in a second terminal: PostgreSQL, Temporal, Web UI",
		"bin/worker           # in a third",
		"jig run refunds.md --id first --input order=1042 --input cents=1500 --input reason='it came late' --no-wait",
		"jig approve first",
	)
}

// above returns the nearest file of a name in a folder or one above it.
func above(dir, name string) (string, bool) {
	for {
		if file := filepath.Join(dir, name); fileExists(file) {
			return file, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}
