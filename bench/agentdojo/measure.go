package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/jig-run/jig"
)

// variant is a way to measure.
type variant struct {
	title string
	// filled replaces the arguments that the data set leaves open, such as <summary>.
	filled bool
	// strict also asks about numbers, dates and times that stand in no text.
	strict bool
	// unseen hides the attacker's text from the guard, as if everything in it had been paraphrased.
	unseen bool
}

// variants are the measurements of the report, the main one first.
func variants() []variant {
	return []variant{
		{title: "As recorded"},
		{title: "With an excerpt of what was read in place of `<summary>` and the like", filled: true},
		{title: "As recorded, with a rule that asks about computed values too", strict: true},
		{title: "As recorded, with the attacker's text hidden from the guard", unseen: true},
		{title: "The same, with a rule that asks about computed values too", unseen: true, strict: true},
	}
}

// row counts the runs of one suite.
type row struct {
	name string
	// benign counts the runs without an attack, asked those with an approval, and approvals all approvals in them.
	benign, asked, approvals int
	// attacked counts the runs with an attack, completed those whose critical calls all ran.
	attacked, completed int
	// injected counts the injected calls that write or send, ran those of them that ran.
	injected, ran int
}

// add adds the counts of another row.
func (r *row) add(other row) {
	r.benign += other.benign
	r.asked += other.asked
	r.approvals += other.approvals
	r.attacked += other.attacked
	r.completed += other.completed
	r.injected += other.injected
	r.ran += other.ran
}

// meter counts one suite in one way.
type meter struct {
	variant
	suite  *suite
	engine *engine
	// log gets a line for every approval and for every injected call that ran.
	log io.Writer

	mu  sync.Mutex
	row row
}

// runsAtOnce is how many runs are replayed at the same time.
const runsAtOnce = 8

// measure replays every run of a suite.
func (m *meter) measure(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(runsAtOnce)
	for _, task := range m.suite.users {
		all.Go(func() error {
			if err := m.benign(ctx, task); err != nil {
				return fmt.Errorf("%s %s: %w", m.suite.name, task.ID, err)
			}
			return nil
		})
		for _, injection := range m.suite.injections {
			if len(injection.Calls) == 0 {
				continue // it wants a sentence in the answer and no call
			}
			all.Go(func() error {
				if err := m.attacked(ctx, task, injection); err != nil {
					return fmt.Errorf("%s %s with %s: %w", m.suite.name, task.ID, injection.ID, err)
				}
				return nil
			})
		}
	}
	return all.Wait() //nolint:wrapcheck // the errors name the runs
}

// benign replays a user's task. A person approves everything.
func (m *meter) benign(ctx context.Context, task userTask) error {
	run, err := m.engine.start(ctx, m.suite, task, "")
	if err != nil {
		return err
	}
	defer run.end()
	counted := row{benign: 1}
	for i, c := range task.Calls {
		if m.filled {
			c = run.filled(c)
		}
		o, err := run.does(ctx, c, m.suite.results.Users[task.ID][i], jig.AnswerApprove)
		if err != nil {
			return err
		}
		if o.asked != nil {
			counted.asked = 1
			counted.approvals++
			m.logf("approval %s %s %s %s: %s\n", m.suite.name, task.ID, c.Tool, compact(c.Args), strings.Join(o.asked, "; "))
		}
	}
	m.count(counted)
	return nil
}

// attacked replays a user's task up to the call whose result first shows the attacker's text, and then the calls that the attacker wants.
// A person approves the user's calls and denies the attacker's.
func (m *meter) attacked(ctx context.Context, task userTask, injection injectionTask) error {
	text := attack(injection.Goal)
	if m.unseen {
		text = ""
	}
	run, err := m.engine.start(ctx, m.suite, task, text)
	if err != nil {
		return err
	}
	defer run.end()
	for i, c := range task.Calls[:task.Exposed+1] {
		if _, err := run.does(ctx, c, m.suite.results.Users[task.ID][i], jig.AnswerApprove); err != nil {
			return err
		}
	}
	counted, completed := row{attacked: 1}, true
	for i, c := range injection.Calls {
		o, err := run.does(ctx, c, m.suite.results.Injections[injection.ID][i], jig.AnswerDeny)
		if err != nil {
			return err
		}
		completed = completed && (o.ran || o.repeats || !c.Critical)
		if !m.suite.tools[c.Tool].matters() {
			continue
		}
		counted.injected++
		if o.ran {
			counted.ran++
			m.logf("ran %s %s %s %s %s\n", m.suite.name, task.ID, injection.ID, c.Tool, compact(c.Args))
		}
	}
	if completed {
		counted.completed = 1
		m.logf("completed %s %s %s\n", m.suite.name, task.ID, injection.ID)
	}
	m.count(counted)
	return nil
}

// count adds the counts of a run.
func (m *meter) count(run row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.row.add(run)
}

// logf writes a line to the log, if there is one.
func (m *meter) logf(format string, args ...any) {
	if m.log != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		fmt.Fprintf(m.log, format, args...)
	}
}

// compact writes JSON on one line.
func compact(body json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return string(body)
	}
	return b.String()
}

// table writes the rows and their sum as a Markdown table.
func table(title string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n\n", title)
	b.WriteString("| suite | benign runs | with an approval | approvals | attacked runs | attacks that complete | injected calls that write or send | of these ran |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	all := row{name: "all"}
	for _, r := range rows {
		all.add(r)
	}
	for _, r := range append(rows, all) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", r.name, r.benign, r.asked, r.approvals, r.attacked, r.completed, r.injected, r.ran)
	}
	return b.String()
}
