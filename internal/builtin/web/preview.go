package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
)

// previewPost shows the request that would be sent, after the same checks. It connects to nothing, so it cannot say what the other system
// will do with the request.
func (f family) previewPost(ctx context.Context, _ jig.Invocation, in postInput) (jig.Preview, error) {
	content, media := payload(in.Body)
	if err := checkBody(content); err != nil {
		return jig.Preview{}, err
	}
	request, err := f.request(ctx, http.MethodPost, in.URL, in.Headers, content)
	if err != nil {
		return jig.Preview{}, err
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", media)
	}
	p := jig.Preview{Title: fmt.Sprintf("Sends %d bytes to %s", len(content), request.URL.Host), Changes: []string{"POST " + request.URL.String()}}
	for _, name := range slices.Sorted(maps.Keys(request.Header)) {
		p.Changes = append(p.Changes, name+": "+request.Header.Get(name))
	}
	p.Changes = append(p.Changes, preview.All("body", "+", string(content)))
	return p, nil
}
