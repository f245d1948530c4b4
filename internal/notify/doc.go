// Package notify sends notices about approvals to people: as a line in the log, as messages to a tenant's webhooks in the Standard
// Webhooks format (https://www.standardwebhooks.com), and as mail and messages in chats. Notices come from an outbox that is written in
// the same transactions as the changes that the notices report. Each target gets each notice at least once.
//
// The package does not depend on the database or on how settings are stored; callers pass in both. It does not decide which changes
// cause a notice.
package notify
