package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/workdir"
)

// maxCompared is the size of the largest file whose change is shown line by line.
const maxCompared = 1 << 20

// absent is the precondition of a preview that creates a file.
const absent = "a path without a file"

// previewWrite shows how the content of the file changes. It is bound to the content that it replaces.
func (f family) previewWrite(_ context.Context, inv jig.Invocation, in writeInput) (jig.Preview, error) {
	if err := checkSize(in); err != nil {
		return jig.Preview{}, err
	}
	dir, name, err := f.open(inv, in.Path)
	if err != nil {
		return jig.Preview{}, err
	}
	defer dir.Close()
	target, err := targetOf(dir, name)
	if err != nil {
		return jig.Preview{}, dir.Explain(name, err)
	}
	if target.name != name { // a symbolic link
		name += " → " + target.name
	}
	if !target.exists {
		return jig.Preview{
			Title:   fmt.Sprintf("Creates %s (%s)", name, bytesText(len(in.Content))),
			Changes: []string{preview.All(name, "+", in.Content)}, Precondition: absent,
		}, nil
	}
	before, state, err := contentOf(dir, target.name)
	if err != nil {
		return jig.Preview{}, dir.Explain(name, err)
	}
	p := jig.Preview{Title: fmt.Sprintf("Replaces %s (%s)", name, bytesText(len(in.Content))), Precondition: state}
	switch {
	case state == stateOf(strings.NewReader(in.Content)):
		p.Title = fmt.Sprintf("Changes nothing: %s has this content already", name)
	case !utf8.ValidString(before) || before == "" && target.size > 0:
		p.Changes = []string{fmt.Sprintf("%s: %d bytes (%s) are replaced", name, target.size, state), preview.All(name, "+", in.Content)}
	default:
		p.Changes = []string{preview.Diff(name, before, in.Content)}
	}
	return p, nil
}

// contentOf returns the content of a file and its state. The content of a large file is left out.
func contentOf(dir *workdir.Dir, target string) (content, state string, err error) {
	file, size, err := dir.Regular(target)
	if errors.Is(err, fs.ErrNotExist) || jig.CodeOf(err) == jig.CodeNotFound {
		return "", absent, nil
	}
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	if size > maxCompared {
		h := sha256.New()
		if _, err := io.Copy(h, file); err != nil {
			return "", "", fmt.Errorf("read %s: %w", target, err)
		}
		return "", hashed(h), nil
	}
	whole, err := io.ReadAll(file)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", target, err)
	}
	return string(whole), stateOf(strings.NewReader(string(whole))), nil
}

// stateOf names the content of a file.
func stateOf(content io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return ""
	}
	return hashed(h)
}

// hashed formats the hash of a file's content, to follow "acts only on".
func hashed(h hash.Hash) string { return "content with SHA-256 " + hex.EncodeToString(h.Sum(nil)) }

// unchanged returns CONFLICT if the file's content does not match the precondition. done reports that an earlier attempt has already written
// the new content.
func unchanged(dir *workdir.Dir, name, target, precondition string, content []byte) (done bool, err error) {
	if precondition == "" {
		return false, nil
	}
	_, now, err := contentOf(dir, target)
	switch {
	case err != nil:
		return false, err
	case now == precondition:
		return false, nil
	case now == stateOf(strings.NewReader(string(content))):
		return true, nil
	}
	return false, jig.Errorf(jig.CodeConflict, "%q has changed since people saw what the call would change", name).WithField("/path").
		WithReason("precondition").WithHint("read the file and call again")
}
