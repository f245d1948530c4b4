package worker

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// advise logs a warning for each part of a tool's contract that a model may misunderstand, such as a description that contradicts the
// schema or a name that is easily confused with another. The tools that ship with jig cause no warnings, so every warning concerns a Go
// tool that was added to this worker. `jig validate` gives the same advice on documents.
func advise(ctx context.Context, logger *slog.Logger, registry *tools.Registry) {
	for _, p := range spec.AdviseTools(registry.Tools()) {
		logger.WarnContext(ctx, "a tool may be misunderstood: "+p.Message, "tool", p.Document, "field", p.Path, "hint", p.Hint) //nolint:sloglint // the message is the advice itself
	}
}
