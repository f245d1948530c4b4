// Package telemetry writes OpenTelemetry traces of sessions: HTTP requests, passes, requests to models, calls and approvals, by the semantic
// conventions for generative AI. Spans cover work and never waiting: a span that others have as their parent marks a beginning, and an approval
// is two short spans that are linked, however many days lie between them. Nothing is written unless the environment names a collector.
//
// The ids of sessions, passes, approvals and of calls that have calls of their own are derived from the ids in jig. Each worker therefore knows
// the parents of its spans without asking anybody, and an activity that Temporal repeats writes the same span again.
package telemetry
