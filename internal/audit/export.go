package audit

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// Format is the version of the export format that this package writes and reads.
const Format = 1

// Header is the first line of an export.
type Header struct {
	// Format is the version of the export format: 1.
	Format int    `json:"jig_audit"`
	Tenant string `json:"tenant"`
	// From is the number of the first row; 1 for a whole chain.
	From int64 `json:"from"`
	// Head is the last row, with which the export ends.
	Head       Head      `json:"head"`
	ExportedAt time.Time `json:"exported_at"`
}

// Check returns INVALID_INPUT with the field, e.g. header.head, for a header that no export can have.
func (h Header) Check() error {
	bad := func(field, format string, args ...any) *jig.Error {
		return jig.Errorf(jig.CodeInvalidInput, "the header of the export "+format, args...).WithField("header." + field)
	}
	switch {
	case h.Format < 1:
		return bad("jig_audit", "does not say that this is an audit export").WithHint("the first line begins with {\"jig_audit\":1")
	case h.Format > Format:
		return bad("jig_audit", "has format %d, and this program reads formats up to %d", h.Format, Format)
	case h.From < 1:
		return bad("from", "begins with row %d; rows count from 1", h.From)
	case h.Head.check() != "":
		return bad("head", "is wrong: its head %s", h.Head.check())
	case h.Head.N < h.From-1:
		return bad("head", "is wrong: it begins with row %d and ends with row %d", h.From, h.Head.N)
	case jig.CheckTenant(h.Tenant) != nil:
		return bad("tenant", "names no tenant: %q", shorten(h.Tenant))
	}
	return nil
}

// Writer writes an export.
type Writer struct {
	out *bufio.Writer
}

// NewWriter writes the header of an export. Write adds the rows, and Close ends the export.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format, h.ExportedAt = Format, h.ExportedAt.UTC()
	if err := h.Check(); err != nil {
		return nil, err
	}
	out := &Writer{out: bufio.NewWriter(w)}
	return out, out.line(h)
}

// Write writes a row without checking it: an export shows a chain as it is.
func (w *Writer) Write(row Row) error { return w.line(row) }

// Close flushes the export. It does not close the underlying writer.
func (w *Writer) Close() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

func (w *Writer) line(v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// encode encodes a line including its newline. All lines are encoded the same way, so that a reader notices any change.
func encode(v any) ([]byte, error) {
	b, err := jsontext.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode the export: %w", err)
	}
	return append(b, '\n'), nil
}
