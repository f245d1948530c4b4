package file

import (
	"bufio"
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
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/workdir"
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

// maxLine is the number of bytes of a line that are searched; the rest of a longer line is skipped.
const maxLine = 64 << 10

type grepInput struct {
	Pattern string `json:"pattern"        jsonschema:"regular expression, RE2"                                                   minLength:"1"    maxLength:"1000"`
	Path    string `json:"path,omitempty" jsonschema:"file or folder to search, relative to the working directory"               maxLength:"4096" default:"." path:"true"`
	Glob    string `json:"glob,omitempty" jsonschema:"search files whose path relative to path matches; ** stands for any folders" maxLength:"1000"`
}

type grepOutput struct {
	Matches   []match `json:"matches"`
	Truncated bool    `json:"truncated" jsonschema:"there are more matches"`
}

type match struct {
	Path string `json:"path" jsonschema:"relative to the working directory"`
	Line int    `json:"line" jsonschema:"from 1"`
	Text string `json:"text" jsonschema:"the line, cut after 500 bytes"`
}

// Summary implements tools.Summarizer.
func (o grepOutput) Summary() string {
	if o.Truncated {
		return fmt.Sprintf("the first %d matches", len(o.Matches))
	}
	return fmt.Sprintf("%d matches", len(o.Matches))
}

func (f family) grep(ctx context.Context, inv jig.Invocation, in grepInput) (grepOutput, error) {
	var out grepOutput
	expression, err := pattern.Compile(in.Pattern)
	if err != nil {
		return out, jig.Errorf(jig.CodeInvalidInput, "the pattern cannot be used: %w", err).WithField("/pattern").
			WithHint("RE2 syntax: no look-around and no back-references; escape . ( ) [ ] with \\")
	}
	dir, start, err := f.open(inv, in.Path)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	files, more, err := candidates(ctx, dir, start, in.Glob)
	if err != nil {
		return out, err
	}
	out.Truncated = more
	for _, name := range files {
		if err := search(ctx, dir, name, expression, &out); err != nil {
			return grepOutput{}, err
		}
		if len(out.Matches) >= MaxMatches && out.Truncated {
			break
		}
	}
	return out, nil
}

// candidates lists the files to search, sorted by path.
func candidates(ctx context.Context, dir *workdir.Dir, start, glob string) ([]string, bool, error) {
	info, err := dir.Stat(start)
	if err != nil {
		return nil, false, dir.Explain(start, err)
	}
	if !info.IsDir() {
		return []string{start}, false, nil
	}
	list, more, err := walk(ctx, dir, start, true, glob)
	if err != nil {
		return nil, false, err
	}
	var files []string
	for _, one := range list {
		if one.dir.Type().IsRegular() {
			files = append(files, one.path)
		}
	}
	slices.Sort(files)
	return files, more, nil
}

// search adds a file's matches to out until out is full. It skips a file that cannot be read or is not text.
func search(ctx context.Context, dir *workdir.Dir, name string, expression *pattern.Pattern, out *grepOutput) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("search: %w", err)
	}
	file, size, err := dir.Regular(name)
	if err != nil {
		return nil // one unreadable file must not stop the search
	}
	defer file.Close()
	if size > MaxReadBytes {
		return nil
	}
	reader := bufio.NewReaderSize(file, maxLine)
	head, err := reader.Peek(8 << 10) // for a short file, Peek returns the whole file and io.EOF
	if err != nil && !errors.Is(err, io.EOF) || binary(head) {
		return nil
	}
	kept := len(out.Matches)
	for number := 1; ; number++ {
		if number%1000 == 0 && ctx.Err() != nil {
			return fmt.Errorf("search: %w", ctx.Err())
		}
		line, err := nextLine(reader)
		if len(line) == 0 && err != nil {
			return nil // the end of the file
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if bytes.IndexByte(line, 0) >= 0 { // binary after all
			out.Matches = out.Matches[:kept]
			return nil
		}
		matches, err := expression.Match(ctx, line)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		if !matches {
			continue
		}
		if len(out.Matches) >= MaxMatches {
			out.Truncated = true
			return nil
		}
		out.Matches = append(out.Matches, match{Path: name, Line: number, Text: clip.Bytes(strings.ToValidUTF8(string(line), "\uFFFD"), MaxLineBytes)})
	}
}

// nextLine returns a line, or only its first maxLine bytes if it is longer.
func nextLine(reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err //nolint:wrapcheck // the caller only checks whether it is nil
	}
	line = bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = reader.ReadSlice('\n')
	}
	if errors.Is(err, io.EOF) {
		err = nil // the next call returns it
	}
	return line, err
}

// binary reports whether the beginning of a file is not text: it contains a NUL byte or is not UTF-8, except for a rune cut off at the end.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for range utf8.UTFMax {
		if utf8.Valid(head) {
			return false
		}
		head = head[:len(head)-1]
	}
	return true
}
