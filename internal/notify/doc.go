// Package notify sends notices about approvals to people: as a line in the log, as messages to a tenant's webhooks in the Standard
// Webhooks format (https://www.standardwebhooks.com), and as mail and messages in chats.
//
// Notices come from an [Outbox] that is written in the same transactions as the changes that the notices report. A [Dispatcher] opens a
// delivery of each notice for each receiver, sends it, and retries with growing waits. Each receiver gets each notice at least once, with
// the same id each time. A receiver that fails or is slow does not delay the others.
//
// The package does not depend on the database or on how settings are stored; callers pass in both. It does not decide which changes
// cause a notice. Begin with dispatcher.go.
package notify
