package activities

import (
	"context"

	"github.com/jig-run/jig"
)

// filler is a catalog whose tools complete their inputs when calls are admitted.
type filler interface {
	// Fill completes an input that fits the tool's schema; see tools.Fill.
	Fill(ctx context.Context, name string, input []byte, inv jig.Invocation) ([]byte, error)
}

// previewer is a catalog whose tools describe what their calls will change.
type previewer interface {
	// Preview describes what a call of a tool will change; see tools.WithPreview. The error says why there is no preview.
	Preview(ctx context.Context, name string, input []byte, inv jig.Invocation) (jig.Preview, error)
}
