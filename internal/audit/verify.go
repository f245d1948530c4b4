package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jig-run/jig"
)

// MaxLineBytes is the maximum length of a line of an export.
const MaxLineBytes = 1 << 20

// Options says what else to check in an export.
type Options struct {
	// Head is a hash, in hex, that somebody noted down earlier and that must occur in the chain. "" skips this check.
	Head string
}

// Report is the result of a check.
type Report struct {
	// OK says that the chain is intact.
	OK     bool   `json:"ok"`
	Tenant string `json:"tenant"`
	// From is the number of the first row. Unless it is 1, the previous hash that this row names is not checked.
	From int64 `json:"from"`
	// Rows is the number of rows that were in order.
	Rows int64 `json:"rows"`
	// Head is the last row that was in order.
	Head Head `json:"head"`
	// Broken is the first problem found, or nil.
	Broken *Broken `json:"broken,omitempty"`
}

// Verify checks an export: its header, that no row is missing, changed, moved or added, and that the export ends where its header
// says. It reads one line at a time. It returns INVALID_INPUT when r is not an export or its header makes no sense (field header…),
// and when Options.Head is not a hash (field head). A broken chain is not an error; the report describes it.
func Verify(r io.Reader, o Options) (Report, error) {
	noted := strings.ToLower(strings.TrimSpace(o.Head))
	if _, ok := parseHash(noted); noted != "" && !ok {
		return Report{}, jig.Errorf(jig.CodeInvalidInput, "%q is not a hash", shorten(o.Head)).WithField("head").
			WithHint("give the 64 hex digits that an export, or audit.verify, showed as the head")
	}
	lines := linesOf(r)
	header, err := readHeader(lines)
	if err != nil {
		return Report{}, err
	}
	v := verifier{chain: NewChain(header.Tenant, header.From), noted: noted}
	v.see(v.chain.Head().Hash)
	found, err := v.rows(lines)
	if err != nil {
		return Report{}, err
	}
	if found == nil {
		found = v.chain.End(header.Head)
	}
	if found == nil && noted != "" && !v.seen {
		found = broken(0, "the noted hash %s is not in the chain: rows were removed, or the chain was rewritten", noted)
	}
	head := v.chain.Head()
	return Report{
		OK: found == nil, Tenant: header.Tenant, From: header.From, Rows: head.N - (header.From - 1), Head: head, Broken: found,
	}, nil
}

// linesOf scans the lines of a text including their newlines. A last line without a newline is returned as it is.
func linesOf(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLineBytes)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if end := bytes.IndexByte(data, '\n') + 1; end > 0 {
			return end, data[:end], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	return lines
}

// readHeader reads the first line.
func readHeader(lines *bufio.Scanner) (Header, error) {
	var h Header
	lines.Scan()
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return h, fmt.Errorf("read the export: %w", err)
	}
	line := lines.Bytes()
	if err := json.Unmarshal(line, &h); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
		return h, jig.Errorf(jig.CodeInvalidInput, "this is not an audit export: its first line is not a header").WithField("header").
			WithHint("`jig audit export` writes one")
	}
	if err := h.Check(); err != nil {
		return h, err
	}
	if written, err := encode(h); err != nil || !bytes.Equal(written, line) {
		return h, jig.Errorf(jig.CodeInvalidInput, "the header of the export is not encoded as in an export: it was changed").
			WithField("header")
	}
	return h, nil
}

// verifier checks the rows of an export.
type verifier struct {
	chain *Chain
	noted string
	seen  bool
}

func (v *verifier) see(hash string) {
	v.seen = v.seen || v.noted != "" && hash == v.noted
}

// rows checks line by line and returns the first problem.
func (v *verifier) rows(lines *bufio.Scanner) (*Broken, error) {
	for lines.Scan() {
		n := v.chain.Head().N + 1
		if !bytes.HasSuffix(lines.Bytes(), []byte("\n")) {
			if err := lines.Err(); err != nil { // reading failed, so the line may be incomplete
				return nil, fmt.Errorf("read the export: %w", err)
			}
			return broken(n, "its line has no end: the export was cut off"), nil
		}
		if found := v.line(n, lines.Bytes()); found != nil {
			return found, nil
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return broken(v.chain.Head().N+1, "its line is longer than %d bytes", MaxLineBytes), nil
	case err != nil:
		return nil, fmt.Errorf("read the export: %w", err)
	}
	return nil, nil // nothing is wrong
}

func (v *verifier) line(n int64, line []byte) *Broken {
	var row Row
	if err := json.Unmarshal(line, &row); err != nil {
		return broken(n, "its line is not a row: %v", err)
	}
	// A JSON decoder also accepts other keys, other escapes and invalid text. An export must have exactly the bytes that Writer writes.
	written, err := encode(row)
	if err != nil {
		return broken(n, "its line is not a row: %v", err)
	}
	before := *v.chain
	if found := v.chain.Next(row); found != nil {
		return found
	}
	if !bytes.Equal(written, line) {
		*v.chain = before
		return broken(n, "its line is not encoded as in an export: it was changed")
	}
	v.see(row.Prev)
	v.see(row.Hash)
	return nil
}
