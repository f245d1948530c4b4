package workflows

import "fmt"

// TimeoutRows are beginnings of rows that the table in docs/timeouts.md must have.
func TimeoutRows() []string {
	return []string{
		fmt.Sprintf("| model | one answer of a model provider (`Think`) | %s | %s | %d |", modelTimeout, heartbeatTimeout, modelAttempts),
		fmt.Sprintf("| tool | one attempt of a tool, as an activity under the tool's name | the tool's `timeout` + %s | %s |", toolGrace, heartbeatTimeout),
		fmt.Sprintf("| database | bookkeeping: open, admit, hear, compose, settle, end | %s |", databaseTimeout),
		fmt.Sprintf("| sweep | closing sessions that were ended from outside | %s | %s |", sweepTimeout, heartbeatTimeout),
	}
}
