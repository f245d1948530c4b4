package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logger passes the server's warnings and errors on to slog. After a fatal error it reports the error and ends the goroutine; the
// server's own logger would end the process.
type logger struct {
	slog  *slog.Logger
	fatal func(error)
}

var (
	_ log.Logger     = logger{}
	_ log.WithLogger = logger{}
)

// With adds tags to everything that is logged.
func (l logger) With(tags ...tag.Tag) log.Logger {
	return logger{slog: slog.New(l.slog.Handler().WithAttrs(attributes(tags))), fatal: l.fatal}
}

// Debug drops the message.
func (l logger) Debug(string, ...tag.Tag) {}

// Info drops the message.
func (l logger) Info(string, ...tag.Tag) {}

// Warn logs a warning.
func (l logger) Warn(msg string, tags ...tag.Tag) { l.write(slog.LevelWarn, msg, tags) }

// Error logs an error.
func (l logger) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic logs an error.
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic logs an error and panics, as the server expects.
func (l logger) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal reports the error and ends the goroutine; it must not return.
func (l logger) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	err := fmt.Errorf("the Temporal server failed: %s", msg)
	for _, t := range tags {
		if cause, ok := t.Value().(string); ok && t.Key() == "error" {
			err = fmt.Errorf("%w: %s", err, cause)
		}
	}
	l.fatal(err)
	runtime.Goexit()
}

// write logs one message.
func (l logger) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background() //nolint:forbidigo // the server's logger gets no context
	if l.slog.Enabled(ctx, level) {
		l.slog.LogAttrs(ctx, level, msg, attributes(tags)...) //nolint:sloglint // the message is Temporal's
	}
}

// attributes converts tags to slog attributes. It leaves out stack traces, which would fill the log while the database is down.
func attributes(tags []tag.Tag) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		if t.Key() != "stacktrace" && t.Key() != "sys-stack-trace" {
			attrs = append(attrs, slog.Any(t.Key(), t.Value()))
		}
	}
	return attrs
}
