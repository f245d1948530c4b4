package artifact_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/artifact"
	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/tools/tooltest"
)

type object = map[string]any

// memory returns at most 1,000 bytes at a time, so that every longer read takes several chunks.
type memory map[string]string

func (m memory) ReadArtifact(_ context.Context, inv jig.Invocation, id string, offset int64, limit int) ([]byte, int64, error) {
	value, ok := m[inv.Tenant+"/"+id]
	if !ok {
		return nil, 0, jig.Errorf(jig.CodeNotFound, "there is no artifact %s", id)
	}
	rest := value[min(offset, int64(len(value))):]
	return []byte(rest[:min(len(rest), limit, 1000)]), int64(len(value)), nil
}

type content struct {
	Content   string
	Truncated bool
}

func kit(t *testing.T, value string) *tooltest.Kit {
	t.Helper()
	return tooltest.New(t, artifact.Tools(artifact.Options{Store: memory{"default/a": value, "other/b": "secret"}})...)
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestRead_ReturnsTheChosenPart(t *testing.T) {
	t.Parallel()
	value := `{"items":[{"id":1,"tags":["a"]},{"id":2,"tags":[]},{"id":3}],"next":null,"big":12345678901234567890}`
	tests := map[string]struct {
		value string
		input object
		want  content
	}{
		"whole":        {"a\nb", object{}, content{"a\nb", false}},
		"empty":        {"", object{}, content{"", false}},
		"head":         {numbered(5), object{"head": 2}, content{"line 1\nline 2\n", false}},
		"long head":    {numbered(2), object{"head": 9}, content{"line 1\nline 2\n", false}},
		"tail":         {numbered(5), object{"tail": 2}, content{"line 4\nline 5\n", false}},
		"open tail":    {"a\nb\nc", object{"tail": 2}, content{"b\nc", false}},
		"long tail":    {numbered(2), object{"tail": 9}, content{"line 1\nline 2\n", false}},
		"empty tail":   {"", object{"tail": 9}, content{"", false}},
		"far tail":     {numbered(100_000), object{"tail": 1}, content{"line 100000\n", false}},
		"grep":         {numbered(5), object{"grep": "[24]$"}, content{"2:line 2\n4:line 4\n", false}},
		"grep head":    {numbered(500), object{"grep": "0$", "head": 1}, content{"10:line 10\n", false}},
		"grep tail":    {numbered(500), object{"grep": "0$", "tail": 1}, content{"500:line 500\n", false}},
		"grep nothing": {numbered(5), object{"grep": "x"}, content{"", false}},
		"path":         {value, object{"jsonpath": "$.items[*].id"}, content{"1\n2\n3\n", false}},
		"path index":   {value, object{"jsonpath": "$.items[0]"}, content{`{"id":1,"tags":["a"]}` + "\n", false}},
		"path last":    {value, object{"jsonpath": "$.items[-1].id"}, content{"3\n", false}},
		"path filter":  {value, object{"jsonpath": "$.items[?(@.id > 1)].id"}, content{"2\n3\n", false}},
		"path deep":    {value, object{"jsonpath": "$..id", "head": 2}, content{"1\n2\n", false}},
		"path tail":    {value, object{"jsonpath": "items[*].id", "tail": 1}, content{"3\n", false}},
		"path null":    {value, object{"jsonpath": "$.next"}, content{"null\n", false}},
		"path big":     {value, object{"jsonpath": "$.big"}, content{"12345678901234567890\n", false}},
		"path nothing": {value, object{"jsonpath": "$.nothing"}, content{"", false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.input["id"] = "a"
			var got content
			kit(t, tc.value).Succeed("artifact.read", tc.input, &got)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRead_IsTruncated(t *testing.T) {
	t.Parallel()
	list := "[" + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("é", 500)+`",`, 2000), ",") + "]"
	for name, tc := range map[string]struct {
		value string
		input object
	}{
		"whole":       {strings.Repeat("é", artifact.MaxContent), object{}},
		"odd":         {"x" + strings.Repeat("é", artifact.MaxContent), object{}},
		"head":        {numbered(100_000), object{"head": 100_000}},
		"tail":        {numbered(100_000), object{"tail": 100_000}},
		"one line":    {strings.Repeat("é", 100_000), object{"head": 1}},
		"last line":   {"x" + strings.Repeat("é", 100_000), object{"tail": 1}},
		"grep":        {numbered(100_000), object{"grep": "line"}},
		"grep tail":   {numbered(100_000), object{"grep": "line", "tail": 100_000}},
		"path":        {list, object{"jsonpath": "$[*]"}},
		"path tail":   {list, object{"jsonpath": "$[*]", "tail": 1000}},
		"whole value": {list, object{"jsonpath": "$"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.input["id"] = "a"
			var got content
			kit(t, tc.value).Succeed("artifact.read", tc.input, &got)
			require.True(t, got.Truncated)
			require.LessOrEqual(t, len(got.Content), artifact.MaxContent)
			require.Greater(t, len(got.Content), artifact.MaxContent-1100)
			require.NotContains(t, got.Content, "\uFFFD")
		})
	}
}

func TestRead_RefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string
		input object
		want  jig.Error
	}{
		"missing":       {"", object{"id": "z"}, jig.Error{Code: jig.CodeNotFound}},
		"other tenant":  {"", object{"id": "b"}, jig.Error{Code: jig.CodeNotFound}},
		"head and tail": {"", object{"head": 1, "tail": 1}, jig.Error{Code: jig.CodeInvalidInput, Field: "/tail"}},
		"two searches":  {"", object{"grep": "a", "jsonpath": "$"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/jsonpath"}},
		"bad pattern":   {"", object{"grep": "("}, jig.Error{Code: jig.CodeInvalidInput, Field: "/grep"}},
		"bad path":      {"", object{"jsonpath": "$.["}, jig.Error{Code: jig.CodeInvalidInput, Field: "/jsonpath"}},
		"binary":        {"a\x00", object{}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "binary_artifact"}},
		"binary tail":   {"a\n\xff", object{"tail": 1}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "binary_artifact"}},
		"binary grep":   {"a\n\xff", object{"grep": "b"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "binary_artifact"}},
		"not JSON":      {"plain", object{"jsonpath": "$.a"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "not_json"}},
		"cut JSON":      {`{"a":[1,`, object{"jsonpath": "$.b"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "not_json"}},
		"deep JSON":     {strings.Repeat("[", 1_000_000), object{"jsonpath": "$"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "limit_exceeded"}},
		"deep stream":   {strings.Repeat("[", 1_000_000), object{"jsonpath": "$[0]"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/id", Reason: "limit_exceeded"}},
		"many visits":   {strings.Repeat("[", 60) + strings.Repeat("]", 60), object{"jsonpath": "$..*..*..*..*..*..x"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/jsonpath", Reason: "limit_exceeded"}},
		"large pattern": {"a", object{"grep": strings.Repeat("(a?){1000}", 90) + "z"}, jig.Error{Code: jig.CodeInvalidInput, Field: "/grep"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.input["id"] == nil {
				tc.input["id"] = "a"
			}
			e := kit(t, tc.value).Fail("artifact.read", tc.input)
			require.Equal(t, tc.want.Code, e.Code, e)
			require.Equal(t, tc.want.Field, e.Field)
			require.Equal(t, tc.want.Reason, e.Reason)
		})
	}
}

// endless is an artifact of any size.
type endless int64

func (e endless) ReadArtifact(_ context.Context, _ jig.Invocation, _ string, offset int64, limit int) ([]byte, int64, error) {
	return []byte(strings.Repeat("y\n", limit/2+1)[:min(int64(limit), int64(e)-offset)]), int64(e), nil
}

func TestRead_BoundsLargeArtifacts(t *testing.T) {
	t.Parallel()
	large := tooltest.New(t, artifact.Tools(artifact.Options{Store: endless(1 << 40)})...)
	require.Equal(t, "artifact_too_large", large.Fail("artifact.read", object{"id": "a", "grep": "x"}).Reason)
	require.Equal(t, "artifact_too_large", large.Fail("artifact.read", object{"id": "a", "jsonpath": "$"}).Reason)
	large.Succeed("artifact.read", object{"id": "a", "head": 3}, nil)
	large.Succeed("artifact.read", object{"id": "a", "tail": 3}, nil)
	scanned := tooltest.New(t, artifact.Tools(artifact.Options{Store: endless(300 << 10)})...)
	scanned.Succeed("artifact.read", object{"id": "a", "grep": "x"}, nil)
}

// This pattern of 901 bytes compiled to 180,000 instructions, and took seven seconds and 343 MB for a single line of 1,000 bytes.
func TestGrep_RefusesPatternsThatTakeTooMuch(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	k := kit(t, strings.Repeat("a", 1_000))
	costtest.AtMost(t, 4<<20, func() {
		e := k.Fail("artifact.read", object{"id": "a", "grep": strings.Repeat("(a?){1000}", 90) + "z"})
		require.Equal(t, "/grep", e.Field)
		require.Contains(t, e.Message, "at most 2500 are allowed")
	})
}

// canceling returns the whole artifact at once and cancels the call that reads it.
type canceling struct {
	text   string
	cancel context.CancelFunc
}

func (c canceling) ReadArtifact(_ context.Context, _ jig.Invocation, _ string, offset int64, _ int) ([]byte, int64, error) {
	c.cancel()
	return []byte(c.text[offset:]), int64(len(c.text)), nil
}

// A canceled search ends at once; it does not first search the lines that have already been read.
func TestSearch_StopsWithinTheDataRead(t *testing.T) {
	t.Parallel()
	for _, in := range []object{{"grep": "(a?){500}z"}, {"jsonpath": "$..*..*..*..*..*..x"}, {"jsonpath": "$[*][*].x"}} {
		text := strings.Repeat(strings.Repeat("a", 60_000)+"\n", 4)
		if in["grep"] == nil {
			text = "[" + strings.Repeat("[", 60) + strings.Repeat("]", 60) + strings.Repeat(",[1,2,3,4]", 10_000) + "]"
		}
		ctx, cancel := context.WithCancel(t.Context())
		k := tooltest.New(t, artifact.Tools(artifact.Options{Store: canceling{text, cancel}})...)
		in["id"] = "a"
		result := k.Run(ctx, "artifact.read", in)
		require.False(t, result.Success)
		require.Equal(t, jig.CodeCanceled, result.Error.Code)
	}
}

// Collecting the results of each step of such a path would take more memory than any machine has, even for 120 bytes of JSON.
func TestJSONPath_TakesNoMemoryForWhatItVisits(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	k := kit(t, strings.Repeat("[", 60)+strings.Repeat("]", 60))
	costtest.AtMost(t, 96<<20, func() {
		var got content
		k.Succeed("artifact.read", object{"id": "a", "jsonpath": "$..*..*..*..*..*..*"}, &got)
		require.True(t, got.Truncated)
		e := k.Fail("artifact.read", object{"id": "a", "jsonpath": "$..*..*..*..*..*..*", "tail": 1})
		require.Equal(t, "/jsonpath", e.Field)
		require.Equal(t, "limit_exceeded", e.Reason)
	})
}
