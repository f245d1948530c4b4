package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type artifactRequest struct {
	Artifact string `path:"artifact" names:"artifact" maxLength:"128" doc:"The id of the artifact"`
}

// downloadAnswer writes a download.
type downloadAnswer struct{ Body func(ctx huma.Context) }

func (a *API) getArtifact(ctx context.Context, in *artifactRequest) (*downloadAnswer, error) {
	tenant, _ := callerOf(ctx)
	content, err := a.options.Engine.Artifact(ctx, tenant, in.Artifact)
	if err != nil {
		return nil, err
	}
	return &downloadAnswer{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		h := w.Header()
		h.Set("Content-Type", binary)
		h.Set("Content-Disposition", `attachment; filename="`+fileName(in.Artifact)+`"`)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(content) //nolint:errcheck // the client is gone
	}}, nil
}

// binary is the media type of downloads, which no browser interprets.
const binary = "application/octet-stream"

// fileName returns an id as the name of a file.
func fileName(id string) string {
	name := []byte(id)
	for i, b := range name {
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '_' && b != '-' && b != '.' {
			name[i] = '_'
		}
	}
	return string(name)
}

// describeDownload adds the answer of an operation that writes a download itself.
func describeDownload(a *API, path string) {
	a.huma.OpenAPI().Paths[path].Get.Responses[statusText(0)].Content = map[string]*huma.MediaType{
		binary: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}
}
