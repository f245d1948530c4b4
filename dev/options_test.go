package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/stack"
)

// Servers that only this process and its child use run beside those of another jig-dev.
func TestHide_ChoosesFreePorts(t *testing.T) {
	t.Parallel()
	given := options{pgPort: 5433, stack: stack.Options{TemporalAddress: "127.0.0.1:7233", UIAddress: "127.0.0.1:8233"}}
	o := given
	o.hide(func(string) bool { return false })
	require.Equal(t, options{private: true, stack: stack.Options{TemporalAddress: anyPort, UIAddress: anyPort}}, o)

	o = given
	o.hide(func(string) bool { return true })
	given.private = true
	require.Equal(t, given, o, "what the user has given is used, or reported as taken")
}

// The program is called jig-dev, also in its help.
func TestHelp_NamesTheProgram(t *testing.T) {
	t.Parallel()
	root := command()
	for _, cmd := range append(root.Commands(), root) {
		require.Regexp(t, "^jig-dev\\b", cmd.CommandPath())
		for line := range strings.Lines(cmd.Example) {
			require.Regexp(t, `^  (\w+=\S+ )*jig-dev\b`, line)
		}
	}
	require.Equal(t, "(devel)", root.Version, "only a release has a version")
}
