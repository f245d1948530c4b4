// Package notify brings word of approvals to people who are not looking: a line in the log, and messages to a tenant's webhooks
// as Standard Webhooks has them (https://www.standardwebhooks.com). Notices come from an outbox that was written in the
// transactions that they tell of, and each target gets them at least once.
//
// It knows nothing of databases or of how settings are kept: both are given to it. It does not decide what is worth a notice.
package notify
