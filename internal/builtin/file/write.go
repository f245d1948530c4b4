package file

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/workdir"
)

// maxLinks is the number of symbolic links that are followed in a row.
const maxLinks = 8

type writeInput struct {
	Path    string `json:"path"    jsonschema:"file to write, relative to the working directory; its folders are created" minLength:"1" maxLength:"4096" path:"true"`
	Content string `json:"content" jsonschema:"the whole new content, at most 10 MiB"`
}

type writeOutput struct {
	Path    string `json:"path"    jsonschema:"the file, relative to the working directory"`
	Bytes   int    `json:"bytes"   jsonschema:"how many bytes were written"`
	Created bool   `json:"created" jsonschema:"there was no such file before"`
}

// Summary implements tools.Summarizer.
func (o writeOutput) Summary() string {
	if o.Created {
		return fmt.Sprintf("created %s (%s)", o.Path, bytesText(o.Bytes))
	}
	return fmt.Sprintf("replaced %s (%s)", o.Path, bytesText(o.Bytes))
}

// bytesText returns a number of bytes in words.
func bytesText(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func (f family) write(ctx context.Context, inv jig.Invocation, in writeInput) (writeOutput, error) {
	out, err := f.save(ctx, inv, in)
	if err != nil {
		failed := *jig.AsError(err)
		failed.NotExecuted = true // nothing can fail after the rename
		return out, &failed
	}
	return out, nil
}

func checkSize(in writeInput) error {
	if len(in.Content) > MaxWriteBytes {
		return jig.Errorf(jig.CodeInvalidInput, "the content has %d bytes, at most %d are allowed", len(in.Content), MaxWriteBytes).
			WithField("/content")
	}
	return nil
}

func (f family) save(ctx context.Context, inv jig.Invocation, in writeInput) (writeOutput, error) {
	if err := checkSize(in); err != nil {
		return writeOutput{}, err
	}
	dir, name, err := f.open(inv, in.Path)
	if err != nil {
		return writeOutput{}, err
	}
	defer dir.Close()
	created, err := write(ctx, dir, name, []byte(in.Content), inv.Precondition)
	if err != nil {
		return writeOutput{}, dir.Explain(name, err)
	}
	return writeOutput{Path: name, Bytes: len(in.Content), Created: created}, nil
}

// place is where a write goes.
type place struct {
	name   string
	mode   fs.FileMode
	size   int64
	exists bool
}

// targetOf returns the regular file that a name leads to, which need not exist.
func targetOf(dir *workdir.Dir, name string) (place, error) {
	target, err := resolve(dir, name)
	if err != nil {
		return place{}, err
	}
	if workdir.Holds(target, ".git") {
		return place{}, jig.Errorf(jig.CodeNotPermitted, "%q belongs to git; what is written there could run as code", name).
			WithField("/path").WithReason("protected_path")
	}
	info, err := dir.Stat(target)
	switch {
	case err == nil && info.IsDir():
		return place{}, jig.Errorf(jig.CodeInvalidInput, "%q is a folder", name).WithField("/path").WithReason("is_a_directory").
			WithHint("name a file in it")
	case err == nil && !info.Mode().IsRegular():
		return place{}, jig.Errorf(jig.CodeInvalidInput, "%q is not a regular file", name).WithField("/path").WithReason("special_file")
	case err == nil:
		return place{name: target, mode: info.Mode().Perm(), size: info.Size(), exists: true}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return place{}, err //nolint:wrapcheck // the caller passes it to Explain
	}
	return place{name: target, mode: 0o644}, nil
}

// write replaces the file atomically and reports whether the file is new. It returns CONFLICT if the file's content does not match the
// precondition.
func write(ctx context.Context, dir *workdir.Dir, name string, content []byte, precondition string) (bool, error) {
	target, err := targetOf(dir, name)
	if err != nil {
		return false, err
	}
	if done, err := unchanged(dir, name, target.name, precondition, content); err != nil || done {
		return precondition == absent, err
	}
	folder := path.Dir(target.name)
	if err := dir.MkdirAll(folder, 0o755); err != nil {
		return false, err //nolint:wrapcheck // the caller passes it to Explain
	}
	if err := ctx.Err(); err != nil {
		return false, err //nolint:wrapcheck // the caller passes it to Explain
	}
	locked, err := dir.Open(folder)
	if err != nil {
		return false, err //nolint:wrapcheck // the caller passes it to Explain
	}
	defer locked.Close()
	if err := lock(locked); err != nil && precondition != "" { // without the lock, another call could come between the check and the write
		return false, jig.Errorf(jig.CodeUnavailable, "the folder of %q cannot be locked: %w", name, err).WithField("/path")
	}
	done, err := unchanged(dir, name, target.name, precondition, content)
	if err != nil || done {
		return precondition == absent, err
	}
	return !target.exists, replace(dir, folder, target.name, target.mode, content)
}

// resolve follows symbolic links to the target file, so that a link stays a link.
func resolve(dir *workdir.Dir, name string) (string, error) {
	for range maxLinks {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode()&fs.ModeSymlink == 0) {
			return name, nil
		}
		if err != nil {
			return "", err //nolint:wrapcheck // the caller passes it to Explain
		}
		link, err := dir.Readlink(name)
		if err != nil {
			return "", err //nolint:wrapcheck // the caller passes it to Explain
		}
		if !path.IsAbs(link) {
			link = path.Join(path.Dir(name), link)
		}
		if name, err = dir.Clean(link); err != nil {
			return "", err
		}
	}
	return "", jig.Errorf(jig.CodeInvalidInput, "%q is a chain of too many symbolic links", name).WithField("/path")
}

// replace writes a temporary file next to the target, syncs it, and renames it over the target.
func replace(dir *workdir.Dir, folder, target string, mode fs.FileMode, content []byte) (err error) {
	temporary := path.Join(folder, ".jig-"+rand.Text()+".tmp")
	file, err := dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err //nolint:wrapcheck // the caller passes it to Explain
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temporary))
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode) // the umask may have cleared some bits
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := dir.Rename(temporary, target); err != nil {
		return err //nolint:wrapcheck // the caller passes it to Explain
	}
	syncFolder(dir, folder)
	return nil
}

// syncFolder makes the rename durable where the file system supports it; where it does not, the error is ignored.
func syncFolder(dir *workdir.Dir, folder string) {
	f, err := dir.Open(folder)
	if err != nil {
		return
	}
	_ = f.Sync() //nolint:errcheck // not every file system can sync a folder
	_ = f.Close()
}

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
