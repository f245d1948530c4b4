package todo_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/tools/tooltest"
)

type memory map[string]string

func (m memory) SetTodo(_ context.Context, tenant, session string, items json.RawMessage) error {
	m[tenant+"/"+session] = string(items)
	return nil
}

func TestWrite_ReplacesTheList(t *testing.T) {
	t.Parallel()
	store := memory{}
	kit := tooltest.New(t, todo.Tools(todo.Options{Store: store})...)
	list := `{"items":[{"id":"1","task":"read","status":"completed"},{"id":"2","task":"write","status":"pending","priority":"high"}]}`
	got := kit.Succeed("todo.write", json.RawMessage(list), nil)
	require.JSONEq(t, list, string(got.Data))
	require.Equal(t, "1 of 2 done", got.Summary)
	require.JSONEq(t, `[{"id":"1","task":"read","status":"completed"},{"id":"2","task":"write","status":"pending","priority":"high"}]`,
		store[kit.Invocation.Tenant+"/"+kit.Invocation.SessionID])
	require.JSONEq(t, `{"items":[]}`, string(kit.Succeed("todo.write", json.RawMessage(`{"items":[]}`), nil).Data))
}

func TestWrite_RefusesBadItems(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, todo.Tools(todo.Options{Store: memory{}})...)
	e := kit.Fail("todo.write", json.RawMessage(`{"items":[{"id":"1","task":"a","status":"pending"},{"id":"1","task":"b","status":"pending"}]}`))
	require.Equal(t, "duplicate_id", e.Reason)
	require.Equal(t, "/items/1/id", e.Field)
	e = kit.Fail("todo.write", json.RawMessage(`{"items":[{"id":"1","task":"a","status":"done"}]}`))
	require.Equal(t, jig.CodeInvalidInput, e.Code)
	require.Equal(t, "/items/0/status", e.Field)
}
