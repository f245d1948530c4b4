package tenancy

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Operate says how somebody may do something to a schedule, whichever way it is asked for: its own principal and whoever operates do it, only those
// who manage take it over, and anybody else's trigger is a start of their own. operates and manages say what the credential allows. The error is
// NOT_PERMITTED.
func Operate(r protocol.OperateRequest, operates, manages bool) (protocol.OperateAnswer, error) {
	mine := r.Owner != "" && r.Owner == r.By
	switch {
	case r.Action == protocol.ScheduleTakeOver && !manages:
		return protocol.OperateAnswer{}, jig.Errorf(jig.CodeNotPermitted, "only owners take over schedules").WithReason("scope").
			WithHint("the permission " + PermissionManage + " allows it")
	case r.Action == protocol.ScheduleTakeOver, r.Action == protocol.ScheduleCreate, mine, operates:
		return protocol.OperateAnswer{}, nil
	case r.Action == protocol.ScheduleTrigger:
		return protocol.OperateAnswer{Own: true}, nil
	}
	return protocol.OperateAnswer{}, jig.Errorf(jig.CodeNotPermitted, "schedule %s acts for somebody else, so you cannot %s it", r.Schedule, r.Action).
		WithReason("scope").WithHint("the permission " + PermissionOperate + " allows it; the schedule's own principal needs none")
}

// MayResume returns an error unless somebody may end a pause, whichever way it is asked for. Whoever set it may. Anybody else needs to decide, and
// nobody ends the pause of a session that acts for them, unless the tenant has nobody else. owner is the
// principal of the paused session, and decides says what the credential allows. The error is NOT_PERMITTED.
func (s Settings) MayResume(p jig.Pause, by, owner string, decides bool) error {
	switch {
	case p.By == by:
		return nil
	case !decides:
		return jig.Errorf(jig.CodeNotPermitted, "somebody else set this pause").WithReason("scope").
			WithHint("the permission " + PermissionDecide + ", or an API key with the scope decide, allows ending it")
	case p.Scope == jig.PauseSession && owner == by && !s.OnlyPerson(by):
		return jig.Errorf(jig.CodeNotPermitted, "somebody else paused this session, which acts for you").WithReason("own_session").
			WithHint("ask whoever paused it, or somebody else who decides")
	}
	return nil
}

// Allows returns what a server found out about a credential or, where no server asks, whether a principal has a permission.
func (s Settings) Allows(said *bool, who jig.Principal, permission string) bool {
	if said != nil {
		return *said
	}
	return s.Effective(who).Holds(permission)
}
