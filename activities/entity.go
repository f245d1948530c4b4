package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Entity returns the state of the latest extraction of an entity, without the entity's content.
func (a *Activities) Entity(ctx context.Context, in protocol.EntityRequest) (jig.EntityStatus, error) {
	status, err := a.EntityStatus(ctx, in.Tenant, in.EntityID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		err = jig.Errorf(jig.CodeNotFound, "there is no entity %s", in.EntityID).WithField("entity").
			WithHint("find it with `jig trigger entities.filter`; --tenant selects another tenant")
	}
	return fitStatus(status), temporalError(err)
}

// fitStatus shortens error messages if the status is too large. The events of the session have them in full.
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
