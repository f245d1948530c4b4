package httpapi

import (
	"context"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/toolname"
)

type peopleAnswer struct{ Body tenancy.Directory }

func (a *API) listPeople(ctx context.Context, _ *struct{}) (*peopleAnswer, error) {
	tenant, _ := callerOf(ctx)
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	return &peopleAnswer{Body: settings.Directory}, err
}

type disableRequest struct {
	api.CallHeaders
	Body struct {
		Person string `json:"person,omitempty" names:"person" maxLength:"128" doc:"The principal to disable or to enable"`
		Key    string `json:"key,omitempty" names:"signing_key" maxLength:"64" doc:"Instead of a person: the id of the key"`
	} `nameHint:"Disabling"`
}

// disabling is the input of tenants.set_disabled.
type disabling struct {
	Person   string `json:"person,omitempty"`
	Key      string `json:"key,omitempty"`
	Disabled bool   `json:"disabled"`
}

func (a *API) disable(ctx context.Context, in *disableRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.SetDisabled, disabling{in.Body.Person, in.Body.Key, true})
}

func (a *API) enable(ctx context.Context, in *disableRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.SetDisabled, disabling{in.Body.Person, in.Body.Key, false})
}
