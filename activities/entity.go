package activities

import (
	"context"

	"github.com/jig-run/jig"
)

// EntityRequest asks how the latest extraction of an entity stands.
type EntityRequest struct {
	Tenant   string `json:"tenant"`
	EntityID string `json:"entity_id"`
}

// Entity says how the latest extraction of an entity stands, and nothing of the entity's content.
func (a *Activities) Entity(ctx context.Context, in EntityRequest) (jig.EntityStatus, error) {
	status, err := a.entities.EntityStatus(ctx, in.Tenant, in.EntityID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		err = jig.Errorf(jig.CodeNotFound, "there is no entity %s", in.EntityID).WithField("entity").
			WithHint("look for it with `jig trigger entities.filter`; --tenant names another tenant")
	}
	return fitStatus(status), temporalError(err)
}

// fitStatus leaves out what errors say until the status fits: the events of the session say it, too.
func fitStatus(s jig.EntityStatus) jig.EntityStatus {
	if sizeOf(s) <= pageBytes {
		return s
	}
	for id, t := range s.Tasks {
		if t.Error != nil {
			t.Error = &jig.Error{Code: t.Error.Code, Message: jig.Cut(t.Error.Message, 40)}
			s.Tasks[id] = t
		}
	}
	return s
}
