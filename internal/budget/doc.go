// Package budget holds the rules of budgets: prices, limits, and how much of them a call of a model or tool reserves. It does no I/O: the
// store keeps the counters, and package meter reads the documents.
package budget
