package tooltest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/tooltest"
)

func TestKit_ChecksContracts(t *testing.T) {
	t.Parallel()
	fake, captured := tooltest.Fake(jig.Tool{Name: "test.fake"}, jig.ToolResult{Success: true})
	chatty := tools.New(jig.Tool{Name: "test.chatty", Description: "Talks."},
		func(_ context.Context, inv jig.Invocation, _ struct{}) (struct{}, error) {
			inv.Progress("half way")
			return struct{}{}, jig.Errorf(jig.CodeConflict, "stopped")
		})
	kit := tooltest.New(t, fake, chatty)
	kit.Succeed("test.fake", map[string]int{"n": 1}, nil)
	require.JSONEq(t, `{"n":1}`, string(captured.Calls()[0].Input))
	require.Equal(t, "ses_test", captured.Calls()[0].Invocation.SessionID)
	require.Equal(t, jig.CodeConflict, kit.Fail("test.chatty", []byte(`{}`)).Code)
	require.Equal(t, []string{"half way"}, kit.Progress())
}

// recorder is a test that records a failure without failing the surrounding test.
type recorder struct {
	testing.TB

	failure string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Fatalf(f string, a ...any) { r.failure = fmt.Sprintf(f, a...) }

// kitOf returns a kit for a tool that ends with an error, and a recorder for the kit's failures.
func kitOf(t *testing.T, permission jig.Permission, end error) (*tooltest.Kit, *recorder) {
	t.Helper()
	r := &recorder{TB: t}
	return tooltest.New(r, tools.New(jig.Tool{Name: "test.pay", Description: "Pays.", Permission: permission},
		func(context.Context, jig.Invocation, struct{}) (struct{}, error) { return struct{}{}, end })), r
}

func TestKit_ReportsThatAnErrorLeavesAWriteUnknown(t *testing.T) {
	t.Parallel()
	plain := errors.New("connection reset")
	for name, row := range map[string]struct {
		permission jig.Permission
		end        error
		unknown    bool
	}{
		"plain error of a write":   {jig.PermissionWrite, plain, true},
		"plain error, no contract": {"", plain, true},
		"outage of a destructive":  {jig.PermissionDestructive, jig.Errorf(jig.CodeUnavailable, "down"), true},
		"promise of a write":       {jig.PermissionWrite, jig.Errorf(jig.CodeConflict, "taken"), false},
		"a write that did not run": {jig.PermissionWrite, &jig.Error{Code: jig.CodeUnavailable, Message: "down", NotExecuted: true}, false},
		"plain error of a read":    {jig.PermissionRead, plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit, failed := kitOf(t, row.permission, row.end)
			require.NotNil(t, kit.Fail("test.pay", struct{}{}))
			require.Equal(t, row.unknown, strings.Contains(failed.failure, "leaves its call unknown"), failed.failure)
			kit, failed = kitOf(t, row.permission, row.end)
			require.NotNil(t, kit.Unknown("test.pay", struct{}{}))
			require.Equal(t, !row.unknown, strings.Contains(failed.failure, "does not leave open"), failed.failure)
		})
	}
}

// The author of a tool with Confirm declares no flag: the schema gets it, and completing the input keeps it.
func TestKit_AddsTheConfirmationFlag(t *testing.T) {
	t.Parallel()
	type in struct {
		ID    string `json:"id"`
		Title string `json:"title,omitempty"`
	}
	title := func(_ context.Context, _ jig.Invocation, in *in) error { in.Title = "Team"; return nil }
	type out struct {
		Deleted string `json:"deleted"`
	}
	kit := tooltest.New(t, tools.New(jig.Tool{Name: "cms.deletePage", Description: "Deletes a page.", Confirm: true},
		func(_ context.Context, _ jig.Invocation, in in) (out, error) { return out{in.Title + in.ID}, nil }, tools.Fill(title)))
	var asked confirmation
	kit.Succeed("cms.deletePage", in{ID: "p1"}, &asked)
	require.True(t, asked.RequiresConfirmation)
	filled, err := kit.Registry.Fill(t.Context(), "cms.deletePage", []byte(`{"id": "p1", "confirmed": true}`), kit.Invocation)
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "p1", "title": "Team", "confirmed": true}`, string(filled))
	var done out
	kit.Succeed("cms.deletePage", filled, &done)
	require.Equal(t, out{"Teamp1"}, done)
	filled, err = kit.Registry.Fill(t.Context(), "cms.deletePage", []byte(`{"id": "p1"}`), kit.Invocation)
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "p1", "title": "Team"}`, string(filled))
	require.Equal(t, jig.CodeInvalidInput, kit.Fail("cms.deletePage", []byte(`{"id": "p1", "confirmed": "yes"}`)).Code)
}

func TestKit_HonorsTheConfirmationFlag(t *testing.T) {
	t.Parallel()
	type in struct {
		ID        string `json:"id"`
		Confirmed bool   `json:"confirmed,omitempty"`
	}
	type out struct {
		Deleted string `json:"deleted"`
	}
	deleted := 0
	kit := tooltest.New(t, tools.New(jig.Tool{Name: "cms.deletePage", Description: "Deletes a page. For good.", Confirm: true},
		func(_ context.Context, _ jig.Invocation, in in) (out, error) { deleted++; return out{in.ID}, nil }))
	var asked confirmation
	kit.Succeed("cms.deletePage", in{ID: "p1"}, &asked)
	require.True(t, asked.RequiresConfirmation)
	require.Contains(t, asked.Message, "Deletes a page.")
	require.Zero(t, deleted)
	kit.Fail("cms.deletePage", map[string]bool{"confirmed": true}) //nolint:errcheck // the result does not matter here
	var done out
	kit.Succeed("cms.deletePage", in{ID: "p1", Confirmed: true}, &done)
	require.Equal(t, out{"p1"}, done)
	require.Equal(t, 1, deleted)
}

// confirmation is the data of a call that must be confirmed first.
type confirmation struct {
	RequiresConfirmation bool   `json:"requiresConfirmation"` //nolint:tagliatelle // the name that models know from other tools
	Message              string `json:"message"`
}
