package protocol_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// details returns a function that decodes the JSON of details, as Temporal's errors do.
func details(t *testing.T, list ...any) func(into ...any) error {
	t.Helper()
	return func(into ...any) error {
		if len(into) > len(list) {
			return errors.New("there are fewer details")
		}
		for i := range into {
			text, err := json.Marshal(list[i])
			require.NoError(t, err)
			if err := json.Unmarshal(text, into[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// An error that has crossed Temporal still knows which parts of it are values.
func TestReadFailure_KeepsTheTemplates(t *testing.T) {
	t.Parallel()
	read := func(list ...any) *jig.Error {
		var e jig.Error
		words, err := protocol.ReadFailure(details(t, list...), &e)
		require.NoError(t, err)
		words.Apply(&e)
		return &e
	}
	e := jig.Errorf(jig.CodeNotFound, "there is no tool %q", "x").WithHint(jig.Templatef("try %s", "y"))
	e.Violations = []jig.Violation{{Pointer: "/a", Message: "is z", Template: jig.Templatef("is %s", "z")}}
	require.Equal(t, e, read(protocol.FailureDetails(e)...))
	plain := read(e)
	require.Equal(t, e.Message, plain.Message)
	require.Empty(t, plain.Template, "all of it is a value")
	other := *e
	other.Message = "something else"
	require.Empty(t, read(&other, protocol.FailureDetails(e)[1]).Template, "the template is that of another message")
	_, err := protocol.ReadFailure(details(t), &other)
	require.Error(t, err)
}
