package httpapi

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
)

type bundlesAnswer struct {
	Body struct {
		Bundles []bundle.Bundle `json:"bundles"`
	} `nameHint:"BundleList"`
}

func (a *API) listBundles(ctx context.Context, _ *struct{}) (*bundlesAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Bundles.Bundles(ctx, tenant)
	var answer bundlesAnswer
	answer.Body.Bundles = append([]bundle.Bundle{}, list...)
	return &answer, err
}

type bundleRequest struct {
	Bundle string `path:"bundle" names:"bundle" maxLength:"64" doc:"The name of the bundle"`
}

type bundleAnswer struct{ Body bundle.Bundle }

func (a *API) getBundle(ctx context.Context, in *bundleRequest) (*bundleAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Bundles.Bundles(ctx, tenant)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(b bundle.Bundle) bool { return b.Name == in.Bundle })
	if at < 0 {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no such bundle").WithField("bundle").WithHint("list the bundles")
	}
	return &bundleAnswer{list[at]}, nil
}
