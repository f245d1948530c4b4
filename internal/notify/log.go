package notify

import (
	"context"
	"log/slog"
	"strings"

	"github.com/jig-run/jig"
)

// Log returns a function that writes one line per notice, at level info.
func Log(logger *slog.Logger) func(ctx context.Context, n jig.Notice) {
	return func(ctx context.Context, n jig.Notice) {
		attrs := append(about(n), slog.String("tool", n.Approval.Tool), slog.String("approvers", approvers(n)))
		if n.Status != "" {
			attrs = append(attrs, slog.String("status", string(n.Status)), slog.String("by", n.By))
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "notice", attrs...)
	}
}

// about returns the log attributes that identify a notice.
func about(n jig.Notice) []slog.Attr {
	return []slog.Attr{
		slog.String("tenant", n.Tenant), slog.String("kind", string(n.Kind)), slog.String("session", n.Approval.SessionID),
		slog.String("call", n.Approval.Call), slog.String("notice", n.ID),
	}
}

// approvers describes the approvers that a notice names, or else those that the approval's terms require.
func approvers(n jig.Notice) string {
	if n.Approvers != nil {
		return n.Approvers.String()
	}
	var list []string
	if n.Approval.Terms != nil {
		for _, r := range n.Approval.Terms.Requirements {
			list = append(list, r.Approvers.String())
		}
	}
	if len(list) == 0 {
		return jig.Approvers{}.String()
	}
	return strings.Join(list, "; and ")
}
