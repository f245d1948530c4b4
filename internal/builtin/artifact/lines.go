package artifact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/pattern"
)

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
