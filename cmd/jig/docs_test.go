package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// spans matches code spans that begin with the command; code blocks are recognized by their fences. nested matches a command that supplies
// an argument of another one.
var (
	spans  = regexp.MustCompile("`(?:\\$ )?jig ([^`]+)`")
	nested = regexp.MustCompile(`"?\$\(jig ([^)]*)\)"?`)
)

// documentedCommands returns the command lines in a Markdown text, without the word jig, and the number of the line that each is on.
func documentedCommands(text string) map[string]int {
	found := map[string]int{}
	block, continued := false, ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			block, continued = !block, ""
			continue
		}
		if !block {
			for _, m := range spans.FindAllStringSubmatch(line, -1) {
				found[m[1]] = number
			}
			continue
		}
		line = continued + strings.TrimSpace(line)
		if rest, more := strings.CutSuffix(line, "\\"); more {
			continued = rest
			continue
		}
		continued = ""
		for _, m := range nested.FindAllStringSubmatch(line, -1) {
			found[m[1]] = number
		}
		line = nested.ReplaceAllString(line, "…")
		for _, part := range regexp.MustCompile(`\s(?:\|\|?|&&|;)\s`).Split(line, -1) {
			if rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(part), "$ "), "jig "); ok {
				found[rest] = number
			}
		}
	}
	return found
}

// Every command in the documentation exists, with the flags that the documentation uses.
func TestDocumentation_CommandsExist(t *testing.T) {
	t.Parallel()
	const root = "../.."
	checked, wrong := 0, []string{}
	require.NoError(t, filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(file) != ".md" || e.Name() == "CHANGELOG.md" || strings.Contains(filepath.ToSlash(file), "docs/decisions/"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line, number := range documentedCommands(string(text)) {
			checked++
			if why := wrongCommand(line); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s:%d: jig %s: %s", filepath.ToSlash(file), number, line, why))
			}
		}
		return nil
	}))
	require.Empty(t, wrong)
	require.Greater(t, checked, 100)
}

// wrongCommand says what is wrong with a command line; "" if nothing is.
func wrongCommand(line string) string {
	root := program(nil, nil, nil, "jig").Command()
	line, _, _ = strings.Cut(line, " #")
	at, named, skip := root, false, false
	for _, word := range strings.Fields(line) {
		word = strings.Trim(word, "[](){}'\",.…")
		if skip { // this word is the value of a flag
			skip = false
			continue
		}
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
			name, _, given := strings.Cut(name, "=")
			known, wantsValue := flagOf(at, name)
			if !known && name != "" {
				return "there is no flag --" + name + " of " + at.CommandPath()
			}
			skip = wantsValue && !given
			continue
		}
		if named || word == "" || !at.HasSubCommands() {
			continue
		}
		next, _, err := at.Find([]string{word})
		switch {
		case err == nil && next != at:
			at = next
		case at != root && at.Runnable() && at.ValidateArgs([]string{word}) == nil:
			named = true
		default:
			return "there is no command " + at.CommandPath() + " " + word
		}
	}
	return ""
}

// flagOf reports whether a command has a flag, and whether the flag takes a value.
func flagOf(cmd *cobra.Command, name string) (known, wantsValue bool) {
	cmd.InitDefaultHelpFlag()
	flag := cmd.Flags().Lookup(name)
	if flag == nil {
		flag = cmd.InheritedFlags().Lookup(name)
	}
	if flag == nil {
		flag = cmd.PersistentFlags().Lookup(name)
	}
	return flag != nil, flag != nil && flag.NoOptDefVal == ""
}

func TestCommands_HaveExamples(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		require.NotEmpty(t, c.Example, c.CommandPath())
		require.NotEmpty(t, c.Short, c.CommandPath())
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(program(nil, nil, nil, "jig").Command())
}

func TestDocumentation_WrongCommandsAreFound(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"approvals": "", "approve ses_1 3.1 --note fine": "", "approvals show SESSION CALL": "", "--help": "", "mark-restored --dry-run": "", "worker": "",
		"aprove ses_1": "no command", "approvals shwo": "no command", "grant nothing": "no command", "run x --nothing": "no flag --nothing",
	} {
		if want == "" {
			require.Empty(t, wrongCommand(line), line)
			continue
		}
		require.Contains(t, wrongCommand(line), want, line)
	}
}
