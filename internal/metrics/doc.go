// Package metrics counts what a worker does and serves the counts to Prometheus. It has two kinds of metrics. Those of the process count
// what this process has stored, asked or sent since it started, so that the sum over all workers counts everything once. Those of the store
// describe what all workers share: open sessions, approvals, budgets, the backlog. Every worker reports the same, so take their maximum.
//
// A label has few values: those of a fixed list, or at most as many as a constant of this package says. Further values share the label
// (other).
package metrics
