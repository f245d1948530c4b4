package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
)

type readInput struct {
	Path   string `json:"path"             jsonschema:"file to read, relative to the working directory" minLength:"1"      maxLength:"4096" path:"true"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to begin at, from 0"                        minimum:"0"`
	Limit  int    `json:"limit,omitempty"  jsonschema:"bytes to return at most"                         minimum:"1"        maximum:"1048576" default:"262144"`
}

type readOutput struct {
	Path      string `json:"path"      jsonschema:"the file, relative to the working directory"`
	Content   string `json:"content"   jsonschema:"the text"`
	Size      int64  `json:"size"      jsonschema:"bytes of the whole file"`
	Truncated bool   `json:"truncated" jsonschema:"there is more after the content"`
}

// Summary implements tools.Summarizer.
func (o readOutput) Summary() string {
	if o.Truncated {
		return fmt.Sprintf("read %d of %d bytes of %s", len(o.Content), o.Size, o.Path)
	}
	return fmt.Sprintf("read %s (%s)", o.Path, bytesText(len(o.Content)))
}

func (f family) read(_ context.Context, inv jig.Invocation, in readInput) (readOutput, error) {
	var out readOutput
	dir, name, err := f.open(inv, in.Path)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	file, size, err := dir.Regular(name)
	if err != nil {
		return out, err
	}
	defer file.Close()
	switch {
	case size > MaxReadBytes:
		return out, jig.Errorf(jig.CodeInvalidInput, "%q has %d bytes, at most %d can be read", name, size, MaxReadBytes).
			WithField("/path").WithReason("file_too_large")
	case in.Offset > size:
		return out, jig.Errorf(jig.CodeInvalidInput, "%q ends at byte %d", name, size).WithField("/offset")
	}
	text, more, err := window(file, in.Offset, in.Limit)
	if errors.Is(err, errBinary) {
		return out, jig.Errorf(jig.CodeInvalidInput, "%q is not a text file (UTF-8)", name).WithField("/path").
			WithReason("binary_file").WithHint("only text can be read")
	}
	if err != nil {
		return out, dir.Explain(name, err)
	}
	return readOutput{Path: name, Content: text, Size: size, Truncated: more}, nil
}

var errBinary = errors.New("binary")

// window reads limit bytes from offset without cutting runes: a rune that begins before the offset is included, and a rune that does not
// end within the limit is left to the next window.
func window(r io.ReaderAt, offset int64, limit int) (string, bool, error) {
	before := min(offset, utf8.UTFMax-1)
	buffer := make([]byte, int(before)+limit+1) // the extra byte tells whether there is more
	n, err := r.ReadAt(buffer, offset-before)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, fmt.Errorf("read: %w", err)
	}
	buffer = buffer[:n]
	start := min(int(before), n)
	for start > 0 && start < n && !utf8.RuneStart(buffer[start]) {
		start--
	}
	end, more := n, false
	if full := int(before) + limit; n > full {
		end, more = full, true
		for end > start && !utf8.RuneStart(buffer[end]) {
			end--
		}
		if end == start { // return a rune that does not fit rather than nothing
			end = n
		}
	}
	text := buffer[start:end]
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return "", false, errBinary
	}
	return string(text), more, nil
}

type listInput struct {
	Path      string `json:"path"                jsonschema:"folder to list, relative to the working directory; . is the working directory" maxLength:"4096" path:"true"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"list the folders below, too"`
	Glob      string `json:"glob,omitempty"      jsonschema:"keep paths that match, relative to path; ** stands for any folders"           maxLength:"1000"`
}

type listOutput struct {
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated" jsonschema:"there are more entries"`
}

type entry struct {
	Path string `json:"path" jsonschema:"relative to the working directory"`
	Type string `json:"type"                                               enum:"file,dir,symlink,other"`
	Size int64  `json:"size" jsonschema:"bytes of a file, 0 for anything else"`
}

// Summary implements tools.Summarizer.
func (o listOutput) Summary() string {
	if o.Truncated {
		return fmt.Sprintf("the first %d entries", len(o.Entries))
	}
	return fmt.Sprintf("%d entries", len(o.Entries))
}

func (f family) list(ctx context.Context, inv jig.Invocation, in listInput) (listOutput, error) {
	var out listOutput
	dir, start, err := f.open(inv, in.Path)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	info, err := dir.Stat(start)
	if err != nil {
		return out, dir.Explain(start, err)
	}
	if !info.IsDir() {
		return out, jig.Errorf(jig.CodeInvalidInput, "%q is not a folder", start).WithField("/path").
			WithReason("not_a_directory").WithHint("read a file with file.read")
	}
	list, more, err := walk(ctx, dir, start, in.Recursive, in.Glob)
	if err != nil {
		return out, err
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.path, b.path) })
	out.Truncated = more || len(list) > MaxEntries
	for _, one := range list[:min(MaxEntries, len(list))] {
		out.Entries = append(out.Entries, describe(one))
	}
	return out, nil
}

func describe(f found) entry {
	e := entry{Path: f.path, Type: "other"}
	switch mode := f.dir.Type(); {
	case mode.IsRegular():
		e.Type = "file"
		if info, err := f.dir.Info(); err == nil { // the size of a file that has disappeared is 0
			e.Size = info.Size()
		}
	case mode.IsDir():
		e.Type = "dir"
	case mode&fs.ModeSymlink != 0:
		e.Type = "symlink"
	}
	return e
}
