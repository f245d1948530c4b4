// Package meter asks models within the budgets of tenants: it reserves the most that a request may cost, asks the model, and charges what the
// answer really used. It does the same for calls of tools that have a price.
package meter
