// Package activitiestest helps to test activities with stores that serve only some subjects.
package activitiestest

import "github.com/jig-run/jig/activities"

// StoreOf returns a store in which v serves every subject that it can.
func StoreOf(v any) activities.Store {
	return activities.Store{
		Sessions:   as[activities.Sessions](v),
		Passes:     as[activities.Passes](v),
		Ledger:     as[activities.Ledger](v),
		Approvals:  as[activities.Approvals](v),
		EventLog:   as[activities.EventLog](v),
		Artifacts:  as[activities.Artifacts](v),
		Views:      as[activities.Views](v),
		Documents:  as[activities.Documents](v),
		Frames:     as[activities.Frames](v),
		GrantStore: as[activities.GrantStore](v),
		PauseStore: as[activities.PauseStore](v),
		Audits:     as[activities.Audits](v),
		Proofs:     as[activities.Proofs](v),
		Reviews:    as[activities.Reviews](v),
		TextStore:  as[activities.TextStore](v),
	}
}

// as returns v as a T, or nil if v is not a T.
func as[T any](v any) T {
	if t, ok := v.(T); ok {
		return t
	}
	var none T
	return none
}
