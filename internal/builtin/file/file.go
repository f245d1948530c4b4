// Package file contains the tools file.read, file.list, file.grep and file.write. They see only the working directory of the caller's
// tenant: neither .. nor a symbolic link leads out of it.
package file

import (
	"time"

	"github.com/jig-run/jig"
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
