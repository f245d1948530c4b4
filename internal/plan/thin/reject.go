package thin

import (
	"context"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// codeOf returns the code for a reason. Other reasons, which the tool's author defines, get INVALID_INPUT.
func codeOf(reason string) jig.Code {
	switch reason {
	case jig.ReasonBundleNotInstalled, jig.ReasonWorkspaceViolation:
		return jig.CodeNotPermitted
	case jig.ReasonEngagementNotFound:
		return jig.CodeNotFound
	case jig.ReasonInsufficientGraph:
		return jig.CodeConflict
	}
	return jig.CodeInvalidInput
}

// reject returns a rejection with a reason. Rejected calls have no effect.
func reject(reason, at, hint, format string, args ...any) *jig.Error {
	if reason == jig.ReasonIDORViolation { // the audit records it, but callers must not learn of it
		reason = jig.ReasonEngagementNotFound
	}
	return jig.Errorf(codeOf(reason), format, args...).WithReason(reason).WithField(at).WithHint(hint)
}

// unfound is the minimum time before a call answers that an id was not found. It exceeds the time that the lookup and the audit row for an
// id of another tenant take, so that the response time does not reveal whether the id exists there.
const unfound = 50 * time.Millisecond

// notFound returns the same error for ids that do not exist, that belong to another tenant, that have another type, or that may not be read.
// The message names only the first id.
func (r *run) notFound(ctx context.Context, at, kind string, ids ...string) error {
	over := time.NewTimer(unfound)
	defer over.Stop()
	if !r.previews { // the attempt itself records it
		if err := r.records.Trespassed(ctx, r.inv, ids); err != nil {
			return err
		}
	}
	select {
	case <-over.C:
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the path that runs every tool turns it into a time-out or a cancellation
	}
	return reject(jig.ReasonEngagementNotFound, at, "give the id of one that you may read; entities.search and entities.filter find them",
		"there is no %s %q", kind, jig.Cut(ids[0], 80))
}

// fault returns the error of an expression that could not be evaluated for this call.
func fault(at string, err error) error {
	e := *jig.AsError(err)
	if e.Code == jig.CodeTimeout || e.Code == jig.CodeCanceled || e.Code == jig.CodeUnavailable {
		return &e
	}
	if e.Field != "" {
		at += "." + e.Field
	}
	e.Code, e.Field = jig.CodeInvalidInput, at
	if e.Hint == "" {
		e.Hint = "the tool computes it from the input and the entities that the input names: check these, and " + at + " in the tool's document"
	}
	return &e
}

// blamed adds the place in the document, and a hint about what to do, to an error about the entity to create.
func blamed(err error) error {
	e := *jig.AsError(err)
	if e.Code != jig.CodeInvalidInput {
		return err
	}
	e.Field = strings.ReplaceAll(e.Field, "/", ".")
	if e.Hint == "" {
		e.Hint = "the tool computes it from the input: check the input, and " + e.Field + " in the tool's document"
	}
	return &e
}
