package starter

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// versionReport describes the build of this program.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func buildVersion() versionReport {
	r := versionReport{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if info.Main.Version != "" {
		r.Version = info.Main.Version
	}
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
			if a.json() {
				return a.printJSON(r)
			}
			return a.print("%s", strings.Join(strings.Fields(fmt.Sprintf("jig %s %s (%s)", r.Version, r.Revision, r.Go)), " "))
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
