package artifact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/pattern"
)

// reader reads an artifact from its beginning, chunk by chunk.
type reader struct {
	ctx    context.Context //nolint:containedctx // Read has no context parameter, and the reader lives for one call
	store  Store
	inv    jig.Invocation
	id     string
	size   int64
	offset int64
	buffer []byte
}

// open reads the first chunk and the total size.
func (r *reader) open() error {
	b, size, err := r.store.ReadArtifact(r.ctx, r.inv, r.id, 0, chunk)
	if err != nil {
		return fmt.Errorf("read artifact: %w", err)
	}
	r.size, r.buffer, r.offset = size, b, int64(len(b))
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.buffer) == 0 {
		if r.offset >= r.size {
			return 0, io.EOF
		}
		b, err := r.at(r.offset, chunk)
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		r.buffer = b
		r.offset += int64(len(b))
	}
	n := copy(p, r.buffer)
	r.buffer = r.buffer[n:]
	return n, nil
}

// noting records why reading failed, so that the failure is not mistaken for invalid JSON.
type noting struct {
	r      *reader
	failed error
}

// Read implements io.Reader.
func (n *noting) Read(p []byte) (int, error) {
	read, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.failed = err
	}
	return read, err
}

func (r *reader) at(offset int64, limit int) ([]byte, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, fmt.Errorf("read artifact: %w", err)
	}
	b, _, err := r.store.ReadArtifact(r.ctx, r.inv, r.id, offset, limit)
	if err != nil {
		return nil, fmt.Errorf("read artifact: %w", err)
	}
	return b, nil
}

// within refuses an artifact that is larger than limit, for ways of reading that cannot handle more.
func (r *reader) within(limit int64) error {
	if r.size <= limit {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "the artifact has %d bytes, at most %d can be searched like this", r.size, limit).
		WithField("/id").WithReason("artifact_too_large").WithHint("read its beginning, or its end with tail")
}

func notText() error {
	return jig.Errorf(jig.CodeInvalidInput, "the artifact is not text").WithField("/id").WithReason("binary_artifact").
		WithHint("only text can be read")
}

// isText reports whether b is UTF-8 without NUL bytes.
func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// beginning returns the first MaxContent bytes.
func beginning(r *reader) (output, error) {
	b := make([]byte, min(r.size, MaxContent))
	if _, err := io.ReadFull(r, b); err != nil {
		return output{}, fmt.Errorf("read artifact: %w", err)
	}
	more := r.size > MaxContent
	if more {
		b = clip.Whole(b)
	}
	if !isText(b) {
		return output{}, notText()
	}
	return output{Content: string(b), Truncated: more}, nil
}

// tail returns the last lines. It reads no more than can be returned.
func tail(r *reader, count int) (output, error) {
	start := max(0, r.size-MaxContent)
	var b []byte
	for offset := start; offset < r.size; {
		piece, err := r.at(offset, int(r.size-offset))
		if err != nil {
			return output{}, err
		}
		if len(piece) == 0 {
			return output{}, fmt.Errorf("read artifact: %w", io.ErrUnexpectedEOF)
		}
		b = append(b, piece...)
		offset += int64(len(piece))
	}
	if start > 0 {
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	if !isText(b) {
		return output{}, notText()
	}
	end := len(b)
	if end > 0 && b[end-1] == '\n' {
		end--
	}
	for ; count > 0; count-- {
		at := bytes.LastIndexByte(b[:end], '\n')
		if at < 0 { // fewer lines than asked for, or the first one is cut
			return output{Content: string(b), Truncated: start > 0}, nil
		}
		end = at
	}
	return output{Content: string(b[end+1:]), Truncated: false}, nil
}

// collector gathers at most limit lines and MaxContent bytes, from the beginning or, if last is set, from the end.
type collector struct {
	limit int // 0: no limit
	last  bool

	kept []string
	size int
	more bool
}

// add adds a line and reports whether no more lines are needed.
func (c *collector) add(line string) (full bool) {
	if c.last {
		c.kept = append(c.kept, line)
		c.size += len(line) + 1
		for (c.limit > 0 && len(c.kept) > c.limit) || (c.size > MaxContent && len(c.kept) > 1) {
			if c.size > MaxContent && (c.limit == 0 || len(c.kept) <= c.limit) {
				c.more = true
			}
			c.size -= len(c.kept[0]) + 1
			c.kept = c.kept[1:]
		}
		return false
	}
	if c.limit > 0 && len(c.kept) == c.limit {
		return true
	}
	if c.size+len(line)+1 > MaxContent {
		c.more = true
		if len(c.kept) == 0 { // a part is better than nothing
			c.kept = append(c.kept, string(clip.Whole([]byte(line[:MaxContent-1]))))
		}
		return true
	}
	c.kept = append(c.kept, line)
	c.size += len(line) + 1
	return false
}

func (c *collector) output() output {
	if len(c.kept) == 0 {
		return output{Truncated: c.more}
	}
	content := strings.Join(c.kept, "\n") + "\n"
	if len(content) > MaxContent {
		return output{Content: string(clip.Whole([]byte(content[:MaxContent]))), Truncated: true}
	}
	return output{Content: content, Truncated: c.more}
}

// collectorFor returns a collector for the head and tail of an input.
func collectorFor(in input) *collector {
	return &collector{limit: in.Head + in.Tail, last: in.Tail > 0}
}

// lines returns the first lines.
func lines(r *reader, in input) (output, error) {
	c := collectorFor(in)
	err := each(r, func(_ int, line []byte) (bool, error) { return c.add(string(line)), nil })
	return c.output(), err
}

// search returns the matching lines, with their numbers.
func search(r *reader, in input) (output, error) {
	expression, err := pattern.Compile(in.Grep)
	if err != nil {
		return output{}, jig.Errorf(jig.CodeInvalidInput, "grep cannot be used: %w", err).WithField("/grep").
			WithHint("RE2 syntax: no look-around and no back-references")
	}
	if err := r.within(MaxScan); err != nil {
		return output{}, err
	}
	c := collectorFor(in)
	err = each(r, func(number int, line []byte) (bool, error) {
		matches, err := expression.Match(r.ctx, line)
		if err != nil || !matches {
			return false, err
		}
		if len(line) > maxShown {
			line = clip.Whole(line[:maxShown])
		}
		return c.add(fmt.Sprintf("%d:%s", number, line)), nil
	})
	if err != nil {
		return output{}, fmt.Errorf("search the artifact: %w", err)
	}
	return c.output(), nil
}

// each calls done for every line, without its line ending and cut to maxLine bytes, until done returns true or an error.
func each(r *reader, done func(number int, line []byte) (bool, error)) error {
	buffered := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		line, err := buffered.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !cut && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read artifact: %w", err)
		}
		if len(line) == 0 {
			return nil
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if cut {
			line = clip.Whole(line)
		}
		if !isText(line) {
			return notText()
		}
		if enough, err := done(number, line); enough || err != nil {
			return err
		}
		for cut {
			_, err = buffered.ReadSlice('\n')
			cut = errors.Is(err, bufio.ErrBufferFull)
		}
	}
}
