package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// AnswerCommands returns the commands that the Web UI shows for a waiting call.
func AnswerCommands(sessionID string, p jig.Pending) []string {
	return answerCommands(sessionID, "", p)
}

// Described returns the text that the Web UI shows for a waiting call.
func Described(sessionID string, p jig.Pending) string {
	var b strings.Builder
	describe(&b, sessionID, "", []activities.CallRef{{ID: p.Call, Tool: p.Tool, Ask: &p}})
	return b.String()
}

// Ended returns the text that the Web UI shows for a session that has ended.
func Ended(task, answer string, e *jig.Error) string {
	s := &session{
		callTable: callTable{ref: protocol.SessionRef{SessionID: "ses_1"}}, agent: "probe", pass: 1, task: task, status: jig.StatusCompleted,
		settled: activities.Settled{Status: jig.StatusCompleted, Answer: answer, Error: e},
	}
	return s.details()
}

// Waits returns the text that the Web UI shows for a session whose composition reports waits.
func Waits(waits ...jig.Wait) string {
	s := &session{callTable: callTable{ref: protocol.SessionRef{SessionID: "ses_1"}, calls: []*call{{ref: activities.CallRef{ID: "1.1"}, running: true}}}, agent: jig.CallAgent, pass: 1, status: jig.StatusWorking}
	s.frames = []Waiting{{Call: "1.1", Waits: slices.DeleteFunc(waits, forgedWait)}}
	return s.details()
}

// Due returns the summary of the timer of a composition with these waits.
func Due(at time.Time, waits ...jig.Wait) string { return (&composition{waits: waits}).due(at) }

// Forged reports whether the session ignores a report of this waiting call from elsewhere.
func Forged(p jig.Pending) bool { return forged(activities.CallRef{ID: p.Call, Tool: p.Tool, Ask: &p}) }

// TimeoutRows returns the beginnings of rows that the table in docs/timeouts.md must have.
func TimeoutRows() []string {
	return []string{
		fmt.Sprintf("| model | one answer of a model provider (`Think`) | %s | %s | %d |", modelTimeout, heartbeatTimeout, modelAttempts),
		fmt.Sprintf("| quick model | one answer of a script, or of a model whose last ten answers took less than a second each, beside the workflow; then as class model | %s | none | 1 |", quickModelTimeout),
		fmt.Sprintf("| tool | one attempt of a tool, as an activity under the tool's name | the tool's `timeout` + %s | %s |", toolGrace, heartbeatTimeout),
		fmt.Sprintf("| database | bookkeeping: open, admit, hear, compose, settle, end | %s |", databaseTimeout),
	}
}
