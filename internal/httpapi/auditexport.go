package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// jsonLines is the media type of exports.
const jsonLines = "application/x-ndjson"

func (a *API) getAuditHead(ctx context.Context, _ *struct{}) (audit.Head, error) {
	tenant, _ := callerOf(ctx)
	page, err := a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: math.MaxInt64})
	return audit.Head{N: page.HeadN, Hash: page.HeadHash}, err
}

// fromAudit returns a response that serve writes, with as much time as it needs. rows writes an export of the rows beginning with from.
func (a *API) fromAudit(
	ctx context.Context, from int64, serve func(ctx context.Context, w http.ResponseWriter, r *http.Request, rows func(to io.Writer) error),
) (*written, error) {
	tenant, _ := callerOf(ctx)
	if err := a.roomForAudit(ctx); err != nil {
		return nil, err
	}
	first, err := a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: from - 1})
	if err != nil {
		return nil, err
	}
	if from > first.HeadN+1 {
		return nil, invalid("the record has fewer rows").WithField("from").WithHint("GET /v1/audit/head returns the number of the last row")
	}
	return &written{Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		r, w := humago.Unwrap(c)
		x := exchangeOf(c.Context())
		x.streams, x.audits = true, true
		ctx, over := a.leases.hold(c.Context(), x)
		defer over()
		serve(ctx, w, r, func(to io.Writer) error { return a.writeAudit(ctx, to, unhurried(w), tenant, from, first) })
	}}, nil
}

func (a *API) exportAudit(ctx context.Context, in *api.ExportAuditRequest) (*written, error) {
	return a.fromAudit(ctx, in.From, func(ctx context.Context, w http.ResponseWriter, _ *http.Request, rows func(to io.Writer) error) {
		h := w.Header()
		h.Set("Content-Type", jsonLines)
		h.Set("Content-Disposition", `attachment; filename="audit.jsonl"`)
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		if err := rows(w); err != nil {
			a.options.Logger.WarnContext(ctx, "an export of the audit ended early", slog.String("request_id", exchangeOf(ctx).id), slog.Any("error", err))
			panic(http.ErrAbortHandler) // the client must notice that rows are missing
		}
	})
}

// errStopping ends exports when the server stops.
var errStopping = errors.New("the server is stopping")

// unhurried returns a function that extends the write deadline, for responses that make progress.
func unhurried(w http.ResponseWriter) func() {
	control := http.NewResponseController(w)
	return func() {
		_ = control.SetWriteDeadline(time.Now().Add(answerTimeout)) //nolint:errcheck // not every writer has deadlines
	}
}

// writeAudit writes an export page by page, and calls progress before each page. The export ends with the row that was the last one when the first
// page was read.
func (a *API) writeAudit(ctx context.Context, w io.Writer, progress func(), tenant string, from int64, page protocol.AuditPage) error {
	progress()
	head := audit.Head{N: page.HeadN, Hash: page.HeadHash}
	out, err := audit.NewWriter(w, audit.Header{Tenant: tenant, From: from, Head: head, ExportedAt: time.Now()})
	for next := from; err == nil && next <= head.N; {
		if len(page.Rows) == 0 {
			return io.ErrUnexpectedEOF
		}
		for _, row := range page.Rows {
			if row.N > head.N {
				break
			}
			if err := out.Write(row); err != nil {
				return err
			}
			next = row.N + 1
		}
		if next > head.N {
			break
		}
		select {
		case <-a.drained:
			return errStopping
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own
		default:
		}
		progress()
		page, err = a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: next - 1})
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// verifyAudit verifies the record as `jig audit verify` verifies an export, row by row.
func (a *API) verifyAudit(ctx context.Context, in *api.VerifyAuditRequest) (*written, error) {
	return a.fromAudit(ctx, in.From, func(ctx context.Context, w http.ResponseWriter, r *http.Request, rows func(to io.Writer) error) {
		reader, writer := io.Pipe()
		var report audit.Report
		var err error
		verified := make(chan struct{})
		go func() {
			defer close(verified)
			report, err = audit.Verify(reader, audit.Options{Head: in.Head})
			_ = reader.Close() // a broken chain is not read to its end
		}()
		_ = writer.CloseWithError(rows(writer))
		<-verified
		if err != nil {
			a.refuse(w, r, a.problemOf(ctx, err))
			return
		}
		writeJSON(w, http.StatusOK, "application/json", report)
	})
}
