package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/client"
)

// release is the version of a released program, e.g. v0.1.0. The linker sets it (scripts/release.sh).
var release string

func command() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "jig-dev [flags] [-- COMMAND [ARG…]]",
		Short: "Start PostgreSQL, Temporal, its Web UI, a worker and a server",
		Long: `Start PostgreSQL, Temporal, its Web UI, a worker and a server, until Ctrl-C. Data is stored in .jig/.

If JIG_DATABASE_OWNER_URL is set, its database is used. Otherwise an installed PostgreSQL is started, or a downloaded one.
The Temporal server lies beside a released jig-dev. Another one builds it at the first start, and keeps it in the user's cache directory.
If a COMMAND is given, it runs with the settings in its environment, and everything stops when it ends. With --ephemeral as well, the
servers get free ports, and dev.env stays as it is, so that it can run beside another jig-dev.`,
		Example: `  jig-dev
  jig-dev --fresh --temporal-addr 127.0.0.1:0 --ui-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --pg-port 0
  jig-dev --ephemeral --no-ui -- ./test.sh`,
		Version:       cmp.Or(release, "(devel)"),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.stack.Ephemeral && len(args) > 0 {
				o.hide(cmd.Flags().Changed)
			}
			return o.up(cmd.Context(), args)
		},
	}
	o.flags(root)
	root.AddCommand(demoCommand(o))
	return root
}

// up runs everything until the context ends, a part fails, or the given command has ended.
func (o *options) up(ctx context.Context, args []string) error {
	r, err := o.start(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		return errors.Join(within(ctx, r, args), r.stop(ctx))
	}
	o.announce(r)
	select {
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "\nstopping")
		err = nil
	case err = <-r.Failed():
	case err = <-r.broken():
	case err = <-r.unserved():
	}
	return errors.Join(err, r.stop(ctx))
}

// within runs a command with the settings of the running servers. An interrupt goes to the command, which decides how to end.
func within(ctx context.Context, r *running, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is the user's command
	cmd.Env = append(os.Environ(), r.Environment()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// writeEnv writes the environment variables to a file, atomically, so that other programs can read them.
func writeEnv(dir string, environment []string) error {
	file, err := os.CreateTemp(dir, "dev.env.*")
	if err != nil {
		return fmt.Errorf("write dev.env: %w", err)
	}
	_, err = file.WriteString(strings.Join(environment, "\n") + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, "dev.env"))
	}
	if err != nil {
		return fmt.Errorf("write dev.env: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// sessionsQuery lists one row for each session: no workflows that jig starts for a session's calls, and no earlier runs.
// The Web UI shows a query as filters, and shows "!=" as "=".
const sessionsQuery = `JigStatus IS NOT NULL AND ExecutionStatus IN ("Running","Completed","Failed","Canceled","Terminated","TimedOut")`

// announce prints the addresses of the servers and what to try first.
func (o *options) announce(r *running) {
	var b strings.Builder
	fmt.Fprintf(&b, "\njig is ready\n\n  Temporal    %s (namespace %s)\n", r.TemporalAddress(), r.Namespace())
	if ui := r.UIAddress(); ui != "" {
		fmt.Fprintf(&b, "  Web UI      %s\n  sessions    %s/namespaces/%s/workflows?query=%s\n", ui, ui, r.Namespace(), url.QueryEscape(sessionsQuery))
	}
	if r.server != nil {
		fmt.Fprintf(&b, "  HTTP API    %[1]s\n  log in      %[1]s/v1/login (development: everybody may be anybody)\n", r.server.URL())
	}
	fmt.Fprintf(&b, "  settings    %s\n", filepath.Join(r.DataDir(), "dev.env"))
	jig, built := "go run ./cmd/jig", besides()
	if built != "" {
		jig = "jig"
	}
	if o.noWorker {
		fmt.Fprintf(&b, "  worker      none: start one with `%s worker`\n", jig)
	}
	b.WriteString("\nTry in another terminal:\n\n")
	if built != "" {
		fmt.Fprintf(&b, "  export PATH=%q:\"$PATH\"\n", filepath.Dir(built))
	}
	if r.TemporalAddress() != client.DefaultAddress {
		fmt.Fprintf(&b, "  export TEMPORAL_ADDRESS=%s\n", r.TemporalAddress())
	}
	if r.Namespace() != client.DefaultNamespace {
		fmt.Fprintf(&b, "  export TEMPORAL_NAMESPACE=%s\n", r.Namespace())
	}
	fmt.Fprintf(&b, `  %[1]s run dependency-review --input path=go.mod --follow
  %[1]s trigger review.start --input module=.
  %[1]s approvals
  temporal workflow list --query 'JigStatus="input_required" AND ExecutionStatus="Running"'

Ctrl-C stops everything.
`, jig)
	fmt.Fprint(os.Stderr, b.String())
}
