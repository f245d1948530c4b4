package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/spec"
)

// Exit codes; the help of the root command explains them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitWaiting     = 3
	exitDenied      = 4
	exitInterrupted = 130
)

// exitError ends the program with an exit code. If err is nil, the program prints no error.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as a mistake in the program's arguments or settings.
func usage(err error) error { return &exitError{code: exitUsage, err: err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// isUsage reports whether an error is a mistake in what the user gave.
func isUsage(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == exitUsage
}

// silent ends the program with an exit code and without a message.
func silent(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code: code}
}

func isSilent(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.err == nil
}

// exit prints an error on stderr, as text or as one JSON document, and returns the exit code.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) || errors.Is(err, errAborted) {
		return exitInterrupted
	}
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return exit.code
	}
	if a.json() {
		a.complainJSON(err)
	} else {
		a.complain(err)
	}
	if exit != nil {
		return exit.code
	}
	return exitOf(jig.AsError(err))
}

func exitOf(e *jig.Error) int {
	switch {
	case e.Reason == client.ReasonNoTemporal, e.Reason == client.ReasonTemporalRefused, e.Reason == remote.ReasonNoServer:
		return exitUsage
	case e.Code == jig.CodeDenied, e.Code == jig.CodeExpired:
		return exitDenied
	default:
		return exitFailed
	}
}

// complain prints an error for a person: what is wrong, where, and what may help.
func (a *app) complain(err error) {
	var problems spec.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			a.say("%s", safeText(p.String()))
		}
		a.say("%s %s", a.err.red("error:"), countProblems(problems))
		return
	}
	e := reported(err)
	a.say("%s %s", a.err.red("error:"), safeText(e.Message))
	if len(e.Violations) > 1 {
		for _, v := range e.Violations {
			a.say("  %s: %s", oneLine(v.Pointer, 0), safeText(v.Message))
		}
	}
	if e.Hint != "" {
		a.say("%s %s", a.err.dim("hint:"), safeText(e.Hint))
	}
}

// errorReport is the JSON that a failing command prints as the last line on stderr.
type errorReport struct {
	Error *jig.Error `json:"error"`
}

func (a *app) complainJSON(err error) {
	b, failed := jsontext.Encode(errorReport{Error: reported(err)})
	if failed != nil { // cannot happen: an error consists of strings
		a.complain(err)
		return
	}
	a.say("%s", b)
}

// reported converts an error to the form in which it is printed. A mistake in the arguments or settings is INVALID_INPUT.
func reported(err error) *jig.Error {
	var e *jig.Error
	if !errors.As(err, &e) || e.Message == "" {
		code := jig.CodeInternal
		if isUsage(err) {
			code = jig.CodeInvalidInput
		}
		return &jig.Error{Code: code, Message: strings.TrimSpace(err.Error()), Cause: err}
	}
	copied := *e
	var problems spec.Problems
	if errors.As(err, &problems) {
		copied.Message = countProblems(problems)
	}
	return &copied
}

// countProblems summarizes the number of errors and warnings in documents.
func countProblems(problems spec.Problems) string {
	errs := len(problems.Errors())
	text := plural(errs, "error", "errors")
	if warnings := len(problems) - errs; warnings > 0 {
		text += ", " + plural(warnings, "warning", "warnings")
	}
	var documents []string
	for _, p := range problems.Errors() {
		if !slices.Contains(documents, p.Document) {
			documents = append(documents, p.Document)
		}
	}
	if len(documents) == 1 {
		return text + " in " + documents[0]
	}
	return text + " in " + plural(len(documents), "document", "documents")
}

// say prints a line for people on stderr.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

// fileExists reports whether path is an existing file and not a folder.
func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
