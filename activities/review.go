package activities

import (
	"context"
	"fmt"
	"reflect"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
)

// Review returns, for calls that wait for a person, whether somebody may decide them and what policy demands today. It leaves out calls that
// no longer wait.
func (a *Activities) Review(ctx context.Context, in protocol.ReviewRequest) (protocol.ReviewList, error) {
	page, err := a.review(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) review(ctx context.Context, in protocol.ReviewRequest) (protocol.ReviewList, error) {
	page := protocol.ReviewList{Reviews: []protocol.Review{}}
	if n := len(in.Calls); n > protocol.MaxReviewed {
		return page, jig.Errorf(jig.CodeInvalidInput, "%d calls are too many for one request", n).WithField("calls").
			WithHint(fmt.Sprintf("send at most %d", protocol.MaxReviewed))
	}
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return page, err
	}
	for _, c := range in.Calls {
		asked, err := a.Store.Pending(ctx, in.Tenant, c.SessionID, c.Call)
		if jig.CodeOf(err) == jig.CodeNotFound {
			continue
		}
		if err != nil {
			return page, err
		}
		r := protocol.Review{SessionID: c.SessionID, Call: c.Call, Conditions: approval.Conditions(asked)}
		if settings.ProofWanted() && !in.Signs {
			r.Refusal, r.Unsigned = "this tenant accepts only signed decisions, and there is no signing key", true
		} else {
			r.Refusal = approval.WhyNot(settings.Voters().Counted(asked, a.Now()), settings.Person(in.For), settings.Reconcilers, a.Now())
		}
		if asked.Kind == jig.PendingApproval {
			if err := a.today(ctx, asked, &r); err != nil {
				return page, err
			}
		}
		page.Reviews = append(page.Reviews, r)
	}
	return page, nil
}

// today adds what policy demands now for a call, if that is something else than the terms under which the call waits. A call that cannot be
// judged now is left without.
func (a *Activities) today(ctx context.Context, asked jig.Pending, r *protocol.Review) error {
	session, call, err := a.callOf(ctx, protocol.SessionRef{Tenant: asked.Tenant, SessionID: asked.SessionID}, asked.Call)
	if err != nil {
		return err
	}
	tool, known, err := a.toolNow(ctx, call)
	if err != nil || !known {
		return err
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, a.Now())
	if err != nil || ruling.Held != "" {
		return err
	}
	settings, err := a.Tenants.Settings(ctx, asked.Tenant)
	if err != nil {
		return err
	}
	today := a.pending(session, tool, call, ruling, settings, asked.Askers)
	r.Today, r.Terms = changedTerms(asked, today, ruling.Verdict)
	return nil
}

// changedTerms compares the terms under which a call waits with those of today. It returns an empty verdict if they demand the same.
func changedTerms(asked, today jig.Pending, verdict jig.Verdict) (jig.Verdict, *jig.Terms) {
	if verdict != jig.VerdictAsk {
		return verdict, nil
	}
	was, is := approval.Ruled(approval.ConsentOf(asked).Terms), approval.Ruled(approval.ConsentOf(today).Terms)
	was.Remind, is.Remind = 0, 0 // reminders do not change who decides
	if was.Plain() && is.Plain() || reflect.DeepEqual(was, is) {
		return "", nil
	}
	if is.Plain() {
		return jig.VerdictAsk, nil
	}
	return jig.VerdictAsk, &is
}
