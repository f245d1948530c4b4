// Package notify tells people who are not looking about approvals: with a line in the log and with messages to a tenant's webhooks
// in the Standard Webhooks format (https://www.standardwebhooks.com). Notices come from an outbox that is written in the same
// transactions as the changes that the notices report. Each target gets each notice at least once.
//
// The package knows nothing of databases or of how settings are stored; both are passed in. It does not decide what is worth a
// notice.
package notify
