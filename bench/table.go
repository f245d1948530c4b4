package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// verdict says whether a target was met.
type verdict string

const (
	met       verdict = "met"
	missed    verdict = "**missed**"
	notJudged verdict = "–"
)

func judge(reached bool) verdict {
	if reached {
		return met
	}
	return missed
}

// row is a row of the table.
type row struct {
	id, figure, target, jig, baseline, ratio string
	verdict                                  verdict
}

// String formats the row for people who watch the progress.
func (r row) String() string {
	return strings.Join([]string{r.id, r.figure, "target " + r.target, r.jig, "baseline " + r.baseline, "ratio " + r.ratio, string(r.verdict)}, " | ")
}

// table formats the rows as a Markdown table.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| id | figure | target | jig | baseline | ratio | verdict |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		cells := []string{r.id, r.figure, r.target, r.jig, r.baseline, r.ratio, string(r.verdict)}
		for i, c := range cells {
			if c == "" {
				cells[i] = "–"
			}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// Every run replaces the text between these lines of the document.
const (
	beginMarker = "<!-- bench: begin -->"
	endMarker   = "<!-- bench: end -->"
)

// writeDocument puts a report between the markers of a document. If the document does not exist, it creates it.
func writeDocument(path, report string) error {
	old, err := os.ReadFile(path) //nolint:gosec // the user names the path
	if errors.Is(err, os.ErrNotExist) {
		old, err = []byte("# Benchmarks\n\n"+beginMarker+"\n"+endMarker+"\n"), nil
	}
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	head, rest, begun := strings.Cut(string(old), beginMarker)
	_, tail, ended := strings.Cut(rest, endMarker)
	if !begun || !ended {
		return fmt.Errorf("%s lacks the lines %q and %q", path, beginMarker, endMarker)
	}
	whole := head + beginMarker + "\n" + report + endMarker + tail
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil { //nolint:gosec // the document is public
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}
