package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/internal/remote/signin"
	"github.com/jig-run/jig/internal/suggest"
)

// app is one run of the command line: its streams, its settings, and its access to the engine.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	env            map[string]string
	// program is the command as the user typed it, for the commands that the output suggests.
	program string
	// connect connects to the engine; tests replace it.
	connect func(ctx context.Context, settings client.Settings) (engine, error)
	// ask asks the person at the terminal about one approval; tests replace it.
	ask func(ctx context.Context, about prompt) (reply, error)
	// interactive reports that standard input and standard error are a terminal, so that the program can ask a person.
	interactive bool
	// processes returns the commands of other packages; see [Program]. It may be nil.
	processes func(Shell) []*cobra.Command
	// kept gives out the access tokens of logins; nil until one is needed.
	kept *signin.Keeper

	flags globalFlags
	// named reports that the user chose the acting principal with --as or JIG_PRINCIPAL. Otherwise it is the operating system's user.
	named    bool
	settings client.Settings
	// server is the jig server that is used instead of Temporal; nil if there is none. serverErr says why it cannot be used.
	server    *remote.Client
	serverErr error
	out       palette
	err       palette
	// failed is the first error of writing to stdout.
	failed error
	// began is true once the command line has been parsed. An error before that is a usage error.
	began bool
	// tasks remembers the start times of extraction tasks, for the lines of the log.
	tasks taskClock
}

// globalFlags are the flags that every command has.
type globalFlags struct {
	tenant    string
	as        string
	output    string
	url       string
	address   string
	namespace string
	taskQueue string
	noColor   bool
	// key is the file of the signing key, on commands that have --key.
	key string
}

func newApp(program string, environ []string, stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: environ, env: client.ParseEnviron(environ),
		program: programName(program), connect: dial,
		interactive: isTerminal(stdin) && isTerminal(stderr),
	}
	a.ask = a.askOnTerminal
	return a
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // the commands get their context from cobra
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if a.failed != nil && (err == nil || isSilent(err)) {
		err = a.failed
	}
	if err == nil || a.began {
		return a.exit(ctx, err)
	}
	if asksForJSON(args) {
		a.flags.output = outputJSON // parsing may have stopped before --output
	}
	mistake := reported(usage(err))
	if message, like, found := strings.Cut(mistake.Message, "\n\nDid you mean this?\n"); found { // the form in which cobra suggests commands
		mistake.Message, mistake.Hint = message, "did you mean "+strings.Join(strings.Fields(like), " or ")+"?"
	}
	if flag, found := strings.CutPrefix(mistake.Message, "unknown flag: --"); found {
		mistake.Hint = likeFlag(cmd, flag)
	}
	if mistake.Hint == "" {
		mistake.Hint = fmt.Sprintf("see `%s --help`", strings.Replace(cmd.CommandPath(), root.Name(), a.program, 1))
	}
	return a.exit(ctx, usage(mistake))
}

// flagLine matches the beginning of a line that describes a flag.
var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// likeFlag returns a hint that names the flags of a command which resemble a misspelled one; "" if there are none.
func likeFlag(cmd *cobra.Command, name string) string {
	var known []string
	for _, line := range flagLine.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		known = append(known, line[1])
	}
	like := suggest.Names(name, known, 3)
	if len(like) == 0 {
		return ""
	}
	return "did you mean --" + strings.Join(like, " or --") + "?"
}

// asksForJSON reports whether a command line has --output json. The last --output counts.
func asksForJSON(args []string) bool {
	format := ""
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--output="); ok {
			format = value
		} else if arg == "--output" && i+1 < len(args) {
			format = args[i+1]
		}
	}
	return format == outputJSON
}

