package toolname_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/toolname"
)

func TestListed_TakesCategories(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		whitelist []string
		name      string
		want      bool
	}{
		{[]string{"*"}, "a.b", true},
		{[]string{"a.b"}, "a.b", true},
		{[]string{"a.*"}, "a.b", true},
		{[]string{"a.*"}, "ab.c", false},
		{[]string{"a.b"}, "a.bc", false},
		{[]string{"a*"}, "a.b", false},
		{nil, "a.b", false},
	} {
		require.Equal(t, row.want, toolname.Listed(row.whitelist, row.name), "%v %s", row.whitelist, row.name)
	}
}
