package protocol

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// MemoSummary is the memo field with the summary of a workflow. Temporal shows the summary proper only for the first run of a workflow; the memo
// passes from run to run.
const MemoSummary = "summary"

// Sizes of the texts about a session that Temporal's Web UI shows, in bytes.
const (
	// summaryBytes limits a summary.
	summaryBytes = 200
	// taskBytes limits the task that one run passes to the next.
	taskBytes = 1 << 10
)

// Summary returns the line that the Web UI shows for a workflow: the name of the agent or the tool, and the first line of the task.
func Summary(name, task string) string {
	task, _, _ = strings.Cut(strings.TrimSpace(task), "\n")
	if task != "" && name != "" {
		name += ": "
	}
	return jig.Cut(strings.TrimSpace(name+task), summaryBytes)
}

// Excerpt returns the beginning of a task, short enough to pass from run to run.
func Excerpt(task string) string { return jig.Cut(strings.TrimSpace(task), taskBytes) }

// Asked returns what the session was asked to do, for people to read: the task, and the input.
func (s StartSession) Asked() string { return asked(s.Task, s.Pairs, s.Input, s.InputArtifact) }

// Asked returns the input of the call, for people to read.
func (in CallInput) Asked() string { return asked("", in.Pairs, in.Input, in.InputArtifact) }

// asked joins a task and the parts of an input, each on lines of its own.
func asked(task string, pairs map[string]string, input json.RawMessage, artifact string) string {
	lines := []string{strings.TrimSpace(task)}
	words := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		words = append(words, key+"="+pairs[key])
	}
	lines = append(lines, strings.Join(words, " "))
	if text := compact(input); text != "null" && text != "{}" {
		lines = append(lines, text)
	}
	if artifact != "" {
		lines = append(lines, "input in artifact "+artifact)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// compact returns JSON on one line. Text that is not JSON is returned as it is.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
