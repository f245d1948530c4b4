package starter

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
)

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

// section adds commands to root, in a section of the help with its own title.
func section(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}
