// Command agentdojo measures the data flow guard with the tasks of the AgentDojo benchmark, without a model: it replays the recorded calls of
// every user task, alone and with every injection, and counts what the guard stops and what it asks about. The calls go through jig's own
// activities and a real database. The benchmark's data is not part of jig; its folder is the program's argument.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/jig-run/jig/internal/store"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agentdojo:", err)
		os.Exit(1)
	}
}

// run measures the data set in the folder that args name, and writes the tables.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("agentdojo", flag.ContinueOnError)
	list := flags.Bool("list", false, "measure as recorded only, and list every approval and every injected call that ran")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // says what is wrong
	}
	if flags.NArg() != 1 {
		return errors.New("usage: agentdojo [-list] FOLDER")
	}
	suites, err := load(flags.Arg(0))
	if err != nil {
		return err
	}
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, v := range variants() {
		rows, err := measure(ctx, db, v, suites, log(*list, out))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, table(v.title, rows)); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
		if *list {
			break
		}
	}
	return nil
}

// log returns where approvals are listed, or nil.
func log(list bool, out io.Writer) io.Writer {
	if list {
		return out
	}
	return nil
}

// measure measures every suite in one way.
func measure(ctx context.Context, db *store.DB, v variant, suites []suite, log io.Writer) ([]row, error) {
	rows := make([]row, 0, len(suites))
	for i := range suites {
		e, err := newEngine(db, &suites[i], v.strict)
		if err != nil {
			return nil, err
		}
		m := meter{variant: v, suite: &suites[i], engine: e, log: log, row: row{name: suites[i].name}}
		if err := m.measure(ctx); err != nil {
			return nil, err
		}
		rows = append(rows, m.row)
	}
	return rows, nil
}
