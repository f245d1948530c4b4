// Package activitiestest helps to test activities with stores that serve only some subjects.
package activitiestest

import "github.com/jig-run/jig/internal/ports"

// StoreOf returns a store in which v serves every subject that it can.
func StoreOf(v any) ports.Store {
	return ports.Store{
		Sessions:   as[ports.Sessions](v),
		Passes:     as[ports.Passes](v),
		Ledger:     as[ports.Ledger](v),
		Approvals:  as[ports.Approvals](v),
		EventLog:   as[ports.EventLog](v),
		Artifacts:  as[ports.Artifacts](v),
		Views:      as[ports.Views](v),
		Documents:  as[ports.Documents](v),
		Frames:     as[ports.Frames](v),
		GrantStore: as[ports.GrantStore](v),
		PauseStore: as[ports.PauseStore](v),
		Audits:     as[ports.Audits](v),
		Proofs:     as[ports.Proofs](v),
		Reviews:    as[ports.Reviews](v),
		TextStore:  as[ports.TextStore](v),
		Words:      as[ports.Words](v),
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
