package wire

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// advise logs a warning for each part of a tool's contract that a model may misunderstand: a description that contradicts the schema,
// a name that is easily taken for another one. The tools that ship with jig have none, so the warnings are about the tools in code that
// were added to this worker. The same advice on documents is given by `jig validate`.
func advise(ctx context.Context, logger *slog.Logger, registry *tools.Registry) {
	for _, p := range spec.AdviseTools(registry.Tools()) {
		logger.WarnContext(ctx, "a tool may be misunderstood: "+p.Message, "tool", p.Document, "field", p.Path, "hint", p.Hint) //nolint:sloglint // advice has words of its own
	}
}