// programName returns the command as the user would type it again.
func programName(arg0 string) string {
	if strings.Contains(filepath.ToSlash(arg0), "/go-build") {
		return "go run ./cmd/jig"
	}
	return strings.TrimSuffix(filepath.Base(arg0), ".exe")
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "jig",
		Version: buildVersion().Version,
		Short:   "Run and watch durable agent sessions and tool calls, and decide what needs approval",
		Long: `jig starts agent sessions and single tool calls, decides the calls that wait for a person, and shows what happened.
It talks to a jig server (JIG_URL, with JIG_API_KEY or after "jig login") or, without one, to Temporal; a worker ("jig worker") does the
work. With a server, the tenant and the principal come from the credential.

A setting is taken from its flag, then from the environment (JIG_TEMPORAL_ADDRESS, JIG_TEMPORAL_NAMESPACE, JIG_TASK_QUEUE,
JIG_TENANT, JIG_PRINCIPAL), then from Temporal's own environment variables and profile, then from the file that jig-dev
writes: the one that JIG_DEV_ENV names, or .jig/dev.env in this folder or the nearest one above it. If none of these has the setting, its
default applies.

With --output json, the result goes to stdout as one JSON document (JSON lines for streams). A command that fails prints no
result; its last line on stderr is {"error": {"code", "message", "field"?, "hint"?, "reason"?, "violations"?}}. A session or
call that failed is a result and is printed like any other.

Exit codes: 0 done, 1 failed, 2 usage or settings, 3 waiting for a person (--no-wait) or not ended yet (result), 4 denied or expired, 130 interrupted.`,
		Example: `  jig run dependency-review --input path=. --follow
  jig approvals
  jig approve ses_… 3.1`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.identify(cmd.Context(), cmd); err != nil {
				return err
			}
			return a.begin()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.flags.tenant, "tenant", "", "tenant that owns the data (JIG_TENANT; default \"default\")")
	f.StringVar(&a.flags.as, "as", "", "principal to act as (JIG_PRINCIPAL; default $USER)")
	f.StringVar(&a.flags.output, "output", "text", "text for people, json for programs")
	f.StringVar(&a.flags.url, "url", "", "address of a jig server to use instead of Temporal (JIG_URL), with the API key in JIG_API_KEY or a login")
	f.StringVar(&a.flags.address, "temporal-address", "", "host:port of Temporal (JIG_TEMPORAL_ADDRESS; default "+client.DefaultAddress+")")
	f.StringVar(&a.flags.namespace, "namespace", "", "Temporal namespace (JIG_TEMPORAL_NAMESPACE; default "+client.DefaultNamespace+")")
	f.StringVar(&a.flags.taskQueue, "task-queue", "", "task queue of the workers (JIG_TASK_QUEUE; default jig)")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colors, even on a terminal (NO_COLOR)")
	completeFlag(root, "output", outputText, outputJSON)
	section(root, "Run and watch:", a.runCommand(), a.triggerCommand(), a.sessionsCommand(), a.statusCommand(), a.entityCommand(), a.resultCommand(),
		a.transcriptCommand(), a.watchCommand(), a.eventsCommand(), a.messageCommand(), a.eventCommand(), a.cancelCommand(), a.undoCommand(), a.scheduleCommand())
	section(root, "Approve and decide:", a.approvalsCommand(), a.approveCommand(), a.denyCommand(), a.delegateCommand(),
		a.answerCommand(), a.reconcileCommand(), a.grantCommand(), a.keyCommand(), a.tokenCommand())
	section(root, "Write and register documents:", a.initCommand(), a.validateCommand(), a.explainCommand(), a.catalogCommand(), a.bundleCommand(),
		a.policyCommand())
	section(root, "Log in:", a.loginCommand(), a.logoutCommand(), a.whoamiCommand())
	section(root, "Operate:", a.pauseCommand(), a.resumeCommand(), a.peopleCommand(), a.auditCommand(), a.usageCommand())
	if a.processes != nil {
		section(root, processesTitle, a.processes(Shell{a})...)
	}
	root.AddCommand(a.versionCommand(), completionCommand())
	return root
}

// Output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

// begin checks the global flags, once cobra has parsed the command line.
func (a *app) begin() error {
	if a.flags.output != outputText && a.flags.output != outputJSON {
		return usagef("--output is %q; it must be text or json", a.flags.output)
	}
	a.flags.tenant = cmp.Or(a.flags.tenant, a.env["JIG_TENANT"], jig.DefaultTenant)
	as := cmp.Or(a.flags.as, a.env["JIG_PRINCIPAL"]) // with a server, that of the credential
	a.flags.as, a.named = cmp.Or(as, a.systemUser()), as != ""
	if err := jig.CheckTenant(a.flags.tenant); err != nil {
		return usage(err)
	}
	plain := a.flags.noColor || a.env["NO_COLOR"] != "" || a.env["TERM"] == "dumb"
	a.out, a.err = palette{on: !plain && isTerminal(a.stdout)}, palette{on: !plain && isTerminal(a.stderr)}
	a.began = true
	return nil
}

// json reports whether the output format is JSON.
func (a *app) json() bool { return a.flags.output == outputJSON }

// principal returns the acting principal. Its identity is claimed, not proved.
func (a *app) principal() jig.Principal { return jig.Principal{ID: a.flags.as, Claimed: true} }

// request returns the sources of the settings: the flags, the environment and the file written by jig-dev.
func (a *app) request() (client.SettingsRequest, error) {
	dev, path, err := client.FindDevEnv(a.environ)
	if err != nil {
		return client.SettingsRequest{}, usage(err)
	}
	return client.SettingsRequest{
		Address: a.flags.address, Namespace: a.flags.namespace, TaskQueue: a.flags.taskQueue, Environ: a.environ, DevEnv: dev, DevEnvPath: path,
	}, nil
}

// group makes cmd a command with subcommands. Without a subcommand it shows its help; an unknown one is an error.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// unknownCommand returns the error for an unknown subcommand of cmd, with suggestions.
func unknownCommand(cmd *cobra.Command, word string) error {
	cmd.SuggestionsMinimumDistance = 2
	unknown := jig.Errorf(jig.CodeInvalidInput, "unknown command %q for %q", word, cmd.CommandPath())
	if like := cmd.SuggestionsFor(word); len(like) > 0 {
		unknown = unknown.WithHint("did you mean " + strings.Join(like, " or ") + "?")
	}
	return usage(unknown)
}

// completeFlag lets shells complete the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) //nolint:errcheck // fails only for an unknown flag
}

// section adds commands to root, in a section of the help with its own title.
func section(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// versionReport describes the build of this program.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

// release is the version of a released program, e.g. v0.1.0. The linker sets it (scripts/release.sh).
var release string

func buildVersion() versionReport {
	r := versionReport{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	r.Version = cmp.Or(release, info.Main.Version, r.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  jig version --output json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r := buildVersion()
			return a.output(r, func() error {
				return a.print("%s", strings.Join(strings.Fields(fmt.Sprintf("jig %s %s (%s)", r.Version, r.Revision, r.Go)), " "))
			})
		},
	}
}

func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script for a shell",
		Example: `  source <(jig completion bash)
  jig completion zsh > "${fpath[1]}/_jig"
  jig completion fish > ~/.config/fish/completions/jig.fish
  jig completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(out, true)
			case "zsh":
				err = root.GenZshCompletion(out)
			case "fish":
				err = root.GenFishCompletion(out, true)
			default:
				err = root.GenPowerShellCompletionWithDesc(out)
			}
			if err != nil {
				return fmt.Errorf("write completion: %w", err)
			}
			return nil
		},
	}
}
