// Package file contains the tools file.read, file.list, file.grep and file.write. They see only the working directory of the caller's
// tenant: neither .. nor a symbolic link leads out of it (package workdir), and jig's own folder is hidden.
//
// Reads are bounded in bytes and entries, and refuse what is not text. file.write replaces a whole file at once: it writes a temporary file in
// the same folder, syncs it and renames it. Its preview is bound to the content that it replaces, which is compared again under a lock.
package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools"
)

// The limits of the tools.
const (
	// MaxReadBytes is the size of the largest file that file.read and file.grep open.
	MaxReadBytes = 64 << 20
	// MaxWriteBytes is the maximum length of the content for file.write.
	MaxWriteBytes = 10 << 20
	// MaxEntries bounds the entries that file.list returns.
	MaxEntries = 1000
	// MaxMatches and MaxLineBytes bound the matches that file.grep returns and the length of each line.
	MaxMatches   = 200
	MaxLineBytes = 500
	// maxVisited bounds the entries that a recursive walk looks at.
	maxVisited = 200_000
)

// writeKey makes writes of one file run in order.
const writeKey = `'file ' + input.path`

// Options are the settings of the tools.
type Options struct {
	// Dirs are the working directories.
	Dirs workdir.Dirs
}

// Tools returns the tools of this package.
func Tools(options Options) []tools.Tool {
	f := family{dirs: options.Dirs}
	read := jig.Tool{
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Category: "file", Timeout: 30 * time.Second,
		Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate, jig.ReadsUntrusted}},
	}
	with := func(name, description string, tags ...string) jig.Tool {
		t := read
		t.Name, t.Description, t.Tags = name, description, tags
		return t
	}
	write := with("file.write", "Writes a whole text file in the working directory, creating it and its folders or replacing what it "+
		"held; the change appears at once or not at all. Use it to save a result for people. Not for appending or for changing a part: "+
		"read the file first and give its whole new content. Returns the path, the bytes written and whether the file is new.", "files", "write")
	write.ConcurrencyKey = writeKey
	write.Permission, write.Risk, write.Labels = jig.PermissionWrite, jig.RiskModerate, &jig.Labels{}
	return []tools.Tool{
		tools.New(with("file.read", "Reads a text file in the working directory. Use it when you know the path; to find files use file.list, to find "+
			"text in many files use file.grep. offset and limit are bytes; without them you get the first 256 KiB. Returns the content, the file's "+
			"whole size and whether there is more (truncated): then go on at offset plus the bytes you got. Binary files are refused.", "files"), f.read),
		tools.New(with("file.list", "Lists files and folders in the working directory, sorted by path, with type and size in bytes. Use it to find out "+
			"what is there; it does not read contents. glob filters by the path relative to `path`: *.go is this level, **/*.go any level. "+
			"Returns at most 1,000 entries (truncated says that there are more); .git is left out of recursive listings.", "files"), f.list),
		tools.New(with("file.grep", "Searches text files in the working directory for a regular expression (RE2: no look-around, no back-references), line "+
			"by line. Use it to find where something is said; to read around a match use file.read. Returns path, line number and line of at most 200 "+
			"matches, lines cut after 500 bytes; binary files, files over 64 MiB and .git are skipped.", "files", "search"), f.grep),
		tools.New(write, f.write, tools.WithPreview(f.previewWrite)),
	}
}

// family holds what the handlers share.
type family struct{ dirs workdir.Dirs }

// open opens the working directory of the caller's tenant, and returns a path that the caller gave as one within the directory.
func (f family) open(inv jig.Invocation, name string) (*workdir.Dir, string, error) {
	dir, err := f.dirs.Open(inv.Tenant)
	if err != nil {
		return nil, "", err
	}
	if name, err = dir.Clean(name); err != nil {
		_ = dir.Close()
		return nil, "", err
	}
	return dir, name, nil
}

// found is an entry of the working directory.
type found struct {
	path string
	dir  fs.DirEntry
}

// walk lists what is below start, without start itself: only the entries of start or, if recursive is set, everything except .git. It
// never visits .jig. If glob is set, it is matched against the path relative to start. Unreadable folders are skipped. The result reports
// whether walk stopped because there were too many entries.
func walk(ctx context.Context, dir *workdir.Dir, start string, recursive bool, glob string) ([]found, bool, error) {
	var wanted *pattern.Pattern
	if glob != "" {
		var err error
		if wanted, err = pattern.Glob(glob); err != nil {
			return nil, false, jig.Errorf(jig.CodeInvalidInput, "the glob cannot be used: %w", err).WithField("/glob").
				WithHint("use * within a name, ** for any folders, {a,b} and [a-z]")
		}
	}
	recursive = recursive || strings.Contains(glob, "/") || strings.Contains(glob, "**")
	var list []found
	visited := 0
	err := fs.WalkDir(dir.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == start {
			return err
		}
		if err != nil {
			return fs.SkipDir
		}
		if entry.IsDir() && strings.EqualFold(entry.Name(), ".git") && recursive {
			return fs.SkipDir
		}
		if strings.EqualFold(entry.Name(), workdir.Private) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if visited++; visited > maxVisited {
			return fs.SkipAll
		}
		relative := strings.TrimPrefix(name, start+"/")
		matches := wanted == nil
		if !matches {
			if matches, err = wanted.Match(ctx, []byte(relative)); err != nil {
				return err
			}
		}
		if matches {
			list = append(list, found{path: path.Clean(name), dir: entry})
		}
		if entry.IsDir() && !recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, fmt.Errorf("walk: %w", ctx.Err())
		}
		return nil, false, dir.Explain(start, err)
	}
	return list, visited > maxVisited, nil
}
