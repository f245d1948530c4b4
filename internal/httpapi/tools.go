package httpapi

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

type toolsAnswer struct{ Body client.Catalog }

func (a *API) listTools(ctx context.Context, _ *struct{}) (*toolsAnswer, error) {
	tenant, _ := callerOf(ctx)
	catalog, err := a.options.Engine.Catalog(ctx, tenant)
	return &toolsAnswer{Body: catalog}, err
}

type toolRequest struct {
	Tool string `path:"tool" names:"tool" maxLength:"64" doc:"The name of the tool"`
}

type toolAnswer struct{ Body jig.Tool }

func (a *API) getTool(ctx context.Context, in *toolRequest) (*toolAnswer, error) {
	tenant, _ := callerOf(ctx)
	catalog, err := a.options.Engine.Catalog(ctx, tenant)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(catalog.Tools, func(t jig.Tool) bool { return t.Name == in.Tool })
	if at < 0 {
		return nil, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool").WithHint("GET /v1/tools lists them")
	}
	return &toolAnswer{Body: catalog.Tools[at]}, nil
}
