// Package alerts checks the alert rules and the dashboard in deploy with Prometheus' own parser and engine. It is a module of its own, which
// imports nothing from jig, so that no other module depends on Prometheus. It contains only tests.
package alerts
