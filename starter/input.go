package starter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// maxInputBytes bounds the size of a document or an input that is read from a file.
const maxInputBytes = 32 << 20

// parseInputs reads the --input flags: key=value pairs and at most one JSON object, which is given literally, as @file, or as @- for
// standard input.
func (a *app) parseInputs(flags []string) (input json.RawMessage, pairs map[string]string, err error) {
	for _, flag := range flags {
		if strings.HasPrefix(flag, "@") || strings.HasPrefix(strings.TrimSpace(flag), "{") {
			if input != nil {
				return nil, nil, usagef("--input gives two JSON documents; give one, and key=value pairs if needed")
			}
			if input, err = a.jsonArgument("--input", flag); err != nil {
				return nil, nil, err
			}
			if !bytes.HasPrefix(input, []byte("{")) {
				return nil, nil, usagef("--input %s is not a JSON object", flag)
			}
			continue
		}
		k, v, ok := strings.Cut(flag, "=")
		if !ok || k == "" {
			return nil, nil, usagef("--input %q is neither key=value nor @file.json nor a JSON object", flag)
		}
		if !utf8.ValidString(flag) {
			return nil, nil, usagef("--input %q is not valid UTF-8", flag)
		}
		if _, twice := pairs[k]; twice {
			return nil, nil, usagef("--input gives %s twice; for a list write --input '{\"%s\": [\"…\", \"…\"]}'", k, k)
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[k] = v
	}
	return input, pairs, nil
}

// jsonArgument reads a JSON value that is given literally, as @file, or as @- for standard input.
func (a *app) jsonArgument(flag, value string) (json.RawMessage, error) {
	content := []byte(value)
	if name, ok := strings.CutPrefix(value, "@"); ok {
		var err error
		if content, err = a.readFile(name); err != nil {
			return nil, usage(fmt.Errorf("%s %s: %w", flag, value, err))
		}
	}
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if err := strictjson.Check(content); err != nil {
		return nil, unreadable(flag+" "+oneLine(value, 60)+" is not JSON", err)
	}
	return content, nil
}

// unreadable returns a usage error for a text that internal/strictjson refuses.
func unreadable(what string, err error) error {
	e := jig.AsError(err)
	return usage(jig.Errorf(e.Code, "%s: %s", what, e.Message).WithHint(e.Hint))
}

// readFile reads a file, or standard input if the name is "-".
func (a *app) readFile(name string) ([]byte, error) {
	r := a.stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, err //nolint:wrapcheck // the error names the file
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	content, err := io.ReadAll(io.LimitReader(r, maxInputBytes+1))
	if err != nil {
		var named *fs.PathError
		if errors.As(err, &named) { // the error names the file
			return nil, named
		}
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > maxInputBytes {
		return nil, fmt.Errorf("%s has more than %d MiB", name, maxInputBytes>>20)
	}
	return content, nil
}
