// Package setting reads the settings of a process from environment variables. It must not know what they mean.
package setting

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Reader reads settings and remembers which ones are wrong. Values are never part of an error, because they may be secrets.
type Reader struct {
	// Env holds the variables of the process, and Dev those of the file that jig-dev writes, which count less.
	Env, Dev map[string]string
	// wrong lists the names of wrong settings, and problems says the same in words.
	wrong, problems []string
}

// Err returns an error that names all settings that are wrong, or nil if none is.
func (r *Reader) Err() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s", strings.Join(r.problems, "; ")).WithField(r.wrong[0])
}

// Together returns all of some errors about settings as one; nil if there are none.
func Together(errs ...error) error {
	var all *jig.Error
	for _, err := range errs {
		if err == nil {
			continue
		}
		one := jig.AsError(err)
		if all == nil {
			all = one
			continue
		}
		all = all.Reworded("%s; %s", all.Words(), one.Words())
		if one.Hint != "" && one.Hint != all.Hint {
			all = all.WithHint(strings.TrimPrefix(all.Hint+"; "+one.Hint, "; "))
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// Text returns a variable, or otherwise if it is not set.
func (r *Reader) Text(name, otherwise string) string {
	for _, v := range []string{r.Env[name], r.Dev[name]} {
		if v != "" {
			return v
		}
	}
	return otherwise
}

// List returns the values between the commas of a variable.
func (r *Reader) List(name string) []string {
	var list []string
	for _, one := range strings.Split(r.Text(name, ""), ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// Refuse records that a variable does not have the form that is wanted.
func (r *Reader) Refuse(name, want string) {
	r.wrong = append(r.wrong, name)
	r.problems = append(r.problems, name+" is not "+want)
}

// Number returns a whole number of at least 1.
func (r *Reader) Number(name string, otherwise int) int {
	return read(r, name, otherwise, "a whole number of at least 1", strconv.Atoi, func(n int) bool { return n >= 1 })
}

// Count returns a whole number of at least 0.
func (r *Reader) Count(name string, otherwise int) int {
	return read(r, name, otherwise, "a whole number of at least 0", strconv.Atoi, func(n int) bool { return n >= 0 })
}

// Duration returns a duration such as 20s.
func (r *Reader) Duration(name string, otherwise time.Duration) time.Duration {
	return read(r, name, otherwise, "a duration such as 20s or 1m", time.ParseDuration, func(d time.Duration) bool { return d >= 0 })
}

// Flag returns true or false; a variable that is not set is false.
func (r *Reader) Flag(name string) bool {
	return read(r, name, false, "true or false", strconv.ParseBool, func(bool) bool { return true })
}

// read parses a variable, or returns otherwise if it is not set. It records what is wanted if the value cannot be parsed or does not fit.
func read[T any](r *Reader, name string, otherwise T, want string, parse func(string) (T, error), fits func(T) bool) T {
	text := r.Text(name, "")
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	if err != nil || !fits(v) {
		r.Refuse(name, want)
	}
	return v
}

// Choice returns one of the options, by default the first.
func (r *Reader) Choice(name string, options ...string) string {
	v := r.Text(name, options[0])
	if slices.Contains(options, v) {
		return v
	}
	r.Refuse(name, strings.Join(options, " or "))
	return options[0]
}

// Level returns the level of a log; the default is info.
func (r *Reader) Level(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(r.Choice(name, "info", "debug", "warn", "error"))) //nolint:errcheck // these are names of levels
	return level
}

// Table lists settings with their meanings, for help texts.
func Table(rows [][2]string) string {
	var b strings.Builder
	for _, row := range rows {
		_, _ = fmt.Fprintf(&b, "  %-24s %s\n", row[0], row[1])
	}
	return strings.TrimRight(b.String(), "\n")
}

// Logger returns a logger that writes to w from a level on, as JSON or as text.
func Logger(w io.Writer, level slog.Level, asJSON bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
