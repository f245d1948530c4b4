// Package limiter finds the limits that concern a call, from the documents of its tenant, and asks the store whether the call may begin.
package limiter
