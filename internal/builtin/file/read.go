package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	dir, err := f.dirs.Open(inv.Tenant)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	name, err := dir.Clean(in.Path)
	if err != nil {
		return out, err
	}
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
