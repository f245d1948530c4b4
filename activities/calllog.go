package activities

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// logCall writes the line of a call that has ended, or whose outcome is unknown, to the worker's log.
func (a *Activities) logCall(ctx context.Context, call jig.Call) {
	if !call.Status.Final() && call.Status != jig.CallUnknown {
		return
	}
	line := []slog.Attr{
		slog.String("tenant", call.Tenant), slog.String("session_id", call.SessionID), slog.String("call_id", call.ID),
		slog.String("tool", call.Tool), slog.String("status", string(call.Status)), slog.Int64("duration_ms", call.Duration().Milliseconds()),
	}
	if call.Fence > 1 {
		line = append(line, slog.Int("attempt", call.Fence))
	}
	if call.Child != "" {
		line = append(line, slog.String("child_session_id", call.Child))
	}
	if call.Result != nil && call.Result.Error != nil {
		e := call.Result.Error
		line = append(line, slog.String("code", string(e.Code)), slog.String("error", jig.Cut(e.Message, 200)))
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "call ended", line...)
}

// logQuick writes the line of a call that one record began and ended.
func (a *Activities) logQuick(ctx context.Context, call jig.Call, record ledger.QuickCompletion) {
	call.Status, call.Result, call.StartedAt, call.FinishedAt = record.Status, &record.Result, &record.Started, &record.Finished
	a.logCall(ctx, call)
}

// logRefused writes the lines of the calls that ended when they were admitted: denied, refused or duplicate ones.
func (a *Activities) logRefused(ctx context.Context, admission ledger.Admission) {
	for _, call := range admission.Calls {
		call.Tenant, call.SessionID = admission.Tenant, admission.SessionID
		a.logCall(ctx, call)
	}
}
