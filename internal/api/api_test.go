package api_test

import (
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

var placeholders = regexp.MustCompile(`\{(\w+)\}`)

// Names and addresses are unique, and each part of a path that varies is a member of the request.
func TestAll_DeclaresEachOperationOnce(t *testing.T) {
	t.Parallel()
	names, addresses := map[string]bool{}, map[string]bool{}
	for _, op := range api.All() {
		o := op.Describe()
		require.False(t, names[o.Name], o.Name)
		require.False(t, addresses[o.Method+o.Path], o.Name)
		names[o.Name], addresses[o.Method+o.Path] = true, true
		require.NotEmpty(t, o.Summary, o.Name)
		require.NotEmpty(t, o.Tag, o.Name)
		var inPath, members []string
		for _, found := range placeholders.FindAllStringSubmatch(o.Path, -1) {
			inPath = append(inPath, found[1])
		}
		request, _ := op.Types()
		for _, field := range reflect.VisibleFields(request) {
			if name, ok := field.Tag.Lookup("path"); ok {
				members = append(members, name)
			}
		}
		slices.Sort(inPath)
		slices.Sort(members)
		require.Equal(t, inPath, members, o.Name)
		if op.Read() != "" {
			require.Equal(t, http.MethodGet, o.Method, "%s: a plain read has no body", o.Name)
		}
	}
}

// No request lets its sender say for whom it is: what comes from the credential is not read from anywhere else.
func TestAll_ReadsTheCallerFromNowhereElse(t *testing.T) {
	t.Parallel()
	for _, op := range api.All() {
		request, _ := op.Types()
		for _, field := range reflect.VisibleFields(request) {
			name := strings.ToLower(field.Name)
			bound := field.Tag.Get("caller")
			if op.Read() != "" {
				require.Equal(t, name == "tenant", bound == "tenant", "%s.%s", request, field.Name)
			}
			if bound == "" {
				continue
			}
			for _, tag := range []string{"path", "query", "header", "cookie", "form"} {
				require.Empty(t, field.Tag.Get(tag), "%s.%s", request, field.Name)
			}
		}
	}
}

func TestBind_CompletesARequest(t *testing.T) {
	t.Parallel()
	in := protocol.SessionsRequest{Tenant: "other", SessionFilter: protocol.SessionFilter{ParentID: "order-7", Agent: "a"}, Cursor: "c"}
	api.Bind(&in, "acme", jig.Principal{ID: "ana"})
	require.Equal(t, protocol.SessionsRequest{Tenant: "acme", SessionFilter: protocol.SessionFilter{ParentID: "acme.order-7", Agent: "a"}, Cursor: "c"}, in)
	empty := protocol.SessionsRequest{}
	api.Bind(&empty, "acme", jig.Principal{ID: "ana"})
	require.Equal(t, protocol.SessionsRequest{Tenant: "acme"}, empty)
	caller := struct {
		By string `caller:"principal"`
	}{By: "ben"}
	api.Bind(&caller, "acme", jig.Principal{ID: "ana"})
	require.Equal(t, "ana", caller.By)
}
