package thin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// ledger is a database that records the requests to it.
type ledger struct {
	thin.Store
	thin.Sessions

	foreign   []string
	types     [][]string
	recorded  []string
	children  []string
	artifacts []string
	started   []protocol.CallInput
}

func (l *ledger) ConnectedEntities(_ context.Context, _, _ string, _ int, types []string, _ string, _ int) ([]entity.Entity, error) {
	l.types = append(l.types, types)
	return []entity.Entity{{ID: "ent_1"}}, nil
}

func (l *ledger) EntitiesElsewhere(context.Context, string, []string) ([]string, error) {
	return l.foreign, nil
}

func (l *ledger) RecordViolation(_ context.Context, _ jig.Invocation, ids []string) error {
	l.recorded = append(l.recorded, ids...)
	return nil
}

func (l *ledger) NameChild(_ context.Context, _, _, _, child, _ string) error {
	l.children = append(l.children, child)
	return nil
}

func (l *ledger) PutArtifact(_ context.Context, _, _, _ string, value []byte) (string, error) {
	l.artifacts = append(l.artifacts, string(value))
	return "art_1", nil
}

func (l *ledger) Session(_ context.Context, _, id string) (jig.Session, error) {
	switch id {
	case "ses_there":
		return jig.Session{}, nil
	case "ses_none":
		return jig.Session{}, jig.Errorf(jig.CodeNotFound, "there is none")
	}
	return jig.Session{}, jig.Errorf(jig.CodeUnavailable, "away")
}

func (l *ledger) StartChild(_ context.Context, input protocol.CallInput, _ string) error {
	l.started = append(l.started, input)
	return nil
}

func TestRecords_ConnectedListsOnlyTypesThatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	records := thin.NewRecords(l, guarded.Entities{Types: func(context.Context, string) ([]entity.Type, error) {
		return []entity.Type{{Name: "pilot"}, {Name: "review"}, {Name: "secret"}}, nil
	}})
	inv := invocation(1)
	inv.Principal.Permissions = []string{"entities.pilot.read", "entities.review.read"}
	for _, row := range []struct{ asked, read []string }{
		{nil, []string{"pilot", "review"}},
		{[]string{"review", "secret"}, []string{"review"}},
		{[]string{"secret"}, nil},
	} {
		l.types = nil
		found, err := records.Connected(t.Context(), inv, "ent_acme", spec.ThinConnected{Types: row.asked, Depth: 1})
		require.NoError(t, err)
		require.Equal(t, row.read != nil, len(found) > 0)
		if row.read == nil {
			require.Empty(t, l.types, "to the store, no types means all types")
			continue
		}
		require.Equal(t, [][]string{row.read}, l.types)
	}
}

func TestRecords_TrespassesOfOneCallAreBounded(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	for i := range 100 {
		l.foreign = append(l.foreign, fmt.Sprint("ent_", i))
	}
	require.NoError(t, thin.NewRecords(l, guarded.Entities{}).Trespassed(t.Context(), invocation(1), []string{"ent_0"}))
	require.Equal(t, l.foreign[:20], l.recorded)
}

func TestStarter_StartsTheSessionOnce(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	s := thin.NewStarter(l, l)
	small, large := json.RawMessage(`{"id":"ent_1"}`), json.RawMessage(`{"id":"`+strings.Repeat("x", 32<<10)+`"}`)
	require.NoError(t, s.Start(t.Context(), invocation(1), "ses_small", small))
	require.NoError(t, s.Start(t.Context(), invocation(1), "ses_large", large))
	require.Equal(t, []string{"ses_small", "ses_large"}, l.children, "the call names its child before the child starts")
	require.Equal(t, []string{string(large)}, l.artifacts)
	call := protocol.CallInput{Tenant: "acme", Tool: toolname.EntitiesExtract, Parent: "ses_1", ParentCall: "1.1"}
	first, second := call, call
	first.Input, second.InputArtifact = small, "art_1"
	require.Equal(t, []protocol.CallInput{first, second}, l.started)

	for id, begun := range map[string]bool{"ses_there": true, "ses_none": false} {
		got, err := s.Begun(t.Context(), "acme", id)
		require.NoError(t, err)
		require.Equal(t, begun, got)
	}
	_, err := s.Begun(t.Context(), "acme", "ses_unknown")
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
}
